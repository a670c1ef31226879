package machine

import (
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// outOfTurns says that the bound on turns is reached.
func (f *Frame) outOfTurns() bool { return f.maxTurns > 0 && f.turns >= f.maxTurns }

// handles says that the application has a handler for that error.
func handles(man *journal.Manifest, kind journal.Handles) bool {
	return man != nil && slices.Contains(man.Handles, kind)
}

// Unhandled returns the error that waits for its handler, and the ordinal under which it is
// handled; empty if there is none [M20.2].
func (f *Frame) Unhandled() (kind journal.Handles, n int) {
	r := f.last()
	switch {
	case f.handled != nil || r == nil || !r.whole() || r.judgeDue() || f.end() != nil || f.turn.open || f.turn.again:
		return "", 0
	case !f.followed() && r.planned.Final == journal.FinalRefusal:
		return journal.HandlesRefusal, r.n
	case !f.followed() && r.planned.Final == journal.FinalInvalid:
		return journal.HandlesInvalid, r.n
	case f.outOfTurns() && handles(f.turn.manifest, journal.HandlesMaxTurns):
		return journal.HandlesMaxTurns, f.turns + 1
	}
	return "", 0
}

// failed says that the newest response is a refusal or invalid [M20.1].
func (f *Frame) failed() bool {
	r := f.last()
	return !f.followed() && (r.planned.Final == journal.FinalRefusal || r.planned.Final == journal.FinalInvalid)
}

func (f *Frame) handleDue(id journal.EffectID) bool {
	kind, n := f.Unhandled()
	return kind != "" && id == effect(journal.EffectHandle, n)
}

// [M20.3]
func (f *Frame) checkHandled(b *journal.Handled) error {
	message := !b.Item.IsZero()
	switch {
	case !f.handleDue(effect(journal.EffectHandle, b.N)):
		return notDue("no error is to be handled under %d", b.N)
	case b.Declined && (b.Text != "" || message):
		return notDue("a handler that declines says nothing")
	case message && (b.Item.Type() != item.TypeMessage || b.Item.Head().Role != "assistant"):
		return notDue("what a handler puts in the history is a message of the assistant")
	}
	return nil
}

// foldHandled records the final output of a handler, or the error that stands [M20.4].
func (f *Frame) foldHandled(b *journal.Handled) {
	kind, n := f.Unhandled()
	id := effect(journal.EffectHandle, b.N)
	f.landed(id)
	switch {
	case f.closed():
		return
	case b.Declined:
		f.declined = &journal.Failed{ID: id, Code: string(kind)}
		f.fails(f.declined)
		return
	}
	f.handled, f.handledFrom, f.handledAt = b, len(f.history), -1
	if r := f.last(); n == r.n {
		f.handledFrom = r.first
	}
	if !b.Item.IsZero() {
		f.handledAt = len(f.history)
		f.extend([]item.Item{b.Item})
		f.settled = len(f.history)
	}
}

// Declined returns the failure of the newest handler that declined, nil if none did.
func (f *Frame) Declined() *journal.Failed { return f.declined }

// end returns how the frame ends as it stands, nil if it goes on [M14.1] [M20.5] [M21.4].
func (f *Frame) end() *journal.Finished {
	r := f.last()
	switch {
	case f.handled != nil && f.handledAt >= 0:
		return &journal.Finished{At: f.handledAt}
	case f.handled != nil:
		return &journal.Finished{At: -1, Text: f.handled.Text}
	case r == nil || f.followed():
		return nil
	}
	return r.final()
}

// Candidate returns what guardrails on the output are asked about, or the final output: an
// item of the history or, with At -1, a text. It is nil if there is none.
func (f *Frame) Candidate() *journal.Finished {
	if f.finished != nil {
		return f.finished
	}
	return f.end()
}
