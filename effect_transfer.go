package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// callOf is the call that an effect is about.
func callOf(id journal.EffectID) journal.EffectID {
	return journal.EffectID{Kind: journal.EffectTool, N: id.N, P: id.P}
}

// beforeTransfer refuses a handoff that is gone or another one than when it was planned, and
// records what leads to one that somebody is told of: a key must not come to mean another call.
func (f *frame) beforeTransfer(id journal.EffectID) error {
	call := callOf(id)
	if err := f.changed(call); err != nil {
		return err
	}
	if info, _ := f.m.Call(call); f.tool(info.Spec.Name).handoff.on == nil {
		return nil
	}
	return f.d.commit(nil)
}

// transfer hands the conversation over. The filter comes first: it can be asked again, and
// what is wrong with its answer is found before OnHandoff has done anything [M18.4].
func (f *frame) transfer(id journal.EffectID) (journal.Body, error) {
	call := callOf(id)
	info, _ := f.m.Call(call)
	t := f.tool(info.Spec.Name)
	to := t.handoff.agent
	h := HandoffCall{RunContext: f.runContext(), To: to, Handoff: t.name, ID: info.CallID, Key: f.m.KeyOf(call), Arguments: argumentsOf(f.m.Arguments(call))}
	b := &journal.Transferred{N: id.N, P: id.P, Agent: f.team.key(to)}
	var err error
	if b.Output, err = answer(info.Item, transferText(to)); err != nil {
		return nil, err
	}
	if err := f.filterHandoff(b, h, t.handoff); err != nil {
		return nil, &FilterError{Filter: fmt.Sprintf("the filter of handoff %q", t.name), Err: err}
	}
	if err := t.handedOver(f.d.ctx, &h); err != nil {
		return nil, err
	}
	return b, nil
}

// handedOver calls OnHandoff. A panic is an error.
func (t *Tool) handedOver(ctx context.Context, h *HandoffCall) (err error) {
	if t.handoff.on == nil {
		return nil
	}
	defer panicked("OnHandoff of handoff", t.name, &err)
	if err := t.handoff.on(ctx, h); err != nil {
		return because(fmt.Errorf("pawl: handoff %q: OnHandoff", t.name), err)
	}
	return nil
}

// filterHandoff asks what the next agent is to read.
func (f *frame) filterHandoff(b *journal.Transferred, call HandoffCall, h *handoff) error {
	filter := h.filter
	if filter == nil {
		filter = f.opts.HandoffFilter
	}
	if filter == nil {
		filter = f.nests()
	}
	if filter == nil {
		return nil
	}
	view, from, response, places := f.m.HandedOver(callOf(journal.EffectID{N: b.N, P: b.P}), b.Output)
	asSent(f.m, places)
	data := HandoffData{HandoffCall: call, History: viewItems(f.m, view)}
	if len(view) == 0 {
		_, from = f.m.InputEnd()
		data.History = present(places[:from])
	}
	data.PreHandoff, data.New = present(places[from:response]), present(places[response:])
	all := data.Items()
	list, err := filter.ask(f.d.ctx, &data)
	if err != nil {
		return err
	}
	if b.View, err = viewInstead(list, all, places); err != nil {
		return err
	}
	return unsendable(f.d.m.Check(journal.Fact{Frame: f.m.Name(), Body: b}))
}

// ask asks the filter. A panic is an error.
func (filter HandoffFilter) ask(ctx context.Context, h *HandoffData) (list []Item, err error) {
	defer panicked("the filter of handoff", h.Handoff, &err)
	return filter(ctx, h)
}

// viewInstead writes what a filter returned instead of a list as a view of the history, nil
// if it is the list.
func viewInstead(list, instead, places []Item) ([]journal.Span, error) {
	if slices.Equal(list, instead) {
		return nil, nil
	}
	if len(list) == 0 {
		return nil, errors.New("pawl: it returned no items")
	}
	if err := checkItems(list); err != nil {
		return nil, err
	}
	return spansOf(list, places), nil
}

// unsendable says why a model cannot be sent a view.
func unsendable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pawl: a model cannot be sent what it returned: %s", strings.TrimPrefix(err.Error(), machine.ErrNotDue.Error()+": "))
}
