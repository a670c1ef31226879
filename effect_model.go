package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
)

// wakeable is the context of what keeps the driver itself busy, model calls and
// transactions: one after the other until somebody wakes the driver, which ends it.
type wakeable struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// busy returns that context; free says that the driver is free again.
func (d *drive) busy() context.Context {
	if d.wakeable == nil || d.wakeable.ctx.Err() != nil {
		d.wakeable = new(wakeable)
		d.wakeable.ctx, d.wakeable.cancel = context.WithCancel(d.ctx)
	}
	d.calling.Store(d.wakeable)
	return d.wakeable.ctx
}

func (d *drive) free() { d.calling.Store(nil) }

// callModel makes one attempt. Every attempt of a turn sends the same request, also in
// another process: what the turn recorded is what is sent.
func (f *frame) callModel(e machine.Effect) (journal.Body, error) {
	ctx := f.d.busy()
	defer f.d.free()
	if len(f.d.wake) > 0 {
		return nil, errWoken
	}
	req, err := f.attempt(e)
	if err != nil {
		return nil, err
	}
	if f.d.gone {
		return nil, model.ErrAbandoned
	}
	var send func(Event) bool
	if f.d.emit != nil {
		send = f.d.send
	}
	return f.call(ctx, e.ID, req, send)
}

// startModel makes an attempt beside the driver: of a nested run, because agents that were
// called together work together, and where a guardrail may end the run meanwhile.
func (f *frame) startModel(e machine.Effect) {
	d, of := f.d, effectRef{e.Frame, e.ID}
	req, err := f.attempt(e)
	if err != nil {
		d.queue = append(d.queue, d.ending(of, nil, err))
		return
	}
	route := f.m.Route()
	d.goBeside(of, func(ctx context.Context) (journal.Body, error) {
		if d.emit == nil {
			return f.call(ctx, of.id, req, nil)
		}
		return f.call(ctx, of.id, req, func(ev Event) bool {
			if of.frame != "" {
				ev = &Nested{Route: route, Call: of.frame, Event: ev}
			}
			return d.relay(ctx, ev)
		})
	})
}

// relayed is an event that somebody beside the driver has for the reader.
type relayed struct {
	event Event
	stays chan bool // whether the reader does
}

// relay shows an event on the driver's goroutine. It is called from any other.
func (d *drive) relay(ctx context.Context, ev Event) bool {
	r := relayed{ev, make(chan bool, 1)}
	select {
	case d.relayed <- r:
		return <-r.stays
	case <-ctx.Done():
		return false
	}
}

// attempt makes the request of an attempt.
func (f *frame) attempt(e machine.Effect) (req *model.Request, err error) {
	defer f.rescue(effectRef{e.Frame, e.ID}, &err)
	man, _ := f.m.Manifest()
	req = &model.Request{Static: &f.offered(man).static, Input: f.input(e),
		PreviousResponseID: e.Previous, ConversationID: f.m.Started().Conversation}
	if f.request.turn != e.ID.N {
		f.request.turn, f.request.attempts = e.ID.N, e.ID.A-1
	}
	f.request.approved = 0
	if f.request.shown = false; e.ID.A > 1 {
		f.send(&Reset{Turn: e.ID.N, Attempt: e.ID.A})
	}
	return req, nil
}

// call makes an attempt; send shows its events, nil if nobody reads them. It touches nothing
// that the driver changes.
func (f *frame) call(ctx context.Context, id journal.EffectID, req *model.Request, send func(Event) bool) (journal.Body, error) {
	timeout := req.Static.Settings.Limit()
	if timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, timeout)
		defer stop()
	}
	res, err := f.agent.model(f.opts).Call(ctx, req, f.emitter(id, send))
	if err == nil {
		err = checkResponse(res)
	}
	switch {
	case err == nil:
		return &journal.Responded{ID: id, ResponseID: res.ID, RequestID: res.RequestID, Items: res.Items, Usage: usageOf(res.Usage)}, nil
	case errors.Is(ctx.Err(), context.Canceled) && f.d.ctx.Err() == nil:
		return nil, errWoken
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && f.d.ctx.Err() == nil:
		err = &TimeoutError{Err: err}
	}
	return f.failedCall(id, err), err
}

