// Package timeline tells the story of a run from the facts of its ledger, for people to read.
package timeline

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// Entry is one line of the story. Texts are as the ledger has them: a model's words are in them, control
// characters included.
type Entry struct {
	// Fact is the number of the fact, from 1.
	Fact int          `json:"fact"`
	Time time.Time    `json:"time"`
	Kind journal.Kind `json:"kind"`
	// What is a word for the kind of line, Text the rest of it.
	What string `json:"what"`
	Text string `json:"text"`
}

// Of returns the story of a ledger, at least one line a fact. The errors are those of journal.Decode.
func Of(records []journal.Record) ([]Entry, error) {
	stories := map[string]*story{}
	var entries []Entry
	for i, rec := range records {
		f, err := journal.Decode(rec)
		if err != nil {
			return nil, err
		}
		s := stories[f.Frame]
		if s == nil {
			s = &story{frame: f.Frame, calls: map[journal.EffectID]string{}}
			stories[f.Frame] = s
		}
		s.entries, s.fact, s.time, s.kind = entries, i+1, time.UnixMilli(f.Time), rec.Kind
		s.tell(f.Body)
		entries = s.entries
	}
	return entries, nil
}

// story is that of the run itself, or of a run nested in it.
type story struct {
	frame   string
	entries []Entry
	fact    int
	time    time.Time
	kind    journal.Kind

	response int                         // ordinal of the newest
	calls    map[journal.EffectID]string // tools by call, without an attempt
	tools    []journal.ToolSpec
}

func (s *story) add(what, format string, args ...any) {
	if s.frame != "" {
		format, args = "in %s: "+format, append([]any{s.frame}, args...)
	}
	s.entries = append(s.entries, Entry{Fact: s.fact, Time: s.time, Kind: s.kind, What: what, Text: fmt.Sprintf(format, args...)})
}

func (s *story) tell(body journal.Body) {
	switch b := body.(type) {
	case *journal.Started:
		s.started(b)
	case *journal.Forked:
		s.add("forked", "a run of its own from here, called %s", b.Run)
	case *journal.Claimed:
		s.add("driver", "process %d on %s takes the run, claim %d", b.Owner.PID, cmp.Or(b.Owner.Host, "an unknown host"), b.Epoch)
	case *journal.Resumed:
		s.resumed(b)
	case *journal.Loaded:
		s.add("session", "read: %d items%s", len(b.Items), healed(len(b.Healed)))
	case *journal.Prepared:
		s.prepared(b)
	case *journal.Intended:
		s.intended(b)
	case *journal.Responded:
		s.responded(b)
	case *journal.Planned:
		s.planned(b)
	case *journal.Decided:
		s.decided(b)
	case *journal.Settled:
		s.settled(b)
	default:
		s.rest(body)
	}
}

// rest tells of facts that need no more than a line.
func (s *story) rest(body journal.Body) {
	switch b := body.(type) {
	case *journal.Expired:
		s.add("expired", "nobody decided %s in time", s.effect(b.Call))
	case *journal.Judged:
		s.add("verdict", "the tool-use function says: final %v%s", b.Final, quoted(b.Text))
	case *journal.Confirmed:
		found := ""
		if b.Found {
			found = ", found when it was read back"
		}
		s.add("session", "has the first %d items of the history (batch %d%s)", b.Upto, b.N, found)
	case *journal.Absent:
		s.add("read back", "%s did not happen", s.effect(b.ID))
	case *journal.Failed:
		s.failed(b)
	case *journal.Fired:
		s.add("wait", "is over")
	case *journal.Cancelled:
		s.add("cancel", "asked for by %s%s", b.By, quoted(b.Why))
	case *journal.Checked:
		s.checked(b.ID, b.Checks)
		if !b.Output.IsZero() {
			s.add("tool", "%s is answered, not run%s", s.effect(journal.EffectID{Kind: journal.EffectTool, N: b.ID.N, P: b.ID.P}), quoted(textOf(b.Output)))
		}
		if len(b.Checks) == 0 {
			s.add("guardrail", "nobody is asked any more")
		}
	case *journal.Finished:
		s.finished(b)
	default:
		s.add(string(s.kind), "")
	}
}

