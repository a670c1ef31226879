package temporal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// activities are what the workflows of a worker have carried out.
type activities struct {
	stepper *pawl.Stepper
	timing  timing
	bus     Bus
	spill   converter.DataConverter // stores what is large; nil without blobs
	client  client.Client
}

// perform carries out a step.
func (a *activities) perform(ctx context.Context, in stepInput, d delta) (*stepResult, error) {
	defer a.beat(ctx)()
	st := &pawl.Step{Run: in.Run, Epoch: in.Epoch, After: d.After, Consume: in.Consume, Frame: in.Frame, Again: activity.GetInfo(ctx).Attempt > 1}
	var err error
	if st.Facts, err = decodeAll(d.Facts); err == nil && in.Effect != "" {
		st.Effect, err = journal.ParseEffectID(in.Effect)
	}
	if err != nil {
		return nil, failedAgain(err, st.Again)
	}
	if a.bus != nil {
		st.Show = func(ev pawl.Event) { a.bus.Publish(in.Run, ev) }
	}
	out, err := a.stepper.Perform(ctx, st)
	if err != nil {
		return nil, a.failed(ctx, err, st.Again)
	}
	res := &stepResult{Inbox: a.taken(encodeMessages(out.Inbox))}
	if out.Outcome != nil {
		f := encode(journal.Fact{Body: out.Outcome})
		res.Outcome = &f
	}
	if out.Stored != nil {
		f := encode(*out.Stored)
		res.Stored = &f
	}
	return res, a.store(ctx, res)
}

// store puts a large result where the history refers to it. It insists: what was done must not
// be lost because its outcome could not be handed over.
func (a *activities) store(ctx context.Context, res *stepResult) error {
	if a.spill == nil {
		return nil
	}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		_, err := a.spill.ToPayload(res)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return sdk.NewApplicationErrorWithCause("pawl: the outcome of an effect could not be stored", interruptedType, err)
		}
	}
}

// open claims a run.
func (a *activities) open(ctx context.Context, in openInput) (*openResult, error) {
	defer a.beat(ctx)()
	o, err := a.stepper.Open(ctx, in.Run, a.workers(ctx, in.Lost))
	if err != nil {
		return nil, failed(err)
	}
	out := &openResult{Claimed: encode(journal.Fact{Body: o.Claimed})}
	if in.Facts {
		all := encodeAll(o.Facts[min(in.After, uint64(len(o.Facts))):])
		if out.Facts, err = a.page(all); len(out.Facts) < len(all) {
			out.Upto = uint64(len(o.Facts))
		}
	}
	return out, err
}

// facts returns what the projection of a run has behind so many facts, or as much of it as has a place in a
// payload.
func (a *activities) facts(ctx context.Context, run string, after uint64) ([]fact, error) {
	defer a.beat(ctx)()
	facts, err := a.stepper.Facts(ctx, run)
	if err != nil {
		return nil, failed(err)
	}
	return a.page(encodeAll(facts[min(after, uint64(len(facts))):]))
}

// page returns the facts that have a place in a payload.
func (a *activities) page(facts []fact) ([]fact, error) {
	if a.spill != nil {
		return facts, nil
	}
	n := fits(facts)
	if n == 0 && len(facts) > 0 {
		return nil, failed(needsBlobs(fmt.Sprintf("a fact of %d bytes", facts[0].size())))
	}
	return facts[:n], nil
}

// taken are the messages that the loop is given. What has no place stays in the inbox.
func (a *activities) taken(messages []message) []message {
	size := 0
	return slices.DeleteFunc(messages, func(m message) bool {
		n := m.Fact.size()
		if a.spill == nil && size+n > maxPayload-maxOutcomeBare {
			return true
		}
		size += n
		return false
	})
}

// close ends the claim.
func (a *activities) close(ctx context.Context, in closeInput) error {
	defer a.beat(ctx)()
	if err := a.stepper.Close(ctx, in.Run, in.Epoch); err != nil {
		return failed(err)
	}
	return nil
}

// beat sends heartbeats until the returned function is called.
func (a *activities) beat(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticks := time.NewTicker(a.timing.Heartbeat / 3)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// failed is the error of an activity whose effect was not begun.
func failed(err error) error { return failedAgain(err, false) }

// failedAgain says besides whether an attempt before may have begun it.
func failedAgain(err error, again bool) error {
	if stop := pawl.EngineStop(err); stop != nil {
		return sdk.NewNonRetryableApplicationError(stop.Text, stopType, nil, stop.Code, again)
	}
	return sdk.NewApplicationErrorWithCause(err.Error(), retryType, err)
}

// failed is the error of a step. One that was stopped may have begun.
func (a *activities) failed(ctx context.Context, err error, again bool) error {
	if ctx.Err() == nil {
		return failedAgain(err, again)
	}
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return sdk.NewApplicationErrorWithCause("pawl: the worker stops", interruptedType, err)
	default:
		return sdk.NewCanceledError(again)
	}
}