// checkResponse refuses what a ledger could not give back: a model may be anybody's.
func checkResponse(res *model.Response) error {
	if res == nil {
		return &model.Error{Err: model.ErrMalformed}
	}
	if err := checkItems(res.Items); err != nil {
		return &model.Error{Err: because(model.ErrMalformed, err)}
	}
	return nil
}

// failedCall is the fact of a failed attempt.
func (f *frame) failedCall(id journal.EffectID, err error) *journal.Failed {
	failed := &journal.Failed{ID: id, Code: code(err), Error: errorText(err), Unknown: true}
	var me *model.Error
	if errors.As(err, &me) {
		failed.Unknown = me.Delivery != model.DeliveryRefused
	}
	unrepeatable := f.m.Unrepeatable()
	unsafe := failed.Unknown && unrepeatable
	if absent := f.m.FoundAbsent(); !failed.Unknown && unrepeatable && absent > 0 {
		failed.Unknown = true // the server may have refused what it has by now [M5.6]
		if absent == 1 {
			failed.RetryAt = time.Now().UnixMilli() // it is read again at once
			return failed
		}
	}
	if pause, again := f.retry(id.A, err, unsafe); again {
		failed.RetryAt = time.Now().Add(pause).UnixMilli()
	}
	return failed
}

// retry says whether a failed attempt is followed by another, and after which pause: if the
// settings say so, nothing of it was visible, and a repeat is harmless or was approved.
func (f *frame) retry(attempt int, err error, unsafe bool) (pause time.Duration, again bool) {
	if f.request.shown {
		return 0, false
	}
	var r *model.Retry
	if s := f.request.offer.static.Settings; s != nil {
		r = s.Retry
	}
	n := attempt - f.request.attempts // of this drive: whoever resumes a run tries anew
	var d model.RetryDecision
	if r != nil {
		d = r.Decide(f.retryContext(n, err, unsafe))
		switch {
		case d.Retry && !unsafe:
			return r.Delay(n, d.Delay), true
		case d.Retry && d.ApproveReplay:
			f.request.approved = attempt
			return r.Delay(n, d.Delay), true
		}
	}
	const lockedTries = 3
	var me *model.Error
	locked := errors.As(err, &me) && me.ConversationLocked()
	if !locked || n > lockedTries || r != nil && r.MaxRetries <= 0 || d.Veto != model.NoVeto {
		return 0, false
	}
	return max(time.Second<<(n-1), me.RetryAfter), true
}

func (f *frame) retryContext(n int, err error, unsafe bool) model.RetryContext {
	c := model.RetryContextOf(err)
	var te *TimeoutError
	c.Suggested = c.Suggested || errors.As(err, &te)
	c.Attempt, c.Streamed, c.Unsafe = n, f.d.emit != nil, unsafe
	return c
}

func usageOf(u *model.Usage) *journal.Usage {
	if u == nil {
		return nil
	}
	return &journal.Usage{Input: u.InputTokens, Cached: u.CachedInputTokens, Output: u.OutputTokens, Reasoning: u.ReasoningTokens,
		Total: u.TotalTokens, Raw: u.Raw}
}

// emitter shows the events of an attempt; nil without a reader, so that the model
// need not stream.
func (f *frame) emitter(id journal.EffectID, send func(Event) bool) func(*model.Event) bool {
	if send == nil {
		return nil
	}
	return func(ev *model.Event) bool {
		if kind, ok := deltaKinds[ev.Kind]; ok {
			f.request.shown = true
			return send(&Delta{Kind: kind, Text: ev.Delta, Turn: id.N, Attempt: id.A, ItemID: ev.ItemID, OutputIndex: ev.OutputIndex})
		}
		return send(&RawModelEvent{Type: ev.Type, Data: slices.Clone(ev.Raw), Turn: id.N, Attempt: id.A})
	}
}