func (s *story) started(b *journal.Started) {
	where := ""
	switch {
	case b.Session != nil:
		where = fmt.Sprintf(", session %s in %s", b.Session.ID, b.Session.Backend)
	case b.Conversation != "":
		where = ", conversation " + b.Conversation + " on the server"
	case b.Previous != "" || b.Auto:
		where = ", the server keeps the conversation"
	}
	s.add("started", "agent %s%s", b.Agent, where)
	for _, it := range b.Input {
		s.add("input", "%s", textOf(it))
	}
}

func healed(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", and outputs made for %d calls that had none", n)
}

func (s *story) resumed(b *journal.Resumed) {
	bound := ""
	switch {
	case b.MaxTurns > 0:
		bound = fmt.Sprintf(", with at most %d turns", b.MaxTurns)
	case b.MaxTurns < 0:
		bound = ", with any number of turns"
	}
	s.add("resumed", "what failed is tried again%s", bound)
}

func (s *story) prepared(b *journal.Prepared) {
	if b.Manifest != nil {
		s.tools = b.Manifest.Tools
	}
	s.add("turn", "%d: the model is asked, with %d tools", b.N, len(s.tools))
}

func (s *story) intended(b *journal.Intended) {
	switch b.ID.Kind {
	case journal.EffectTool:
		s.add("tool", "%s begins%s", s.effect(b.ID), again(b.ID.A))
	case journal.EffectModel:
		s.add("model", "is asked again, attempt %d of turn %d", b.ID.A, b.ID.N)
	default:
		s.add(kindWord(b.ID.Kind), "%s begins%s", s.effect(b.ID), again(b.ID.A))
	}
}

func again(attempt int) string {
	if attempt <= 1 {
		return ""
	}
	return fmt.Sprintf(" again, attempt %d, same key", attempt)
}

func (s *story) responded(b *journal.Responded) {
	s.response++
	if len(b.Items) == 0 {
		s.add("model", "answers nothing")
	}
	for p, it := range b.Items {
		if it.NeedsOutput() {
			s.calls[journal.EffectID{Kind: journal.EffectTool, N: s.response, P: p}] = it.Head().Name
			s.add("call", "%s %s", callText(it), "["+s.interruption(s.response, p)+"]")
			continue
		}
		s.add("model", "%s", textOf(it))
	}
}

func (s *story) interruption(n, p int) string {
	name := fmt.Sprintf("%d.%d", n, p)
	if s.frame != "" {
		return s.frame + "/" + name
	}
	return name
}

func (s *story) planned(b *journal.Planned) {
	for _, c := range b.Calls {
		call := journal.EffectID{Kind: journal.EffectTool, N: b.N, P: c.P}
		s.checked(call, c.Checks)
		id := s.effect(call)
		switch {
		case c.Twin:
			s.add("plan", "%s repeats a call and is dropped", id)
		case c.Unreadable:
			s.add("plan", "%s has arguments that the tool cannot read", id)
		case c.Tool < 0:
			s.add("plan", "%s is no tool of the agent; the model is told so", id)
		case c.Gate == journal.Ask:
			s.add("plan", "%s needs approval", id)
		case c.Gate == journal.Deny:
			s.add("plan", "%s is denied by its rule", id)
		case !c.Output.IsZero() && len(c.Checks) > 0:
			s.add("plan", "%s is answered, not run%s", id, quoted(textOf(c.Output)))
		case !c.Output.IsZero():
			s.add("plan", "%s is answered from the record", id)
		}
	}
}

func (s *story) decided(b *journal.Decided) {
	verb := map[journal.Verdict]string{journal.Approve: "approved", journal.Reject: "rejected", journal.Settle: "settled", journal.Retry: "to run again",
		journal.GiveUp: "given up"}[b.Verdict]
	more := ""
	if b.Sticky {
		more += ", like every call of the tool"
	}
	if b.Arguments != "" {
		more += ", with other arguments: " + b.Arguments
	}
	s.add("decision", "%s is %s by %s%s%s%s", s.effect(b.Call), cmp.Or(verb, string(b.Verdict)), cmp.Or(b.By, "nobody named"), more, quoted(b.Text), quoted(b.Why))
}

