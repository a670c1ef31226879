package machine

import (
	"strconv"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// bodies are the commands that step a fact.
var bodies = map[string]func(*script, command) journal.Body{
	"start": (*script).started,
	"fork": func(s *script, c command) journal.Body {
		return &journal.Forked{Run: c.options["run"], Session: sessionRef(c)}
	},
	"claim": func(s *script, c command) journal.Body {
		return &journal.Claimed{Epoch: uint64(c.option(s, "epoch", int(s.m.Epoch())+1)), Owner: journal.Owner{Host: "host"}, Gone: c.has("gone")}
	},
	"resume": func(s *script, c command) journal.Body {
		return &journal.Resumed{MaxTurns: c.option(s, "max-turns", 0), Context: c.options["context"]}
	},
	"loaded":   (*script).loaded,
	"prepared": (*script).prepared,
	"intended": func(s *script, c command) journal.Body {
		return &journal.Intended{ID: s.effect(c.word(1)), Upto: c.option(s, "upto", 0), NotAfter: int64(c.option(s, "not-after", 0))}
	},
	"respond": (*script).responded,
	"plan":    (*script).planned,
	"transfer": func(s *script, c command) journal.Body {
		id := s.effect("t" + c.word(1) + ".0")
		b := &journal.Transferred{N: id.N, P: id.P, Agent: c.options["agent"], View: s.view(c.input)}
		if known := s.f.find(id); known != nil {
			b.Output = s.f.output(known, `{"assistant":"`+b.Agent+`"}`)
		}
		if of, ok := c.options["output-of"]; ok {
			b.Output = item.FunctionOutput(of, "misplaced")
		}
		return b
	},
	"checked": (*script).checked,
	"handled": (*script).handled,
	"added": func(s *script, c command) journal.Body {
		return &journal.Added{Items: s.items(c.input), By: "ann", At: s.now}
	},
	"admitted": func(s *script, c command) journal.Body { return &journal.Admitted{N: s.number(c.word(1))} },
	"observed": func(s *script, c command) journal.Body {
		return &journal.Observed{N: uint64(s.number(c.word(1)))}
	},
	"decide": (*script).decided,
	"settle": (*script).settled,
	"expired": func(s *script, c command) journal.Body {
		frame, call, stage, err := ParseInterruptionID(c.word(1))
		if err != nil {
			s.t.Fatal(err)
		}
		s.enter(frame)
		call.A = c.option(s, "attempt", 0)
		return &journal.Expired{Call: call, Stage: stage}
	},
	"judge": func(s *script, c command) journal.Body {
		return &journal.Judged{N: s.number(c.word(1)), Final: c.has("final"), Text: c.text()}
	},
	"confirm": func(s *script, c command) journal.Body {
		b := &journal.Confirmed{N: s.f.batches + 1, Found: c.has("found")}
		if s.f.open != nil {
			b.Upto = s.f.open.upto
		}
		b.N, b.Upto = c.option(s, "n", b.N), c.option(s, "upto", b.Upto)
		return b
	},
	"absent": func(s *script, c command) journal.Body { return &journal.Absent{ID: s.effect(c.word(1))} },
	"fail": func(s *script, c command) journal.Body {
		return &journal.Failed{ID: s.effect(c.word(1)), Code: "error", Error: c.text(), Unknown: c.has("unknown"), RetryAt: int64(c.option(s, "retry-at", 0))}
	},
	"fired":  func(s *script, c command) journal.Body { return &journal.Fired{ID: s.effect(c.word(1))} },
	"cancel": func(s *script, c command) journal.Body { return &journal.Cancelled{By: "ann"} },
	"finish": func(s *script, c command) journal.Body {
		return &journal.Finished{Cancelled: c.has("cancelled"), At: c.option(s, "at", -1), Text: c.text()}
	},
}

func sessionRef(c command) *journal.SessionRef {
	switch kind := c.options["session"]; kind {
	case "own", "plain", "batches":
		return &journal.SessionRef{ID: "s-1", Backend: "db", Own: kind == "own", Batches: kind == "batches"}
	}
	return nil
}

// started reads: start [run=ID] [agent=KEY] [session=own|plain|batches] [conversation=ID]
// [previous=ID] [auto] [unique] [max-turns=N] [parallel=N], and input items.
func (s *script) started(c command) journal.Body {
	b := &journal.Started{Run: "run-1", Agent: "desk", Session: sessionRef(c), Conversation: c.options["conversation"],
		Previous: c.options["previous"], Auto: c.has("auto"), UniqueCallIDs: c.has("unique"), Input: s.items(c.input),
		MaxTurns: c.option(s, "max-turns", 0), Parallel: c.option(s, "parallel", 0), Machine: c.option(s, "machine", Version)}
	if len(b.Input) == 0 {
		b.Input = []item.Item{item.UserText("hello")}
	}
	if s.frame != "" {
		b.Run, b.Agent = "", "helper"
	}
	if run, ok := c.options["run"]; ok {
		b.Run = run
	}
	b.Guards, b.Context = journal.Guards(c.options["guards"]), c.options["context"]
	if agent, ok := c.options["agent"]; ok {
		b.Agent = agent
	}
	return b
}

// view reads what is before the word "view": "view FROM UPTO", or "view" and an item.
func (s *script) view(lines []string) (view []journal.Span) {
	for _, l := range lines {
		part, ok := strings.CutPrefix(l, "view ")
		words := strings.Fields(part)
		switch {
		case !ok:
		case len(words) == 2 && words[0][0]-'0' < 10:
			view = append(view, journal.Span{From: s.number(words[0]), Upto: s.number(words[1])})
		default:
			view = append(view, journal.Span{Item: s.items([]string{part})[0]})
		}
	}
	return view
}

// loaded reads items; a line that begins with "healed " is a healing output, one with "view" a part of a view.
func (s *script) loaded(c command) journal.Body {
	b := &journal.Loaded{View: s.view(c.input)}
	for _, l := range c.input {
		if strings.HasPrefix(l, "view ") {
			continue
		}
		if healed, ok := strings.CutPrefix(l, "healed "); ok {
			b.Healed = append(b.Healed, s.items([]string{healed})...)
		} else {
			b.Items = append(b.Items, s.items([]string{l})...)
		}
	}
	return b
}

// prepared reads the manifest: a line is "tool NAME [ask|deny] [readonly|idempotent|
// transactional] [tell|wait] [recover] [timeout=MS] [expires=MS [fails]] [handoff=AGENT]" or "use first|names|custom [NAME ...]". Without a line the turn
// shares the manifest of the newest one. A tool with agent=KEY runs that agent, and with "told" the model hears of its failure. A line
// "view ..." is a part of the turn's view, "agent KEY" another agent than has the conversation.
func (s *script) prepared(c command) journal.Body {
	b := &journal.Prepared{N: c.option(s, "n", s.f.turns+1), Upto: c.option(s, "upto", s.f.settled)}
	b.Same = c.option(s, "same", b.N)
	b.View = s.view(c.input)
	if len(c.input) == len(b.View) {
		if _, turn := s.f.Manifest(); turn > 0 {
			b.Same = c.option(s, "same", turn)
			return b
		}
	}
	b.Manifest = &journal.Manifest{Agent: s.f.Agent()}
	for _, l := range c.input {
		line := parseCommand(l)
		manifestWord(b.Manifest, line)
		switch line.word(0) {
		case "agent":
			b.Manifest.Agent = line.word(1)
		case "tool":
			b.Manifest.Tools = append(b.Manifest.Tools, s.tool(line))
		case "use":
			b.Manifest.ToolUse, b.Manifest.StopAt = line.word(1), line.words[2:]
		}
	}
	return b
}

func (s *script) tool(line command) journal.ToolSpec {
	t := journal.ToolSpec{Name: line.word(1), Identity: "local/" + line.word(1), Timeout: int64(line.option(s, "timeout", 0)),
		Recover: line.has("recover"), Expires: int64(line.option(s, "expires", 0)), ExpiryFails: line.has("fails"),
		Agent: line.options["agent"], TellFailure: line.has("told"), Handoff: line.options["handoff"], Guarded: line.has("guarded")}
	if line.has("anonymous") {
		t.Identity = ""
	}
	for _, w := range line.words[2:] {
		switch w {
		case "ask", "deny":
			s.gates[t.Name] = journal.Gate(w)
		case "readonly", "idempotent", "transactional":
			t.Class = journal.Class(w)
		case "tell", "wait":
			t.OnUnknown = journal.OnUnknown(w)
		}
	}
	return t
}

// responded reads: respond [of=EFFECT] [id=RESPONSE] [tokens=N], and items.
func (s *script) responded(c command) journal.Body {
	b := &journal.Responded{ID: s.f.modelID(), ResponseID: c.options["id"], Items: s.items(c.input)}
	if of, ok := c.options["of"]; ok {
		b.ID = s.effect(of)
	}
	if n, ok := c.options["tokens"]; ok {
		b.Usage = &journal.Usage{Total: int64(s.number(n))}
	}
	return b
}

// planned plans the newest response as a plain driver does, and then changes what
// the lines say: "POSITION WORD ...", for example "0 deny" or "1 reject TEXT".
func (s *script) planned(c command) journal.Body {
	n, items, man := s.f.Response()
	b := &journal.Planned{N: c.option(s, "n", n)}
	seen := make(map[string]bool)
	for p, it := range items {
		if it.Type() == item.TypeMessage {
			b.Final, b.FinalAt = journal.FinalMessage, p
		}
		if it.NeedsOutput() {
			b.Calls = append(b.Calls, s.plannedCall(p, it, man, seen))
		}
		s.planHosted(b, it, len(man.Tools))
	}
	if len(b.Calls) > 0 {
		b.Final, b.FinalAt = journal.FinalNone, 0
	}
	if f, ok := c.options["final"]; ok {
		b.Final, b.FinalAt = journal.Final(strings.TrimPrefix(f, "none")), c.option(s, "at", 0)
	}
	for _, l := range c.input {
		words := strings.SplitN(l, " ", 3)
		for i := range b.Calls {
			if strconv.Itoa(b.Calls[i].P) == words[0] {
				s.replan(&b.Calls[i], words[1], strings.Join(words[2:], ""), items)
			}
		}
	}
	if c.has("without-calls") {
		b.Calls = nil
	}
	return b
}

func (s *script) plannedCall(p int, it item.Item, man *journal.Manifest, seen map[string]bool) journal.PlannedCall {
	head := it.Head()
	pc := journal.PlannedCall{P: p, Tool: -1, Gate: s.gates[head.Name]}
	for i := range man.Tools {
		if man.Tools[i].Name == head.Name {
			pc.Tool = i
		}
	}
	if request, err := it.ApprovalRequest(); err == nil {
		pc.Digest, _, _ = item.DigestArguments(request.Arguments)
		if recorded, known, _ := s.f.Recorded(head.CallID, head.Name, pc.Digest); known {
			pc.Output = recorded
		}
		return pc
	}
	fc, err := it.FunctionCall()
	if err != nil { // a custom tool reads any text
		cc, _ := it.CustomToolCall()
		pc.Digest, _, _ = item.DigestArguments(cc.Input)
		return pc
	}
	pc.Digest, _, err = item.DigestArguments(fc.Arguments)
	recorded, known, _ := s.f.Recorded(head.CallID, head.Name, pc.Digest)
	key := head.CallID + head.Name + pc.Digest.String()
	switch {
	case seen[key]:
		pc.Twin, pc.Gate = true, journal.Allow
	case pc.Tool < 0:
		pc.Output, pc.Gate = fc.Output("no such tool"), journal.Allow
	case known:
		pc.Output, pc.Gate = recorded, journal.Allow
	case err != nil:
		pc.Unreadable, pc.Output = true, fc.Output("bad arguments")
	}
	seen[key] = true
	return pc
}

func (s *script) replan(pc *journal.PlannedCall, word, rest string, items []item.Item) {
	switch word {
	case "allow":
		pc.Gate = journal.Allow
	case "trip":
		pc.Checks = []journal.Check{{Name: rest, Tripped: true}}
	case "tool":
		pc.Tool = s.number(rest)
	case "at":
		pc.P = s.number(rest)
	case "twin":
		pc.Twin = true
	case "no-twin":
		pc.Twin = false
	case "unreadable":
		pc.Unreadable = true
	case "reject":
		pc.Reject = rest
	case "output":
		pc.Output = item.FunctionOutput(items[pc.P].Head().CallID, rest)
	case "output-of":
		pc.Output = item.FunctionOutput(rest, "misplaced")
	case "no-output":
		pc.Output = item.Item{}
	default:
		pc.Gate = journal.Gate(word)
	}
}

// decided reads: decide INTERRUPTION VERDICT [sticky] [args=JSON] [by=NAME] [why=WORD]
// [digest=none], and a text.
func (s *script) decided(c command) journal.Body {
	frame, call, stage, err := ParseInterruptionID(c.word(1))
	if err != nil {
		s.t.Fatal(err)
	}
	s.enter(frame)
	b := &journal.Decided{Call: call, Stage: stage, Verdict: journal.Verdict(c.word(2)), Sticky: c.has("sticky"),
		Arguments: c.options["args"], Text: c.text(), By: "ann", Why: c.options["why"]}
	if by, ok := c.options["by"]; ok {
		b.By = by
	}
	if known := s.f.find(call); known != nil && c.options["digest"] == "" {
		b.Digest = known.digest
	}
	if c.options["digest"] == "plan" {
		b.Digest = s.f.find(call).plan.Digest
	}
	return b
}

// settled reads: settle EFFECT OUTCOME [late] [running] [error], and the output's text, which
// is the error's with "error", or if there is no output.
func (s *script) settled(c command) journal.Body {
	b := &journal.Settled{ID: s.effect(c.word(1)), Outcome: journal.Outcome(c.word(2)), Late: c.has("late"), Running: c.has("running"), Checks: c.checks()}
	if b.Outcome == "done" {
		b.Outcome = journal.Done
	}
	known := s.f.find(b.ID)
	switch {
	case b.Outcome == journal.NotExecuted:
	case b.Outcome == journal.Pending, b.Outcome == journal.AsksAgain:
		b.Error = c.text()
	case known != nil:
		b.Output = s.f.output(known, c.text())
	}
	if c.has("error") {
		b.Error = c.text()
	}
	if c.has("no-output") {
		b.Output = item.Item{}
	}
	if of, ok := c.options["output-of"]; ok {
		b.Output = item.FunctionOutput(of, "misplaced")
	}
	return b
}
