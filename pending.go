package pawl

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// ErrInputRefused: the run takes no more input: it has ended or is about to, it is cancelled,
// or no turn is left that could read it. Nothing was added; start another run.
var ErrInputRefused = errors.New("pawl: the run takes no more input")

// AddInput gives a run more input. The model reads it in the next turn, behind the outputs of
// the calls that are open now, and once; the session gets it in that place. A response that
// would end the run does not while input is pending.
//
// It is recorded when AddInput returns. If somebody drives the run, AddInput waits until that
// driver takes it, between two effects or while tools run; if ctx ends first, nobody knows yet
// whether it does. So code that the driver itself runs, as instructions and filters, must not
// call it for its own run; from a hook, with the hook's context, it does not wait.
//
// ErrInputRefused if the run takes none; a *ConfigError for input that no run would take.
func (r *Runner) AddInput(ctx context.Context, run string, input Input) error {
	s, err := r.State(ctx, run)
	if err != nil {
		return err
	}
	rec, err := s.added(input)
	if err != nil {
		return err
	}
	if err := s.submitInput(ctx, r.store(), []journal.Record{rec}); err != nil {
		return err
	}
	if d, ok := ctx.Value(inHook{}).(*drive); ok && d.claimedRun == run && !d.over() {
		d.nudged.Store(true)
		return nil
	}
	if d, driven := r.active.Load(run); driven {
		d.(*drive).nudged.Store(true)
	}
	if err := r.tellEngine(ctx, run); err != nil {
		return s.refused(err)
	}
	if err := r.awaitInput(ctx, run, rec); err != nil {
		return s.refused(err)
	}
	return nil
}

// over says that the drive has ended. It is called from any goroutine.
func (d *drive) over() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

// inHook is the key of the drive in the context of its hooks.
type inHook struct{}

// awaitPause is how long AddInput waits at first for a driver to take what was added.
const awaitPause = 20 * time.Millisecond

// awaitInput sees to it that posted input is recorded: at once if nobody drives the run.
func (r *Runner) awaitInput(ctx context.Context, run string, rec journal.Record) error {
	for pause := awaitPause; ; pause = min(2*pause, tick) {
		if err := r.recordLate(ctx, run); err != nil && !errors.Is(err, ErrClaimed) {
			return err
		}
		s, err := r.State(ctx, run)
		if err != nil {
			return err
		}
		if s.took(rec) {
			return nil
		}
		waiting, err := r.store().Inbox(ctx, run)
		if err != nil {
			return err
		}
		if s.fold().Finished() != nil || !slices.ContainsFunc(waiting, func(e journal.Entry) bool { return e.Key == inputKey(rec) }) {
			if s, err = r.State(ctx, run); err != nil || s.took(rec) { // it was taken in between
				return err
			}
			return fmt.Errorf("%w: it went on meanwhile", ErrInputRefused)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("pawl: the input waits for the run's driver, and may be taken yet: %w", context.Cause(ctx))
		}
	}
}

// AddInput stages input on this copy of the state, as Runner.AddInput gives it to the run:
// resuming from the state submits it, once, however often the state is resumed.
func (s *RunState) AddInput(input Input) error {
	rec, err := s.added(input)
	if err != nil {
		return err
	}
	s.input = append(slices.Clip(s.input), rec)
	return nil
}

// PendingInput returns the input that waits for the next turn: what the run has recorded,
// then what is staged on this copy.
func (s *RunState) PendingInput() Input {
	var list Input
	for _, b := range s.fold().Pending() {
		list = append(list, b.Items...)
	}
	for _, rec := range s.input {
		if f, err := journal.Decode(rec); err == nil {
			list = append(list, f.Body.(*journal.Added).Items...)
		}
	}
	return list
}

// ClearPendingInput drops the input that is staged on this copy. What the run has recorded
// stays.
func (s *RunState) ClearPendingInput() { s.input = nil }

// added is the record of input for the run as it stands.
func (s *RunState) added(input Input) (rec journal.Record, err error) {
	if len(input) == 0 {
		return rec, &ConfigError{Field: "input", Problem: "is empty"}
	}
	if err := checkInput(input, false); err != nil {
		return rec, err
	}
	now := s.nextAdded(time.Now().UnixMilli())
	f := journal.Fact{Time: now, Body: &journal.Added{Items: slices.Clone(input), At: now}}
	if err := s.fold().Check(f); err != nil {
		return rec, s.refused(inputRefusal(err))
	}
	return journal.Encode(f, newSalt()), nil
}

// nextAdded is a time behind that of all input that the copy knows of: the same words, said
// twice, are two inputs.
func (s *RunState) nextAdded(now int64) int64 {
	for _, b := range s.fold().Added() {
		now = max(now, b.At+1)
	}
	for _, rec := range s.input {
		now = max(now, rec.Time+1)
	}
	return now
}

func inputRefusal(err error) error {
	return &explainedError{ErrInputRefused, err, strings.TrimPrefix(err.Error(), machine.ErrNotDue.Error()+": ")}
}

// inputKey is the inbox key of added input: its own, whoever submits it how often.
func inputKey(rec journal.Record) string { return inputPrefix + hex.EncodeToString(rec.Hash[:16]) }

// inputPrefix is the beginning of the inbox keys of added input.
const inputPrefix = "input/"

// took says that the ledger has the input of a record.
func (s *RunState) took(rec journal.Record) bool {
	f, err := journal.Decode(rec)
	b, ok := f.Body.(*journal.Added)
	return err == nil && ok && slices.ContainsFunc(s.fold().Added(), func(have *journal.Added) bool {
		return have.At == b.At && slices.Equal(have.Items, b.Items)
	})
}

// submitInput posts added input that the run does not have, or none of it.
func (s *RunState) submitInput(ctx context.Context, store journal.Driver, recs []journal.Record) error {
	var entries []journal.Entry
	for _, rec := range recs {
		if s.took(rec) {
			continue
		}
		f, err := journal.Decode(rec)
		if err == nil {
			err = s.fold().Check(f)
		}
		if err != nil {
			return s.refused(inputRefusal(err))
		}
		entries = append(entries, journal.Entry{Key: inputKey(rec), Body: rec})
	}
	if len(entries) == 0 {
		return nil
	}
	waiting, err := store.Inbox(ctx, s.Run())
	if err != nil {
		return s.refused(err)
	}
	if slices.ContainsFunc(waiting, func(e journal.Entry) bool { return e.Key == cancelKey }) {
		return s.refused(fmt.Errorf("%w: it is cancelled", ErrInputRefused))
	}
	for _, e := range entries {
		if err := store.Post(ctx, s.Run(), e); err != nil {
			return s.refused(err)
		}
	}
	return nil
}

// checkInput looks at the staged input of a document: what AddInput would refuse was put there
// by somebody else.
func (s *RunState) checkInput() error {
	for _, rec := range s.input {
		f, err := journal.Decode(rec)
		if err != nil {
			return err
		}
		if _, ok := f.Body.(*journal.Added); !ok {
			return fmt.Errorf("a fact %s is among the input", rec.Kind)
		}
		if err := s.fold().Check(f); err != nil {
			return err
		}
	}
	return nil
}

// lostInput is the error of a drive whose own input the run did not take, because it went on
// after the input was submitted.
func (d *drive) lostInput(key string) error {
	if slices.ContainsFunc(d.input, func(rec journal.Record) bool { return inputKey(rec) == key }) {
		return fmt.Errorf("%w: it went on meanwhile", ErrInputRefused)
	}
	return nil
}
