package pawl

import (
	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// StopAfterTurn stops the driving of a run by this Runner before the next turn would begin:
// the model's response is awaited, its tools run and the session gets what it is owed. Run,
// Stream, Resume or ResumeStream then ends with ErrStopped, and the run can be resumed. A run
// that ends, waits for decisions or fails before that does so as if nobody had asked.
//
// It may be called before the run is started here, which then stops before its first turn, from
// any goroutine, also while an event is handled, and again: once is enough. To stop at once,
// leave the stream or cancel the context; to end the run for good, see Cancel.
func (r *Runner) StopAfterTurn(run string) { r.stops.Store(run, true) }

// stopsBefore says that the driving stops before an effect because a turn of the run begins
// with it.
func (d *drive) stopsBefore(e machine.Effect) bool {
	if e.ID.Kind != journal.EffectPrepare || e.Frame != "" {
		return false
	}
	_, asked := d.r.stops.Load(d.m.Run())
	return asked
}
