package machine

import (
	"fmt"
	"slices"

	"github.com/pawl-agents/pawl/journal"
)

func (f *Frame) checkStarted(s *journal.Started) error {
	switch {
	case f.started != nil:
		return notDue("the run has started")
	case s.Run == "" || s.Agent == "":
		return notDue("a run needs an id and an agent")
	}
	return checkBinding(s)
}

// checkBinding checks what a run or a nested one continues.
func checkBinding(s *journal.Started) error {
	managed := s.Conversation != "" || s.Previous != "" || s.Auto
	switch {
	case s.Machine > Version:
		return fmt.Errorf("%w: rules of version %d", journal.ErrNewerJournal, s.Machine)
	case s.Session != nil && managed:
		return notDue("a session and a server-managed conversation exclude each other")
	case s.Conversation != "" && (s.Previous != "" || s.Auto):
		return notDue("a conversation and a previous response exclude each other")
	}
	switch s.Guards {
	case journal.GuardsNone, journal.GuardsBlocking, journal.GuardsParallel, journal.GuardsBoth:
		return nil
	}
	return notDue("guards %q", s.Guards)
}

// [M1.9] A call that may have happened happened in the run that was copied: under
// the fork's own key nobody could tell.
func (f *Frame) checkForked(b *journal.Forked) error {
	switch {
	case b.Run == "", b.Run == f.m.id && (f.session != nil || b.Session == nil):
		return notDue("a fork needs an id of its own")
	case b.Session != nil && f.managed():
		return notDue("a session and a server-managed conversation exclude each other")
	case f.started.Conversation != "":
		return notDue("two runs cannot share conversation %q", f.started.Conversation)
	case f.m.Exposed():
		return notDue("a call may have taken effect")
	}
	for o := range f.tree() { // [M17.12]
		if o.parent != nil && (o.session != nil || o.started.Conversation != "") {
			return notDue("two runs cannot share what frame %q continues", o.name)
		}
	}
	return nil
}

func (f *Frame) checkClaimed(b *journal.Claimed) error {
	if b.Epoch <= f.m.epoch {
		return notDue("epoch %d is not newer than %d", b.Epoch, f.m.epoch)
	}
	return nil
}

func (f *Frame) checkLoaded(b *journal.Loaded) error {
	if f.loaded {
		return notDue("the history is loaded")
	}
	if len(b.View) == 0 {
		return nil
	}
	places := slices.Concat(b.Items, b.Healed, f.started.Input)
	return checkView(b.View, places, f.unsent(len(places)))
}