// reconcileModel finds out what became of a request on a conversation: the whole
// response stands there, or nothing of the request does, or nobody can tell [M5]. Without a
// conversation there is nothing to read: the request had an approval that the server may have
// acted on.
func (f *frame) reconcileModel(e machine.Effect) (journal.Body, error) {
	conversation := f.m.Started().Conversation
	if conversation == "" {
		return f.undelivered(e, "it approves a call of a hosted tool, which may have been made")
	}
	reader, ok := f.agent.model(f.opts).(model.ConversationReader)
	if !ok {
		return f.undelivered(e, "the model's adapter cannot read the conversation")
	}
	sent := append(viewItems(f.m, e.View), itemsOf(f.m, e.From, e.Upto)...)
	const most = 200
	tail, err := reader.ConversationTail(f.d.ctx, conversation, most)
	if err != nil {
		return nil, err
	}
	after, ok := f.behindAnchor(tail, sent, e.From, len(tail) < most)
	switch {
	case !ok:
		return f.undelivered(e, fmt.Sprintf("conversation %q does not have the last known item", conversation))
	case len(after) == 0:
		return &journal.Absent{ID: e.About}, nil
	case len(after) > len(sent) && startsWith(after, sent) && isWhole(after[len(sent):]):
		return &journal.Responded{ID: e.About, Items: after[len(sent):]}, nil
	}
	return f.undelivered(e, fmt.Sprintf("in conversation %q %d items follow what was known", conversation, len(after)))
}

// undelivered is what comes of a request of which nobody can tell what became of it: nothing is
// sent, unless the application approved of sending it a second time.
func (f *frame) undelivered(e machine.Effect, why string) (journal.Body, error) {
	if e.About.N == f.request.turn && e.About.A == f.request.approved {
		return &journal.Absent{ID: e.About}, nil
	}
	return nil, fmt.Errorf("%w: %s; nothing was sent, and the run can be resumed or cancelled", ErrDeliveryAmbiguous, why)
}

// behindAnchor returns what the conversation holds behind the last item of the
// history below upto that the server gave an id. Without such an item, before a run's
// first response, only a conversation is understood that holds nothing of what was sent:
// what does stand there may be from an earlier run that began with the same words.
func (f *frame) behindAnchor(tail, sent []Item, upto int, whole bool) ([]Item, bool) {
	anchor := ""
	for it := range f.m.Items(0, upto) {
		if id := it.Head().ID; id != "" {
			anchor = id
		}
	}
	if anchor == "" {
		return nil, whole && (len(tail) == 0 || lacks(tail, sent))
	}
	i := slices.IndexFunc(tail, func(it Item) bool { return it.Head().ID == anchor })
	if i < 0 {
		return nil, false
	}
	return tail[i+1:], true
}

// lacks says that a user's message was sent that the conversation does not have. A server
// takes what is sent as a whole, and keeps a text as it is.
func lacks(tail, sent []Item) bool {
	said := make(map[string]bool)
	for _, it := range tail {
		if it.Head().Role == "user" {
			said[textOf(it)] = true
		}
	}
	return slices.ContainsFunc(sent, func(it Item) bool {
		text := textOf(it)
		return it.Head().Role == "user" && text != "" && !said[text]
	})
}

func startsWith(have, want []Item) bool {
	for i, it := range want {
		a, b := have[i].Head(), it.Head()
		if a.Type != b.Type || a.CallID != b.CallID || textOf(have[i]) != textOf(it) {
			return false
		}
	}
	return true
}

// isWhole says that a response has what ends one: a message, or calls.
func isWhole(items []Item) bool {
	return slices.ContainsFunc(items, func(it Item) bool { return it.NeedsOutput() || it.Type() == item.TypeMessage })
}
