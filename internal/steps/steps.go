// Package steps is the loop of a run whose effects are carried out elsewhere, as pure data: an
// engine keeps a Loop where it keeps its own state, has each effect carried out by a
// pawl.Stepper in some process, and gives the Loop what came of it. What the engine remembers of
// a Loop are facts, messages and outcomes in the order in which it gave them, so that the same
// calls make the same Loop again.
//
// The ledger of the run is what the engine remembers. The run's store has a copy of it, a
// projection, which every step brings up to date before it acts.
package steps

import (
	"errors"
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// Ref names an effect of a run.
type Ref struct {
	Frame string
	ID    journal.EffectID
}

// Delta is what the projection lacks.
type Delta struct {
	// After is how many facts the projection has, Facts are those behind them.
	After uint64
	Facts []journal.Fact
	// Consume are the keys of messages that the run has taken.
	Consume []string
}

// Head is the number of facts that the projection has with the delta.
func (d Delta) Head() uint64 { return d.After + uint64(len(d.Facts)) }

// Loop is a run. It is not safe for concurrent use.
type Loop struct {
	// M is the run as it stands. It is only read.
	M *machine.Machine

	stored  uint64
	tail    []journal.Fact // behind stored
	consume []string
	seen    []string // the keys of all messages
	known   map[string]bool
	early   []journal.Entry // cannot be taken yet
}

// Open returns the loop of a run whose projection has these facts.
func Open(facts []journal.Fact) (*Loop, error) {
	l := &Loop{M: machine.New(), known: make(map[string]bool)}
	for _, f := range facts {
		if err := l.M.Replay(f); err != nil {
			return nil, err
		}
	}
	l.stored = l.M.Facts()
	return l, nil
}

// Saved is what goes over to the next loop of a run, besides the ledger: what the projection
// lacks, the keys of the messages that the run has had, and those that it cannot take yet.
type Saved struct {
	Delta Delta
	Seen  []string
	Early []journal.Entry
}

// Flush hands out what the run took, as Next does, and no effect.
func (l *Loop) Flush() { l.tail = append(l.tail, l.M.Flush().Facts...) }

// Save returns what Restore needs. Nothing may be in flight.
func (l *Loop) Save() Saved {
	l.Flush()
	return Saved{Delta: l.Delta(), Seen: slices.Clone(l.seen), Early: slices.Clone(l.early)}
}

// Restore goes on from what an earlier loop of the run saved; facts are those of the projection.
func Restore(facts []journal.Fact, s Saved) (*Loop, error) {
	if uint64(len(facts)) < s.Delta.After {
		return nil, errors.New("pawl: the run's store has lost facts")
	}
	l, err := Open(facts[:s.Delta.After])
	if err != nil {
		return nil, err
	}
	for _, f := range s.Delta.Facts {
		if err := l.M.Replay(f); err != nil {
			return nil, err
		}
	}
	l.tail, l.consume, l.seen, l.early = slices.Clone(s.Delta.Facts), slices.Clone(s.Delta.Consume), slices.Clone(s.Seen), slices.Clone(s.Early)
	for _, key := range l.seen {
		l.known[key] = true
	}
	return l, nil
}

// Step steps a fact of the engine's own: a claim, or that a failure is to be tried again.
func (l *Loop) Step(b journal.Body, now int64) error {
	f := journal.Fact{Time: now, Body: b}
	if err := l.M.Check(f); err != nil {
		return err
	}
	l.M.Step(f)
	return nil
}

// Next returns the effects to start now, and where the run stands.
func (l *Loop) Next(now int64) ([]machine.Effect, machine.Status) {
	for i := 0; i < len(l.early); i++ {
		if _, err := l.M.Take(l.fact(l.early[i], now)); !errors.Is(err, machine.ErrInFlight) {
			l.consume = append(l.consume, l.early[i].Key)
			l.early = slices.Delete(l.early, i, i+1)
			i--
		}
	}
	rd := l.M.Ready(now)
	l.tail = append(l.tail, rd.Facts...)
	l.M.Advance(l.M.Facts()) // whatever the engine remembers is durable
	return slices.Clone(rd.Effects), rd.Status
}

// fact is what a message asks for; what cannot be read asks for nothing.
func (l *Loop) fact(e journal.Entry, now int64) journal.Fact {
	f, err := journal.Decode(e.Body)
	if err != nil {
		return journal.Fact{Time: now}
	}
	f.Time = now
	return f
}

// Take takes a message, unless the run had it before. It reports whether that changed anything; the error
// says why the run refuses it.
func (l *Loop) Take(e journal.Entry, now int64) (stepped bool, err error) {
	if l.known[e.Key] {
		return false, nil
	}
	l.known[e.Key] = true
	l.seen = append(l.seen, e.Key)
	f, err := journal.Decode(e.Body)
	if err == nil {
		f.Time = now
		stepped, err = l.M.Take(f)
	}
	if errors.Is(err, machine.ErrInFlight) {
		l.early = append(l.early, e)
	} else {
		l.consume = append(l.consume, e.Key)
	}
	return stepped, err
}

// End steps how an effect ended; nil says that it ended without an outcome, and is not to be
// started again before the next claim.
func (l *Loop) End(of Ref, outcome journal.Body, now int64) error {
	_, err := l.M.End(of.Frame, of.ID, outcome, now)
	return err
}

// EndStored folds the outcome of an effect that is the projection's newest fact. Everything before is in the
// projection.
func (l *Loop) EndStored(f journal.Fact) error {
	if l.stored != l.M.Facts() {
		return errors.New("pawl: an outcome was stored before what precedes it")
	}
	if err := l.M.Replay(f); err != nil {
		return err
	}
	l.stored = l.M.Facts()
	return nil
}

// Delta returns what the projection lacks of what Next handed out.
func (l *Loop) Delta() Delta {
	return Delta{After: l.stored, Facts: slices.Clone(l.tail), Consume: slices.Clone(l.consume)}
}

// Stored says that the projection has a delta.
func (l *Loop) Stored(d Delta) {
	if head := d.Head(); head > l.stored {
		l.tail = slices.Delete(l.tail, 0, int(head-l.stored))
		l.stored = head
	}
	l.consume = slices.DeleteFunc(l.consume, func(key string) bool { return slices.Contains(d.Consume, key) })
}

// Wakes returns when time alone is a reason to call Next, in Unix milliseconds; 0 is never.
func (l *Loop) Wakes() int64 { return l.M.Wakes(len(l.early)) }

// Alone says that an effect is carried out while no outcome of another is taken: what it does to
// the projection has to be the next fact, or it has to see what the others began.
func (l *Loop) Alone(of Ref) bool {
	if of.ID.Kind == journal.EffectEnter {
		return true
	}
	f := l.M.Frame(of.Frame)
	info, ok := f.Call(of.ID)
	return ok && of.ID.Kind == journal.EffectTool && info.Spec.Class == journal.Transactional
}

// Once says that an effect is not carried out again when nobody knows what became of it: a new
// claim finds out.
func (l *Loop) Once(of Ref) bool { return !l.M.Frame(of.Frame).Repeatable(of.ID) }
