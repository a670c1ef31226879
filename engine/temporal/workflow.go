package temporal

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-agents/pawl/internal/steps"
	"github.com/pawl-agents/pawl/journal"
)

// Above so many events, or bytes, of history a workflow is continued as a new one as soon as
// nothing is in flight.
const (
	fullEvents = 2000
	fullBytes  = 2 << 20
)

// host is the workflow of a run as a steps.Host. Everything in it is made again when the history
// is replayed.
type host struct {
	ctx    workflow.Context // does not end when the workflow is cancelled
	outer  workflow.Context
	timing timing
	run    string
	driver *steps.Driver
	size   int // of the history when the run had been read

	ended     []steps.Event
	updates   []*update
	messages  workflow.ReceiveChannel
	resumes   workflow.ReceiveChannel
	cancels   map[steps.Ref]workflow.CancelFunc
	cancelled bool // the workflow was, and the run was told
}

// update is a message that somebody waits for.
type update struct {
	entry journal.Entry
	taken bool
	done  bool
}

// runWorkflow is the loop of one run.
func (t timing) runWorkflow(outer workflow.Context, in runInput) error {
	ctx, _ := workflow.NewDisconnectedContext(outer)
	h := &host{ctx: ctx, outer: outer, timing: t, run: in.Run, cancels: make(map[steps.Ref]workflow.CancelFunc),
		messages: workflow.GetSignalChannel(ctx, messageName), resumes: workflow.GetSignalChannel(ctx, resumeName)}
	if err := h.handle(); err != nil {
		return err
	}
	if err := h.begin(in); err != nil {
		return err
	}
	h.size = workflow.GetInfo(ctx).GetCurrentHistorySize()
	over, err := h.driver.Run()
	h.answer()
	switch {
	case err != nil:
		return err
	case !over:
		s := encodeSaved(h.driver.Save())
		if s.Delta, err = h.record(ctx, h.driver.Epoch(), s.Delta); err != nil {
			return err
		}
		return workflow.NewContinueAsNewError(ctx, workflowName, runInput{Run: in.Run, Epoch: h.driver.Epoch(), Saved: s, Tokens: h.driver.Tokens})
	}
	return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// begin claims the run, or goes on where the workflow before has left it.
func (h *host) begin(in runInput) error {
	if in.Saved == nil {
		out, err := h.open(openInput{Run: in.Run, Facts: true})
		if err != nil {
			return err
		}
		facts, err := decodeAll(out.Facts)
		if err != nil {
			return err
		}
		l, err := steps.Open(facts)
		if err != nil {
			return err
		}
		claimed, err := out.Claimed.decode()
		if err != nil {
			return err
		}
		c := claimed.Body.(*journal.Claimed)
		h.driver = steps.NewDriver(l, h, c.Epoch)
		return l.Step(c, h.Now())
	}
	list, err := h.facts(0, nil, in.Saved.Delta.After)
	if err != nil {
		return err
	}
	facts, err := decodeAll(list)
	if err != nil {
		return err
	}
	s, err := in.Saved.decode()
	if err != nil {
		return err
	}
	l, err := steps.Restore(facts, s)
	if err != nil {
		return err
	}
	h.driver = steps.NewDriver(l, h, in.Epoch)
	h.driver.Tokens = in.Tokens
	return nil
}

// facts asks, page by page, for what the projection has behind the facts that are there, which are those behind so many; upto is
// how many it has at least.
func (h *host) facts(after uint64, have []fact, upto uint64) ([]fact, error) {
	for after+uint64(len(have)) < upto {
		args := []any{h.run}
		if n := after + uint64(len(have)); n > 0 {
			args = append(args, n)
		}
		var page []fact
		if err := workflow.ExecuteActivity(h.activity(h.timing.Timeout, false), factsName, args...).Get(h.ctx, &page); err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		have = append(have, page...)
	}
	return have, nil
}

// handle answers queries and updates.
func (h *host) handle() error {
	err := workflow.SetQueryHandler(h.ctx, stateName, func() (runState, error) {
		s := runState{Status: "opening"}
		if d := h.driver; d != nil {
			s.Status, s.Facts, s.Tokens = d.M.Status().String(), d.M.Facts(), d.Tokens
			if d.Stop != nil {
				s.Code, s.Text = d.Stop.Code, d.Stop.Text
			}
		}
		return s, nil
	})
	if err != nil {
		return err
	}
	return workflow.SetUpdateHandler(h.ctx, messageName, func(ctx workflow.Context, m message) error {
		u := &update{entry: m.entry()}
		h.updates = append(h.updates, u)
		return workflow.Await(ctx, func() bool { return u.done })
	})
}

// answer lets those go on whose messages the driver has taken.
func (h *host) answer() {
	h.updates = slices.DeleteFunc(h.updates, func(u *update) bool {
		u.done = u.taken
		return u.taken
	})
}

// Now is the time of the workflow.
func (h *host) Now() int64 { return workflow.Now(h.ctx).UnixMilli() }

// Full says that the history is long.
func (h *host) Full() bool {
	info := workflow.GetInfo(h.ctx)
	size := info.GetCurrentHistorySize()
	same := h.size >= fullBytes/2 && size-h.size < fullBytes/2 // the next one would be as long from its beginning
	return (info.GetCurrentHistoryLength() >= h.timing.Full || !same && (info.GetContinueAsNewSuggested() || size >= fullBytes)) &&
		workflow.AllHandlersFinished(h.ctx)
}

// Wait waits for the end of an activity, a signal, an update or the cancellation of the workflow.
func (h *host) Wait(until int64) []steps.Event {
	h.answer()
	some := func() bool {
		return len(h.ended) > 0 || h.messages.Len() > 0 || h.resumes.Len() > 0 || h.outer.Err() != nil && !h.cancelled ||
			slices.ContainsFunc(h.updates, func(u *update) bool { return !u.taken })
	}
	switch left := time.Duration(until-h.Now()) * time.Millisecond; {
	case until == 0:
		must(workflow.Await(h.ctx, some))
	case left > 0:
		_, err := workflow.AwaitWithTimeout(h.ctx, left, some)
		must(err)
	}
	return h.arrived()
}

// must ends the workflow task, which is tried again: the workflow's own context does not end.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// arrived takes what came in.
func (h *host) arrived() []steps.Event {
	events := h.ended
	h.ended = nil
	var m message
	for h.messages.ReceiveAsync(&m) {
		e := m.entry()
		events = append(events, steps.Event{Message: &e})
		m = message{}
	}
	for _, u := range h.updates {
		if !u.taken {
			u.taken = true
			events = append(events, steps.Event{Message: &u.entry})
		}
	}
	var r resumeInput
	for h.resumes.ReceiveAsync(&r) {
		if f, err := r.Fact.decode(); err == nil {
			if b, ok := f.Body.(*journal.Resumed); ok {
				events = append(events, steps.Event{Resume: &steps.Resume{Token: r.Token, Fact: *b}})
			}
		}
		r = resumeInput{}
	}
	if h.outer.Err() != nil && !h.cancelled {
		h.cancelled = true
		rec := journal.Encode(journal.Fact{Body: &journal.Cancelled{By: "temporal", Why: "the workflow was cancelled"}}, [16]byte{})
		events = append(events, steps.Event{Message: &journal.Entry{Key: "cancel", Body: rec}})
	}
	return events
}

// Start begins the activity of a step.
func (h *host) Start(r steps.Request) {
	timeout := h.timing.Timeout
	if r.NotAfter > 0 {
		timeout = time.Duration(max(r.NotAfter-h.Now(), 0))*time.Millisecond + h.timing.Grace
	}
	ctx, cancel := workflow.WithCancel(h.activity(timeout, r.Once))
	in := stepInput{Run: h.run, Epoch: r.Epoch, Frame: r.Of.Frame, Consume: r.Delta.Consume, Once: r.Once}
	if r.Of != (steps.Ref{}) {
		in.Effect = r.Of.ID.String()
	}
	h.cancels[r.Of] = cancel
	delta := encodeDelta(r.Delta)
	var f workflow.Future
	if delta.whole() {
		f = workflow.ExecuteActivity(ctx, performName, in, delta)
	}
	workflow.Go(h.ctx, func(own workflow.Context) {
		var out stepResult
		var err error
		if f == nil {
			if delta, err = h.record(own, r.Epoch, delta); err == nil {
				f = workflow.ExecuteActivity(ctx, performName, in, delta)
			}
		}
		e := &steps.End{Of: r.Of}
		if err != nil {
			e.Failure = unbegun(failure(steps.Ref{}, err, false))
		} else {
			err = f.Get(own, &out)
			e = end(r.Of, &out, err, r.Once)
		}
		delete(h.cancels, r.Of)
		h.ended = append(h.ended, steps.Event{End: e})
	})
}

// record brings the projection so far up to date, in steps of their own, that the rest of a delta has a place in a payload. It
// returns the rest.
func (h *host) record(ctx workflow.Context, epoch uint64, d delta) (delta, error) {
	parts := d.parts()
	for _, part := range parts[:len(parts)-1] {
		ao := workflow.GetActivityOptions(h.activity(h.timing.Timeout, false))
		if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, ao), performName, stepInput{Run: h.run, Epoch: epoch}, part).Get(ctx, nil); err != nil {
			return delta{}, err
		}
	}
	return parts[len(parts)-1], nil
}

