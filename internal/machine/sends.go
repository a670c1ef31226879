package machine

import (
	"iter"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// base is what a request sends that has no view of its own: the items of a view, then the
// history from a place on [M6.3].
func (f *Frame) base() (view []journal.Span, from int) {
	if f.managed() {
		return f.chain.left, f.chain.covered
	}
	return f.view, f.viewEnd
}

// see makes a view what later requests send instead of the history so far [M18.7].
func (f *Frame) see(view []journal.Span) {
	if len(view) > 0 {
		f.view, f.viewEnd = view, f.settled
	}
}

// Sent returns the items of a request, or of what is to be prepared: those of its view,
// then those of its range.
func (f *Frame) Sent(e Effect) iter.Seq[item.Item] {
	return func(yield func(item.Item) bool) {
		for _, s := range e.View {
			if !s.Item.IsZero() {
				if !yield(s.Item) {
					return
				}
				continue
			}
			for it := range f.Items(s.From, s.Upto) {
				if !yield(it) {
					return
				}
			}
		}
		f.Items(e.From, e.Upto)(yield)
	}
}

// Places returns the items of the history below a place, zero where none is shown.
func (f *Frame) Places(upto int) []item.Item {
	list := make([]item.Item, upto)
	for i, s := range f.history[:upto] {
		if !s.dropped {
			list[i] = s.item
		}
	}
	return list
}

// unsent are the places below upto that the server's chain does not have; without one it
// is all of them.
func (f *Frame) unsent(upto int) []bool {
	unsent := make([]bool, upto)
	mark(unsent, []journal.Span{{From: f.chain.covered, Upto: upto}}, true)
	mark(unsent, f.chain.left, true)
	return unsent
}

func mark(places []bool, spans []journal.Span, is bool) {
	for _, s := range spans {
		for i := s.From; i < s.Upto; i++ {
			places[i] = is
		}
	}
}

// leftOut are the places of a managed run's request that its view does not send
// [M18.9].
func (f *Frame) leftOut(view []journal.Span, upto int) (left []journal.Span) {
	out := f.unsent(upto)
	mark(out, view, false)
	for i := range out {
		switch n := len(left); {
		case !out[i]:
		case n > 0 && left[n-1].Upto == i:
			left[n-1].Upto++
		default:
			left = append(left, journal.Span{From: i, Upto: i + 1})
		}
	}
	return left
}

// answered is what a call and its output have in common.
type answered struct {
	output item.Type
	callID string
}

// pairing counts the calls that have no output yet.
type pairing map[answered]int

// add takes the next item and says whether it may stand there: an output comes behind
// its call.
func (p pairing) add(it item.Item) bool {
	h := it.Head()
	key := answered{h.Type, h.CallID}
	switch {
	case item.IsCall(h.Type):
		p[answered{item.OutputType(h.Type), h.CallID}]++
	case !item.IsOutput(h.Type):
	case p[key] == 0:
		return false
	default:
		p[key]--
	}
	return true
}

// checkView says whether a model can be sent the view instead of the places that were not
// sent yet [M18.8].
func checkView(view []journal.Span, places []item.Item, unsent []bool) error {
	if len(view) == 0 {
		return nil
	}
	was, is := make(pairing), make(pairing)
	orphans := make([]bool, len(places)) // an old history may have outputs without a call
	calls := make(map[item.Head]bool)
	for i, it := range places {
		orphans[i] = !was.add(it)
		if h := it.Head(); item.IsCall(h.Type) {
			calls[callHead(h)] = true
		}
		if !unsent[i] {
			is.add(it)
		}
	}
	for n, s := range view {
		h := s.Item.Head()
		switch {
		case s.Item.IsZero() && s.From >= 0 && s.From < s.Upto && s.Upto <= len(places):
		case s.Item.IsZero() || s.From != 0 || s.Upto != 0:
			return notDue("part %d of the view is neither a range of the history nor an item", n)
		case item.IsCall(h.Type) && !calls[callHead(h)]:
			return notDue("the view has a call %q that nobody made", h.CallID)
		case !is.add(s.Item):
			return notDue("the view has an output of call %q that is not open there", h.CallID)
		}
		for i := s.From; i < s.Upto; i++ {
			if !unsent[i] {
				return notDue("the view has place %d twice, or it was sent before", i)
			}
			unsent[i] = false
			if !is.add(places[i]) && !orphans[i] {
				return notDue("the view has the output at %d without its call", i)
			}
		}
	}
	open, lacks := "", false
	//workflowcheck:ignore
	for key, n := range is { // the least is the same in any order
		if n > was[key] && (!lacks || key.callID < open) {
			open, lacks = key.callID, true
		}
	}
	if lacks {
		return notDue("the view has call %q without its output", open)
	}
	return nil
}

// callHead is what of a call's head nobody may make up.
func callHead(h item.Head) item.Head {
	return item.Head{Type: h.Type, CallID: h.CallID, Name: h.Name}
}
