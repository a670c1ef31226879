package refmodel

import (
	"fmt"
	"slices"
	"strings"
)

// player plays a run.
type player struct {
	run    *Run
	end    *End
	always map[string]Decision // by tool: the newest decision that was extended to it
}

// Play says what a run comes to if nothing goes wrong.
func Play(run *Run) *End {
	p := &player{run: run, end: &End{Effects: map[string]Effect{}}, always: map[string]Decision{}}
	for _, text := range run.Before {
		p.say("user", text)
	}
	p.say("user", run.Input)
	for n, turn := range run.Turns {
		if run.MaxTurns > 0 && n == run.MaxTurns {
			p.end.Failed = "max_turns" // [M2.2] rule 14
			return p.end
		}
		p.end.Requests = append(p.end.Requests, len(p.end.Conversation))
		if p.turn(turn) {
			return p.end
		}
	}
	return p.end
}

func (p *player) say(who, what string) {
	p.end.Conversation = append(p.end.Conversation, who+" "+what)
}

// turn plays a turn and reports whether the run is over.
func (p *player) turn(turn Turn) (over bool) {
	calls := distinct(turn.Calls)
	if !p.run.TellUnknown && slices.ContainsFunc(calls, func(c Call) bool { return p.tool(c) == nil }) {
		p.end.Failed = "tool_not_found" // before any call of the response is started
		return true
	}
	if turn.Text != "" {
		p.say("says", turn.Text)
	}
	for _, c := range calls {
		p.say("call", fmt.Sprintf("%s %s %s", c.ID, c.Tool, c.Arguments()))
	}
	if len(turn.Calls) == 0 { // [M7.8] a response without calls ends the run
		p.end.Output = turn.Text
		return true
	}
	decided := p.decide(calls)
	var results []result
	for _, c := range calls { // outputs enter the history in call order
		text, ran := p.output(c, decided[c.ID])
		p.say("output", c.ID+" "+text)
		if ran && !p.run.Decreed[c.ID] { // [M14.3]
			results = append(results, result{c.Tool, text})
		}
	}
	return p.after(results)
}

// distinct drops calls that repeat another one of the same answer [M7.5].
func distinct(calls []Call) (list []Call) {
	for _, c := range calls {
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

func (p *player) tool(c Call) *Tool {
	i := slices.IndexFunc(p.run.Tools, func(t Tool) bool { return t.Name == c.Tool })
	if i < 0 {
		return nil
	}
	return &p.run.Tools[i]
}

// decide finds what governs the calls of a turn. People are shown all open approvals at once and
// decide each; what they extend to the tool covers its other calls, the later ones too, unless those
// have a decision of their own [M9.4] [M9.6] [M9.9].
func (p *player) decide(calls []Call) map[string]*Decision {
	decided := map[string]*Decision{}
	var open []Call
	for _, c := range calls {
		t := p.tool(c)
		if t == nil || t.denies(c) {
			continue
		}
		if t.Gate == Open && c.Bad {
			continue
		}
		if d, ok := p.always[c.Tool]; ok && (d.Reject || t.asks(c)) {
			decided[c.ID] = &d
			continue
		}
		if t.asks(c) {
			open = append(open, c)
		}
	}
	for _, c := range open {
		d := p.run.Decisions[c.ID]
		p.end.Asked = append(p.end.Asked, c.ID)
		decided[c.ID] = &d
		if d.Always {
			p.always[c.Tool] = d
		}
	}
	return decided
}

// asks says that somebody has to approve the call: the rule asks, or cannot be asked because the
// arguments cannot be read.
func (t *Tool) asks(c Call) bool { return t.Gate == Asks || t.Gate != Open && c.Bad }

// denies says that the rule denies the call.
func (t *Tool) denies(c Call) bool { return t.Gate == Denies && !c.Bad }

// output says what the model reads for a call, and whether its body ran.
func (p *player) output(c Call, d *Decision) (text string, ran bool) {
	t := p.tool(c)
	n, note := c.N, ""
	switch {
	case t == nil:
		return NotFoundText, false
	case t.denies(c):
		return RejectedText, false
	case d != nil && d.Reject && d.Message != "":
		return d.Message, false
	case d != nil && d.Reject:
		return RejectedText, false
	case d != nil && d.Edit != 0 && slices.Contains(p.end.Asked, c.ID): // an edit is of its own call only [M9.7]
		n = d.Edit
		note = fmt.Sprintf("The reviewer changed the arguments to {\"n\":%d}.\n", n)
	case c.Bad:
		return BadText, false
	}
	p.end.Effects[c.ID] = Effect{Tool: t.Name, N: n, Once: t.Once}
	if t.Fails {
		return note + "The tool failed: " + FailText(c.ID), true
	}
	return note + DidText(c.ID), true
}

// result is what a body that ran gave the model.
type result struct{ tool, text string }

// after says whether the run ends behind the tools of a turn [M14.1].
func (p *player) after(results []result) (over bool) {
	switch p.run.After {
	case AfterFirst:
		if len(results) > 0 {
			p.end.Output = results[0].text
			return true
		}
	case AfterNames:
		for _, r := range results {
			if slices.Contains(p.run.StopAt, r.tool) {
				p.end.Output = r.text
				return true
			}
		}
	case AfterTwo:
		if len(results) >= 2 {
			p.end.Output = Joined(texts(results))
			return true
		}
	}
	return false
}

func texts(results []result) (list []string) {
	for _, r := range results {
		list = append(list, r.text)
	}
	return list
}

// Joined is the output that the function of AfterTwo makes.
func Joined(texts []string) string { return strings.Join(texts, "+") }

// Arguments are the arguments of a call as the model writes them.
func (c Call) Arguments() string {
	if c.Bad {
		return fmt.Sprintf(`{"n":"%d"}`, c.N)
	}
	return fmt.Sprintf(`{"n":%d}`, c.N)
}