// unbegun is the failure of a step whose own activity was not started, because of one before it.
func unbegun(f *steps.Failure) *steps.Failure {
	if f.Stop == nil {
		return &steps.Failure{Kind: steps.NotBegun}
	}
	return &steps.Failure{Kind: steps.Stopped, Stop: f.Stop}
}

// activity is the context of an activity. One that must not be begun twice has one attempt.
func (h *host) activity(timeout time.Duration, once bool) workflow.Context {
	retry := &sdk.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second,
		NonRetryableErrorTypes: []string{stopType}}
	if once {
		retry.MaximumAttempts = 1
	}
	o := workflow.ActivityOptions{StartToCloseTimeout: timeout, HeartbeatTimeout: h.timing.Heartbeat, WaitForCancellation: true, RetryPolicy: retry}
	if h.driver != nil {
		started := h.driver.M.Frame("").Started()
		o.Priority = priority(started.Priority, started.Queue)
	}
	return workflow.WithActivityOptions(h.ctx, o)
}

// Cancel asks an activity to stop.
func (h *host) Cancel(of steps.Ref) {
	if cancel := h.cancels[of]; cancel != nil {
		cancel()
	}
}

// Open claims the run anew.
func (h *host) Open(lost []string, after uint64) (*journal.Claimed, []journal.Fact) {
	in := openInput{Run: h.run, Lost: make([]int64, len(lost)), Facts: true, After: after}
	for i, event := range lost {
		in.Lost[i], _ = strconv.ParseInt(event, 10, 64)
	}
	out, err := h.open(in)
	must(err)
	claimed, err := out.Claimed.decode()
	must(err)
	facts, err := decodeAll(out.Facts)
	must(err)
	return claimed.Body.(*journal.Claimed), facts
}

