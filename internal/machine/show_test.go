package machine

import (
	"fmt"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// views are the commands that tell what the machine says.
var views = map[string]func(*script, command) string{
	"history":       (*script).historyText,
	"tripped":       (*script).trippedText,
	"interruptions": (*script).interruptionsText,
	"frames": func(s *script, _ command) string {
		var list []string
		for f := range s.m.Frames() {
			list = append(list, fmt.Sprintf("%q %s", f.Name(), strings.Join(f.Route(), " > ")))
		}
		return strings.Join(list, "\n")
	},
	"status": func(s *script, _ command) string { return s.m.Status().String() },
	"usage": func(s *script, _ command) string {
		u := s.m.Usage()
		return fmt.Sprintf("%d requests, %d unreported, %d tokens", u.Requests, u.Unreported, u.Total)
	},
	"in-flight": func(s *script, _ command) string { return fmt.Sprint(s.m.InFlight()) },
	"request": func(s *script, c command) string {
		return s.itemsText(s.number(c.word(1)), s.number(c.word(2)))
	},
	"results": func(s *script, _ command) string {
		var list []string
		for _, r := range s.f.Results() {
			list = append(list, fmt.Sprintf("%s %s %s %s", r.CallID, r.Name, r.Arguments, itemText(r.Output)))
		}
		return strings.Join(list, "\n")
	},
	"call": func(s *script, c command) string {
		id := s.effect(c.word(1))
		info, ok := s.f.Call(id)
		text := fmt.Sprintf("%v %s %s by=%s attempt=%d edited=%v", ok, info.CallID, s.f.Arguments(id), info.By, info.Attempt, info.Edited != "")
		if info.Failure != nil {
			text += fmt.Sprintf(" failure=%s", info.Failure.Code)
		}
		if info.Approvals > 0 {
			text += fmt.Sprintf(" approvals=%d", info.Approvals)
		}
		return text
	},
	"deadline": func(s *script, _ command) string { return fmt.Sprint(s.m.Deadline()) },
	"unsettled": func(s *script, _ command) string {
		var list []string
		for u := range s.m.Unsettled() {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s%s %s %s %s attempt=%d begun=%d %s %s", inFrame(u.Frame), u.Standing, u.Call, u.CallID, u.Tool, u.Attempt, u.Begun, u.Interruption, u.Note)))
		}
		return strings.Join(list, "\n")
	},
	"failure": func(s *script, _ command) string {
		if f := s.m.Failure(); f != nil {
			return fmt.Sprintf("%s%s %s: %s", inFrame(s.m.FailedIn()), f.ID, f.Code, f.Error)
		}
		return "none"
	},
}

func (s *script) historyText(command) string {
	return s.itemsText(0, len(s.f.history)) + fmt.Sprintf("settled %d, in the session %d\n", s.f.settled, s.f.persisted)
}

func (s *script) itemsText(from, upto int) string {
	var b strings.Builder
	for i, p := range s.f.history[from:upto] {
		switch {
		case p.dropped:
			fmt.Fprintf(&b, "%d dropped\n", from+i)
		case p.item.IsZero():
			fmt.Fprintf(&b, "%d reserved\n", from+i)
		default:
			fmt.Fprintf(&b, "%d %s\n", from+i, itemText(p.item))
		}
	}
	return b.String()
}

func (s *script) interruptionsText(command) string {
	var b strings.Builder
	for _, in := range s.m.Interruptions() {
		fmt.Fprintf(&b, "%s %s %s %s %s", in.Kind, InterruptionID(in.Frame, in.Call, in.Stage), in.CallID, in.Tool, in.Arguments)
		if in.Frame != "" {
			fmt.Fprintf(&b, " (%s)", strings.Join(in.Route, " > "))
		}
		if in.Unreadable {
			b.WriteString(" unreadable")
		}
		if in.NotBefore > 0 {
			fmt.Fprintf(&b, " not before %d", in.NotBefore)
		}
		if in.Deadline > 0 {
			fmt.Fprintf(&b, " until %d", in.Deadline)
		}
		if in.Note != "" {
			fmt.Fprintf(&b, ": %s", in.Note)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func itemText(it item.Item) string {
	h := it.Head()
	switch h.Type {
	case "":
		return "-"
	case item.TypeMessage:
		m, _ := it.Message()
		return h.Role + " " + m.Text()
	case item.TypeFunctionCall:
		fc, _ := it.FunctionCall()
		return fmt.Sprintf("call %s %s %s", h.CallID, h.Name, fc.Arguments)
	case item.TypeFunctionCallOutput:
		out, _ := it.FunctionCallOutput()
		return fmt.Sprintf("output %s %s", h.CallID, outputText(out.Text))
	case item.TypeCustomToolCallOutput:
		out, _ := it.CustomToolCallOutput()
		return fmt.Sprintf("custom output %s %s", h.CallID, outputText(out.Text))
	case item.TypeMCPApprovalRequest:
		r, _ := it.ApprovalRequest()
		return fmt.Sprintf("asks %s %s %s %s", r.ID, r.ServerLabel, r.Name, r.Arguments)
	case item.TypeMCPApprovalResponse:
		r, _ := it.ApprovalResponse()
		if r.Approve {
			return strings.TrimSpace("yes " + r.RequestID + " " + r.Reason)
		}
		return strings.TrimSpace("no " + r.RequestID + " " + outputText(r.Reason))
	}
	return string(h.Type)
}

// outputText names the standard texts.
func outputText(text string) string {
	switch {
	case text == RejectedText:
		return "(rejected)"
	case text == CancelledText:
		return "(cancelled)"
	case text == StoppedText:
		return "(stopped)"
	case text == ExpiredText:
		return "(expired)"
	case text == WithheldText:
		return "(withheld)"
	case strings.HasPrefix(text, "The outcome of this tool call is unknown"):
		return "(unknown)"
	}
	return text
}

// inFrame says in which nested frame something is.
func inFrame(frame string) string {
	if frame == "" {
		return ""
	}
	return frame + ": "
}

func effectText(e Effect) string {
	text := inFrame(e.Frame) + e.ID.String()
	switch e.ID.Kind {
	case journal.EffectLoad, journal.EffectPlan, journal.EffectJudge:
	case journal.EffectEnter:
		text += fmt.Sprintf(" of %s key %.13s", e.About, e.Key)
	case journal.EffectLeave:
		text += fmt.Sprintf(" of %s", e.About)
	case journal.EffectTransfer, journal.EffectGuard, journal.EffectOutput, journal.EffectCheck, journal.EffectHandle:
	case journal.EffectPrepare:
		if e.From > 0 {
			text += fmt.Sprintf(" from %d", e.From)
		}
		text += fmt.Sprintf(" upto %d", e.Upto)
	case journal.EffectWait:
		text += fmt.Sprintf(" until %d", e.Until)
	case journal.EffectTool:
		text += fmt.Sprintf(" key %.13s not after %d", e.Key, e.NotAfter)
	case journal.EffectReconcile:
		if e.About.Kind == journal.EffectTool {
			return text + fmt.Sprintf(" about %s key %.13s", e.About, e.Key)
		}
		text += fmt.Sprintf(" about %s [%d,%d)", e.About, e.From, e.Upto)
	default:
		text += fmt.Sprintf(" [%d,%d)", e.From, e.Upto)
	}
	if e.Previous != "" {
		text += " after " + e.Previous
	}
	return text + viewText(e.View)
}

func viewText(view []journal.Span) (text string) {
	for _, s := range view {
		if s.Item.IsZero() {
			text += fmt.Sprintf(" view [%d,%d)", s.From, s.Upto)
		} else {
			text += fmt.Sprintf(" view (%s)", itemText(s.Item))
		}
	}
	return text
}

// factText says a fact in a line, what is 0 or false left out.
func (s *script) factText(f journal.Fact) string {
	body, frame := f.Body, f.Frame
	words := []string{inFrame(frame) + string(body.Kind())}
	add := func(use bool, format string, args ...any) {
		if use {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	switch b := body.(type) {
	case *journal.Started:
		add(frame == "", "%s", b.Run)
		add(frame != "", "%s", b.Agent)
	case *journal.Forked:
		add(true, "%s", b.Run)
	case *journal.Claimed:
		add(true, "epoch %d", b.Epoch)
		add(b.Gone, "gone")
	case *journal.Resumed:
		add(b.MaxTurns != 0, "max-turns %d", b.MaxTurns)
	case *journal.Loaded:
		add(true, "%d items, %d healed", len(b.Items), len(b.Healed))
		add(len(b.View) > 0, "%s", strings.TrimSpace(viewText(b.View)))
	case *journal.Prepared:
		add(true, "turn %d upto %d", b.N, b.Upto)
		add(b.Manifest == nil, "as turn %d", b.Same)
		add(len(b.View) > 0, "%s", strings.TrimSpace(viewText(b.View)))
	case *journal.Intended:
		add(true, "%s", b.ID)
		add(b.Upto > 0, "upto %d", b.Upto)
		add(b.NotAfter > 0, "not after %d", b.NotAfter)
	case *journal.Responded:
		add(true, "%s %s", b.ID, b.ResponseID)
	case *journal.Planned:
		add(true, "%d", b.N)
		for i := range b.Calls {
			add(true, "%s", plannedText(&b.Calls[i]))
		}
		add(b.Final != journal.FinalNone, "final %s", b.Final)
	case *journal.Decided:
		add(true, "%s %s", InterruptionID(frame, b.Call, b.Stage), b.Verdict)
		add(b.Sticky, "sticky")
		add(b.Arguments != "", "%s", b.Arguments)
	case *journal.Settled:
		add(true, "%s", b.ID)
		add(b.Outcome == journal.Done, "done")
		add(b.Outcome != journal.Done, "%s", b.Outcome)
		add(b.Late, "late")
		add(b.Running, "running")
		add(len(b.Checks) > 0, "%s", checksText(b.Checks))
		add(b.Error != "" && b.Output.IsZero(), "%q", b.Error)
		add(!b.Output.IsZero(), "%s", itemText(b.Output))
	case *journal.Transferred:
		add(true, "%d.%d to %s", b.N, b.P, b.Agent)
		add(len(b.View) > 0, "%s", strings.TrimSpace(viewText(b.View)))
	case *journal.Expired:
		add(true, "%s", InterruptionID(frame, b.Call, b.Stage))
	case *journal.Judged:
		add(true, "%d", b.N)
		add(b.Final, "final %s", b.Text)
	case *journal.Confirmed:
		add(true, "batch %d upto %d", b.N, b.Upto)
		add(b.Found, "found")
	case *journal.Absent:
		add(true, "%s", b.ID)
	case *journal.Failed:
		add(true, "%s %s", b.ID, b.Code)
		add(b.Unknown, "unknown")
		add(b.RetryAt > 0, "retry at %d", b.RetryAt)
	case *journal.Fired:
		add(true, "%s", b.ID)
	case *journal.Finished:
		add(b.Cancelled, "cancelled")
		add(b.Tripped, "tripped")
		add(b.At >= 0, "at %d: %s", b.At, itemText(s.m.Frame(frame).At(b.At)))
		add(b.At < 0 && !b.Cancelled, "text %q", b.Text)
	default:
		saidText(b, add)
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

func plannedText(pc *journal.PlannedCall) string {
	text := fmt.Sprint(pc.P)
	if pc.Gate != journal.Allow {
		text += ":" + string(pc.Gate)
	}
	if pc.Unreadable {
		text += ":unreadable"
	}
	if pc.Twin {
		text += ":twin"
	}
	if !pc.Output.IsZero() {
		text += ":output"
	}
	return text
}