func (s *story) settled(b *journal.Settled) {
	id := b.ID
	s.checked(id, b.Checks)
	words := map[journal.Outcome]string{journal.Done: "returns", journal.ToolFailed: "fails", journal.Unknown: "has an unknown outcome", journal.NotExecuted: "was not begun after all",
		journal.Pending: "has begun something; its result comes later", journal.AsksAgain: "has done nothing yet and asks a person first", journal.Rejected: "is answered, not run", journal.Decreed: "is settled by hand", journal.Dropped: "is dropped"}
	note, text := "", ""
	if b.Late {
		note = " (too late to count)"
	}
	if b.Running {
		note += " (its body had not returned)"
	}
	if !b.Output.IsZero() {
		text = textOf(b.Output)
	} else if b.Outcome == journal.AsksAgain {
		text = b.Error
	}
	if b.Output.Type() == item.TypeMCPApprovalResponse {
		words[b.Outcome] = "is answered"
	}
	s.add("tool", "%s %s%s%s", s.effect(id), cmp.Or(words[b.Outcome], string(b.Outcome)), note, quoted(text))
}

func (s *story) failed(b *journal.Failed) {
	then := ""
	if b.RetryAt != 0 {
		then = "; tried again at " + time.UnixMilli(b.RetryAt).Local().Format(time.TimeOnly)
	}
	s.add("failed", "%s: %s%s", s.effect(b.ID), strings.TrimPrefix(b.Error, "pawl: "), then)
}

func (s *story) finished(b *journal.Finished) {
	switch {
	case b.Cancelled && s.frame != "":
		s.add("stopped", "the nested run is over")
	case b.Tripped:
		s.add("tripped", "a guardrail has ended the run")
	case b.Cancelled:
		s.add("cancelled", "the run is over")
	case s.frame != "":
		s.add("finished", "the nested run has its final output%s", quoted(b.Text))
	default:
		s.add("finished", "the run has its final output%s", quoted(b.Text))
	}
}

// effect names an effect for people.
func (s *story) effect(id journal.EffectID) string {
	switch id.Kind {
	case journal.EffectTool:
		id.A = 0
		return cmp.Or(s.calls[id], "a call") + " [" + s.interruption(id.N, id.P) + "]"
	case journal.EffectSession:
		return fmt.Sprintf("batch %d for the session", id.N)
	case journal.EffectModel:
		return fmt.Sprintf("the model call of turn %d", id.N)
	}
	if guards, ok := guardWord(id); ok {
		return guards
	}
	return fmt.Sprintf("%s %d", kindWord(id.Kind), id.N)
}

func kindWord(k journal.EffectKind) string {
	return cmp.Or(map[journal.EffectKind]string{journal.EffectEnter: "start of agent", journal.EffectLeave: "output of agent", journal.EffectLoad: "load", journal.EffectPrepare: "turn", journal.EffectModel: "model", journal.EffectPlan: "plan",
		journal.EffectTool: "tool", journal.EffectJudge: "verdict", journal.EffectSession: "session", journal.EffectReconcile: "read back", journal.EffectWait: "wait"}[k], "effect")
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func callText(it item.Item) string {
	if fc, err := it.FunctionCall(); err == nil {
		return fc.Name + " " + fc.Arguments
	}
	if cc, err := it.CustomToolCall(); err == nil {
		return cc.Name + " " + cc.Input
	}
	if r, err := it.ApprovalRequest(); err == nil {
		return r.Name + " of " + r.ServerLabel + " " + r.Arguments
	}
	return string(it.Type())
}

// textOf is what an item says, or its type.
func textOf(it item.Item) string {
	if m, err := it.Message(); err == nil {
		return m.Text() + m.Refusal()
	}
	if o, err := it.FunctionCallOutput(); err == nil {
		return o.Text
	}
	if o, err := it.CustomToolCallOutput(); err == nil {
		return o.Text
	}
	if a, err := it.ApprovalResponse(); err == nil {
		if a.Approve {
			return "approved"
		}
		return "not approved: " + a.Reason
	}
	return "(" + string(it.Type()) + ")"
}
