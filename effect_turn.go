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
	shown      bool     // output of the newest attempt was visible
	approved   int      // the attempt that may be repeated though its server may have processed it
}

// prepare makes the turn's request. What does not change between turns is made once.
func (f *frame) prepare(e machine.Effect) (journal.Body, error) {
	want, err := f.wanted(e.ID.N)
	if err != nil {
		return nil, err
	}
	b := &journal.Prepared{N: e.ID.N, Upto: e.Upto}
	if f.opts.FilterInput != nil {
		if b.View, err = f.filterInput(e, &want); err != nil {
			return nil, &FilterError{Filter: "RunOptions.FilterInput", Err: err}
		}
	}
	o := f.offering(want)
	if o.recorded == 0 {
		o.recorded = f.recorded(o)
	}
	if b.Same = o.recorded; b.Same == 0 {
		b.Same, b.Manifest = e.ID.N, o.manifest
		o.recorded = e.ID.N
	}
	if len(b.View) > 0 {
		if err := unsendable(f.d.m.Check(journal.Fact{Frame: f.m.Name(), Body: b})); err != nil {
			return nil, &FilterError{Filter: "RunOptions.FilterInput", Err: err}
		}
	}
	return b, nil
}

// recorded returns the turn before that recorded the offer's manifest, 0 if the newest
// one's is another.
func (f *frame) recorded(o *offer) int {
	man, turn := f.m.Manifest()
	if man == nil || !reflect.DeepEqual(man, o.manifest) {
		return 0
	}
	o.manifest = man
	return turn
}

func (f *frame) runContext() RunContext {
	return RunContext{Run: f.d.m.Run(), Agent: f.agent, Turn: f.m.Turn(), Value: f.opts.Context, Invocation: f.invoked}
}

// turnContext is what user code sees of a turn that is being prepared.
func (f *frame) turnContext(turn int) *RunContext {
	rc := f.runContext()
	rc.Turn = turn
	return &rc
}

// wanted asks the agent what it offers in a turn.
func (f *frame) wanted(turn int) (w wanted, err error) {
	a := f.agent
	if a.Instructions != nil {
		if w.instructions, err = a.SystemPrompt(f.d.ctx, f.turnContext(turn)); err != nil {
			return w, err
		}
	}
	if a.Prompt != nil {
		if w.prompt, err = a.prompt(f.d.ctx, f.turnContext(turn)); err != nil {
			return w, err
		}
	}
	if err := f.list(turn); err != nil {
		return w, err
	}
	for t := range f.callables() {
		if t.enabled == nil {
			continue
		}
		on, err := t.isEnabled(f.d.ctx, f.turnContext(turn))
		if err != nil {
			return w, err
		}
		if !on {
			w.disable(t.name)
		}
	}
	w.agent, w.listing, w.unforced = a, f.listing, f.unforced()
	return w, nil
}

// judge asks the custom tool-use behaviour.
func (f *frame) judge(e machine.Effect) (journal.Body, error) {
	if f.agent.ToolUse.decide == nil {
		return nil, &ConfigError{Field: "Agent.ToolUse", Problem: "the run was planned with a tool-use function the agent does not have any more"}
	}
	var results []ToolResult
	for _, r := range f.m.Results() {
		results = append(results, ToolResult{Tool: r.Name, CallID: r.CallID, Arguments: r.Arguments, Output: textOf(r.Output)})
	}
	rc := f.runContext()
	v, err := f.agent.ToolUse.decide(f.d.ctx, &rc, results)
	if err != nil {
		return nil, err
	}
	return &journal.Judged{N: e.ID.N, Final: v.Final, Text: strings.ToValidUTF8(v.Output, "\uFFFD")}, nil
}

// input returns what a request sends, growing what the last one sent where it can.
func (f *frame) input(e machine.Effect) model.Input {
	q := &f.request
	if e.From != q.from || q.upto > e.Upto || !sameView(e.View, q.view) {
		q.input, q.view, q.from, q.upto = model.NewInput(viewItems(f.m, e.View)...), e.View, e.From, e.From
	}
	q.input, q.upto = q.input.Append(itemsOf(f.m, q.upto, e.Upto)...), e.Upto
	return q.input
}

// sameView says that two views are one value.
func sameView(a, b []journal.Span) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