func (h *host) open(in openInput) (out openResult, err error) {
	err = workflow.ExecuteActivity(h.activity(h.timing.Timeout, false), openName, in).Get(h.ctx, &out)
	if err == nil {
		out.Facts, err = h.facts(in.After, out.Facts, out.Upto)
	}
	return out, err
}

// Close ends the claim.
func (h *host) Close(epoch uint64) {
	must(workflow.ExecuteActivity(h.activity(h.timing.Timeout, false), closeName, closeInput{h.run, epoch}).Get(h.ctx, nil))
}

// The types of the errors of activities.
const (
	stopType        = "pawl-stop"        // somebody has to do something first
	retryType       = "pawl-retry"       // the effect was not begun
	interruptedType = "pawl-interrupted" // it was begun, and the worker stops
)

// end is the end of a step as the driver knows it.
func end(of steps.Ref, out *stepResult, err error, once bool) *steps.End {
	e := &steps.End{Of: of}
	if err != nil {
		e.Failure = failure(of, err, once)
		return e
	}
	if out.Outcome != nil {
		f, err := out.Outcome.decode()
		must(err)
		e.Outcome = f.Body
	}
	if out.Stored != nil {
		f, err := out.Stored.decode()
		must(err)
		e.Stored = &f
	}
	e.Inbox = entries(out.Inbox)
	return e
}

// begunBefore says that an attempt before the cancelled one may have begun. The server, which cancels what no worker has, does not
// tell.
func begunBefore(err *sdk.CanceledError) bool {
	again := true
	return !err.HasDetails() || err.Details(&again) != nil || again
}

// failure says what the error of an activity means. An error that is of no activity, as when a
// payload cannot be read, ends the workflow task, which is tried again.
func failure(of steps.Ref, err error, once bool) *steps.Failure {
	var (
		timeout  *sdk.TimeoutError
		canceled *sdk.CanceledError
		app      *sdk.ApplicationError
		activity *sdk.ActivityError
	)
	switch {
	case errors.As(err, &canceled) && of.ID.Kind == journal.EffectTool && !once && begunBefore(canceled):
		return &steps.Failure{Kind: steps.Lost}
	case errors.As(err, &canceled) && of.ID.Kind == journal.EffectTool: // what a body did is an outcome
		return &steps.Failure{Kind: steps.NotBegun}
	case errors.As(err, &canceled):
		return &steps.Failure{Kind: steps.Ended}
	case errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		return &steps.Failure{Kind: steps.NotBegun}
	case errors.As(err, &app) && app.Type() == stopType:
		var code string
		var again bool
		if app.HasDetails() {
			must(app.Details(&code, &again))
		}
		return &steps.Failure{Kind: steps.Stopped, Stop: &steps.Stop{Code: code, Text: app.Message()}, Begun: again}
	case errors.As(err, &app) && app.Type() == retryType:
		return &steps.Failure{Kind: steps.NotBegun}
	case errors.As(err, &activity): // its beginning says who did it
		return &steps.Failure{Kind: steps.Lost, Lost: strconv.FormatInt(activity.StartedEventID(), 10)}
	}
	panic(fmt.Errorf("pawl: activity %s: %w", of.ID, err))
}
