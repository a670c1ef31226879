package pawl

import (
	"reflect"
	"strings"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
)

// request is what the drive keeps from turn to turn to build the next request from.
type request struct {
	input      model.Input
	view       []journal.Span // what of the input is not the range
	from, upto int
	offer      *offer   // of the newest turn
	others     []*offer // of turns before, with the same instructions and prompt
	turn       int      // the turn of the request
	attempts   int      // of that turn, before this drive
}

// prepare makes the turn's request. What does not change between turns is made once.
func (d *drive) prepare(e machine.Effect) (journal.Body, error) {
	want, err := d.wanted(e.ID.N)
	if err != nil {
		return nil, err
	}
	o := d.offering(want)
	b := &journal.Prepared{N: e.ID.N, Upto: e.Upto}
	if o.recorded == 0 {
		o.recorded = d.recorded(o)
	}
	if b.Same = o.recorded; b.Same == 0 {
		b.Same, b.Manifest = e.ID.N, o.manifest
		o.recorded = e.ID.N
	}
	return b, nil
}

// recorded returns the turn before that recorded the offer's manifest, 0 if the newest
// one's is another.
func (d *drive) recorded(o *offer) int {
	man, turn := d.m.Manifest()
	if man == nil || !reflect.DeepEqual(man, o.manifest) {
		return 0
	}
	o.manifest = man
	return turn
}

func (d *drive) runContext() RunContext {
	return RunContext{Run: d.m.Run(), Agent: d.agent, Turn: d.m.Turn(), Value: d.opts.Context}
}

// turnContext is what user code sees of a turn that is being prepared.
func (d *drive) turnContext(turn int) *RunContext {
	rc := d.runContext()
	rc.Turn = turn
	return &rc
}

// wanted asks the agent what it offers in a turn.
func (d *drive) wanted(turn int) (w wanted, err error) {
	a := d.agent
	if a.Instructions != nil {
		if w.instructions, err = a.SystemPrompt(d.ctx, d.turnContext(turn)); err != nil {
			return w, err
		}
	}
	if a.Prompt != nil {
		if w.prompt, err = a.prompt(d.ctx, d.turnContext(turn)); err != nil {
			return w, err
		}
	}
	for i := range a.Tools {
		t := &a.Tools[i]
		if t.enabled == nil {
			continue
		}
		on, err := t.isEnabled(d.ctx, d.turnContext(turn))
		if err != nil {
			return w, err
		}
		if !on {
			w.disable(t.name)
		}
	}
	w.unforced = d.unforced()
	return w, nil
}

// judge asks the custom tool-use behaviour.
func (d *drive) judge(e machine.Effect) (journal.Body, error) {
	if d.agent.ToolUse.decide == nil {
		return nil, &ConfigError{Field: "Agent.ToolUse", Problem: "the run was planned with a tool-use function the agent does not have any more"}
	}
	var results []ToolResult
	for _, r := range d.m.Results() {
		results = append(results, ToolResult{Tool: r.Name, CallID: r.CallID, Arguments: r.Arguments, Output: textOf(r.Output)})
	}
	rc := d.runContext()
	v, err := d.agent.ToolUse.decide(d.ctx, &rc, results)
	if err != nil {
		return nil, err
	}
	return &journal.Judged{N: e.ID.N, Final: v.Final, Text: strings.ToValidUTF8(v.Output, "\uFFFD")}, nil
}

// input returns what a request sends, growing what the last one sent where it can.
func (d *drive) input(e machine.Effect) model.Input {
	q := &d.request
	if e.From != q.from || q.upto > e.Upto || !sameView(e.View, q.view) {
		q.input, q.view, q.from, q.upto = model.NewInput(viewItems(d.m, e.View)...), e.View, e.From, e.From
	}
	q.input, q.upto = q.input.Append(itemsOf(d.m, q.upto, e.Upto)...), e.Upto
	return q.input
}

// sameView says that two views are one value.
func sameView(a, b []journal.Span) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
