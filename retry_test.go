package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

// Attempts of a model call are repeated as the settings say, and no others.
func TestModelRetries(t *testing.T) {
	busy := &model.Error{Status: 503, Retryable: true, Delivery: model.DeliveryRefused}
	lost := &model.Error{Retryable: true, Err: errors.New("connection reset")}
	bad := &model.Error{Status: 400, Delivery: model.DeliveryRefused}
	wait := &model.Error{Status: 429, Retryable: true, RetryAfter: time.Minute, Delivery: model.DeliveryRefused}
	for name, tt := range map[string]struct {
		errs  []error
		retry *model.Retry
		opts  pawl.RunOptions
		calls int
		took  time.Duration
		fails bool
	}{
		"no setting":                 {errs: []error{busy}, calls: 1, fails: true},
		"no retries":                 {errs: []error{busy}, retry: &model.Retry{}, calls: 1, fails: true},
		"one":                        {errs: []error{busy}, retry: &model.Retry{MaxRetries: 1}, calls: 2, took: 250 * time.Millisecond},
		"too few":                    {errs: []error{busy, busy}, retry: &model.Retry{MaxRetries: 1}, calls: 2, took: 250 * time.Millisecond, fails: true},
		"growing pauses":             {errs: []error{busy, busy, busy}, retry: &model.Retry{MaxRetries: 3, InitialDelay: time.Second, MaxDelay: 3 * time.Second}, calls: 4, took: 6 * time.Second},
		"as the server asks":         {errs: []error{wait}, retry: &model.Retry{MaxRetries: 1}, calls: 2, took: time.Minute},
		"not worth it":               {errs: []error{bad}, retry: &model.Retry{MaxRetries: 3}, calls: 1, fails: true},
		"not a model's error":        {errs: []error{errors.New("bug")}, retry: &model.Retry{MaxRetries: 3}, calls: 1, fails: true},
		"lost":                       {errs: []error{lost}, retry: &model.Retry{MaxRetries: 1}, calls: 2, took: 250 * time.Millisecond},
		"lost, on a chain":           {errs: []error{lost}, retry: &model.Retry{MaxRetries: 1}, opts: pawl.RunOptions{PreviousResponseID: "resp"}, calls: 2, took: 250 * time.Millisecond},
		"lost, on a conversation":    {errs: []error{lost}, retry: &model.Retry{MaxRetries: 1}, opts: pawl.RunOptions{ConversationID: "conv"}, calls: 1, fails: true},
		"refused, on a conversation": {errs: []error{busy}, retry: &model.Retry{MaxRetries: 1}, opts: pawl.RunOptions{ConversationID: "conv"}, calls: 2, took: 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var steps []step
				for _, err := range tt.errs {
					steps = append(steps, failing(err))
				}
				m := newScript(append(steps, says("done"))...)
				m.info.ServerState = true
				agent := agentWith(m)
				agent.Settings = &pawl.ModelSettings{Retry: tt.retry}
				var r pawl.Runner
				start := time.Now()
				res, err := r.Run(t.Context(), agent, pawl.UserText("hi"), &tt.opts)
				if took := time.Since(start); took != tt.took || len(m.calls()) != tt.calls {
					t.Errorf("%d calls in %v", len(m.calls()), took)
				}
				if tt.fails {
					last := tt.errs[tt.calls-1]
					if !errors.Is(err, last) {
						t.Errorf("%v, want the last attempt's %v", err, last)
					}
					return
				}
				must(t)(res, err)
				if res.FinalOutput != "done" || res.Usage.Requests != int64(tt.calls) || res.Usage.Unreported != int64(tt.calls-1) {
					t.Errorf("%+v", res)
				}
				for _, a := range m.calls() {
					if diff := cmp.Diff(m.calls()[0], a); diff != "" {
						t.Errorf("attempts differ:\n%s", diff)
					}
				}
			})
		})
	}
}

// A timeout of one attempt is an error of its own.
func TestModelTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newScript(hanging(make(chan struct{})), says("done"))
		agent := agentWith(m)
		agent.Settings = &pawl.ModelSettings{Timeout: 10 * time.Second}
		var r pawl.Runner
		_, err := r.Run(t.Context(), agent, pawl.UserText("hi"), nil)
		var te *pawl.TimeoutError
		if !errors.As(err, &te) || !te.Timeout() {
			t.Fatal(err)
		}
		if res := must(t)(r.Resume(t.Context(), agent, stateOf(t, err), nil)); res.FinalOutput != "done" {
			t.Errorf("%+v", res)
		}
	})
}

// conversation is a model whose server can be asked what a conversation holds.
type conversation struct {
	*script
	tail []pawl.Item
	err  error
	read int
	// after, if not nil, is called once behind a reading.
	after func()
}

func (c *conversation) ConversationTail(_ context.Context, id string, limit int) ([]pawl.Item, error) {
	if id != "conv" {
		return nil, fmt.Errorf("no conversation %q", id)
	}
	c.read++
	tail := c.tail[max(0, len(c.tail)-limit):]
	if after := c.after; after != nil {
		c.after = nil
		after()
	}
	return tail, c.err
}

// A lost answer on a conversation is read back before anything is sent again.
func TestConversationReadBack(t *testing.T) {
	answered := item.MessageItem("msg_1", "from before")
	input, out := item.UserText("more"), item.FunctionOutput("c1", "receipt 5")
	call := item.FunctionCallItem("fc_1", "c1", "look", `{"cents":5}`)
	final := item.MessageItem("msg_2", "done")
	lost := &model.Error{Err: errors.New("connection reset")}
	for name, tt := range map[string]struct {
		tail []pawl.Item
		err  error
		sent int  // requests with this read back
		fail bool // the read back cannot tell
	}{
		"all of it":           {tail: []pawl.Item{answered, input, call, out, final}, sent: 2},
		"nothing of it":       {tail: []pawl.Item{answered, input, call}, sent: 3},
		"the input only":      {tail: []pawl.Item{answered, input, call, out}, sent: 2, fail: true},
		"another output":      {tail: []pawl.Item{answered, input, call, item.FunctionOutput("c1", "other"), final}, sent: 2, fail: true},
		"foreign items":       {tail: []pawl.Item{answered, input, call, item.UserText("hello?"), out, final}, sent: 2, fail: true},
		"half of a response":  {tail: []pawl.Item{answered, input, call, out, item.ReasoningItem("rs", "hm")}, sent: 2, fail: true},
		"not what was known":  {tail: []pawl.Item{answered}, sent: 2, fail: true},
		"nothing at all":      {tail: nil, sent: 2, fail: true},
		"the read back fails": {err: errors.New("also down"), sent: 2, fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			m := &conversation{script: newScript(response("r1", call), failing(lost), response("r2", final)), tail: tt.tail, err: tt.err}
			m.info.ServerState = true
			agent := agentWith(m, charging("look", &e, nil))
			var r pawl.Runner
			_, err := r.Run(t.Context(), agent, pawl.UserText("more"), &pawl.RunOptions{ID: "r", ConversationID: "conv"})
			if !errors.Is(err, lost) {
				t.Fatal(err)
			}
			res, err := r.Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil)
			if n := len(m.calls()); n != tt.sent || m.read != 1 {
				t.Errorf("%d requests, read back %d times", n, m.read)
			}
			if tt.fail {
				if tt.err == nil && !errors.Is(err, pawl.ErrDeliveryAmbiguous) || tt.err != nil && !errors.Is(err, tt.err) {
					t.Fatal(err)
				}
				// Nobody is sent anything until it can be told.
				m.tail, m.err = []pawl.Item{answered, input, call, out, final}, nil
				res, err = r.Resume(t.Context(), agent, stateOf(t, err), nil)
			}
			must(t)(res, err)
			if res.FinalOutput != "done" {
				t.Errorf("%+v", res)
			}
			e.want(t, "look 5")
			for _, a := range m.calls()[1:] {
				if diff := cmp.Diff([]pawl.Item{out}, a.Input); diff != "" || a.Conversation != "conv" {
					t.Errorf("on %q: %s", a.Conversation, diff)
				}
			}
			replays(t, &r, "r")
		})
	}
}

// What was not there when the conversation was read may come to be there afterwards: the server then refuses the repeat, and
// the conversation is read again before anything else is sent.
func TestConversationReadBackTooEarly(t *testing.T) {
	call, out := item.FunctionCallItem("fc_1", "c1", "look", `{"cents":5}`), item.FunctionOutput("c1", "receipt 5")
	final := item.MessageItem("msg_2", "done")
	lost := &model.Error{Err: errors.New("connection reset")}
	refused := &model.Error{Status: 400, Delivery: model.DeliveryRefused, Message: "the conversation has that output"}
	busy := &model.Error{Status: 409, Delivery: model.DeliveryRefused, Retryable: true}
	for name, tt := range map[string]struct {
		again   []*model.Error // the answers to the repeats
		arrives bool           // the first request is processed behind the first reading
	}{
		"refused, and processed":       {[]*model.Error{refused}, true},
		"to be tried again, processed": {[]*model.Error{busy}, true},
		"refused for another reason":   {[]*model.Error{refused, refused}, false},
		"busy, then refused":           {[]*model.Error{busy, refused}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			steps := []step{response("r1", call), failing(lost)}
			for _, err := range tt.again {
				steps = append(steps, failing(err))
			}
			m := &conversation{script: newScript(steps...), tail: []pawl.Item{item.UserText("more"), call}}
			m.info.ServerState = true
			agent := agentWith(m, charging("look", &e, nil))
			var r pawl.Runner
			_, err := r.Run(t.Context(), agent, pawl.UserText("more"), &pawl.RunOptions{ID: "r", ConversationID: "conv"})
			if !errors.Is(err, lost) {
				t.Fatal(err)
			}
			if tt.arrives {
				m.after = func() { m.tail = append(m.tail, out, final) }
			}
			res, err := r.Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil)
			if tt.arrives && (err != nil || res.FinalOutput != "done") || !tt.arrives && !errors.Is(err, refused) {
				t.Fatalf("%+v, %v", res, err)
			}
			if n := len(m.calls()); n != 2+len(tt.again) || m.read != 2 {
				t.Errorf("%d requests, read back %d times", n, m.read)
			}
			e.want(t, "look 5")
			replays(t, &r, "r")
		})
	}
}

// A lost answer to the first request of a run: what stands in the conversation is of earlier runs, unless it could be
// the run's own.
func TestConversationFirstReadBack(t *testing.T) {
	before := []pawl.Item{item.UserText("earlier"), item.MessageItem("msg_1", "yes?")}
	lost := &model.Error{Err: errors.New("connection reset")}
	for name, tt := range map[string]struct {
		tail []pawl.Item
		sent bool // again, because nothing of the first request is there
	}{
		"nothing at all":      {nil, true},
		"an earlier run's":    {before, true},
		"its own, or earlier": {append(before[:2:2], item.UserText("hi"), item.MessageItem("msg_2", "done")), false},
		"its input only":      {append(before[:2:2], item.UserText("hi")), false},
		"said by the model":   {append(before[:2:2], item.MessageItem("msg_2", "hi")), true},
		"more than is read":   {slices.Repeat(before, 100), false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &conversation{script: newScript(failing(lost), says("done")), tail: tt.tail}
			m.info.ServerState = true
			var r pawl.Runner
			_, err := r.Run(t.Context(), agentWith(m), pawl.UserText("hi"), &pawl.RunOptions{ID: "r", ConversationID: "conv"})
			if !errors.Is(err, lost) {
				t.Fatal(err)
			}
			res, err := r.Resume(t.Context(), agentWith(m), viaJSON(t, stateOf(t, err)), nil)
			if tt.sent {
				if must(t)(res, err); res.FinalOutput != "done" || len(m.calls()) != 2 {
					t.Errorf("%+v after %d requests", res, len(m.calls()))
				}
			} else if !errors.Is(err, pawl.ErrDeliveryAmbiguous) || len(m.calls()) != 1 {
				t.Errorf("%v after %d requests", err, len(m.calls()))
			}
		})
	}
}

// A model of the user's own may answer with what is no item: nothing of it enters the ledger.
func TestModelAnswersWithNoItem(t *testing.T) {
	for _, bad := range []pawl.Item{{}, item.FromTrusted("{"), item.FromTrusted(`[1]`)} {
		m := newScript(items(item.MessageItem("", "so"), bad), says("done"))
		var r pawl.Runner
		_, err := r.Run(t.Context(), agentWith(m), pawl.UserText("hi"), &pawl.RunOptions{ID: "r"})
		if !errors.Is(err, model.ErrMalformed) {
			t.Fatalf("%q: %v", bad.Raw(), err)
		}
		if res := must(t)(r.Resume(t.Context(), agentWith(m), viaJSON(t, replays(t, &r, "r")), nil)); res.FinalOutput != "done" {
			t.Errorf("%q: %+v", bad.Raw(), res)
		}
	}
}

// A model call that panics may have been processed: on a conversation it is read back.
func TestConversationCallPanics(t *testing.T) {
	input, final := item.UserText("hi"), item.MessageItem("msg_2", "done")
	boom := func(context.Context, *model.Request, func(*model.Event) bool) (*model.Response, error) { panic("boom") }
	m := &conversation{script: newScript(response("r1", item.FunctionCallItem("fc_1", "c1", "look", `{"cents":5}`)), boom),
		tail: []pawl.Item{input, item.FunctionCallItem("fc_1", "c1", "look", `{"cents":5}`), item.FunctionOutput("c1", "receipt 5"), final}}
	m.info.ServerState = true
	var e effects
	agent := agentWith(m, charging("look", &e, nil))
	var r pawl.Runner
	_, err := r.Run(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ConversationID: "conv"})
	var p *pawl.PanicError
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	res := must(t)(r.Resume(t.Context(), agent, stateOf(t, err), nil))
	if res.FinalOutput != "done" || m.read != 1 || len(m.calls()) != 2 {
		t.Errorf("%+v after %d requests, read back %d times", res, len(m.calls()), m.read)
	}
}

// Whoever resumes a run that gave up has the retries anew.
func TestModelRetriesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &model.Error{Status: 503, Retryable: true, Delivery: model.DeliveryRefused}
		m := newScript(failing(busy), failing(busy), failing(busy), says("done"))
		agent := agentWith(m)
		agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 1}}
		var r pawl.Runner
		_, err := r.Run(t.Context(), agent, pawl.UserText("hi"), nil)
		if !errors.Is(err, busy) || len(m.calls()) != 2 {
			t.Fatalf("%v after %d calls", err, len(m.calls()))
		}
		start := time.Now()
		res := must(t)(r.Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil))
		if took := time.Since(start); res.FinalOutput != "done" || took != 250*time.Millisecond || res.Usage.Requests != 4 {
			t.Errorf("%+v after %v", res, took)
		}
	})
}

// A driver that stops while it waits to try again leaves the time to whoever goes on.
func TestModelRetryInterrupted(t *testing.T) {
	for _, how := range []string{"stopped", "cancelled"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait := &model.Error{Status: 429, Retryable: true, RetryAfter: time.Minute, Delivery: model.DeliveryRefused}
				m := newScript(failing(wait), says("done"))
				agent := agentWith(m)
				agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 1}}
				var r pawl.Runner
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				start := time.Now()
				time.AfterFunc(20*time.Second, func() {
					if how == "stopped" {
						cancel()
					} else if err := r.Cancel(ctx, "r", "ann", ""); err != nil {
						t.Error(err)
					}
				})
				res, err := r.Run(ctx, agent, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"})
				if took := time.Since(start); took != 20*time.Second {
					t.Errorf("it took %v", took)
				}
				if how == "cancelled" {
					if !errors.Is(err, pawl.ErrCancelled) || res.Status != pawl.StatusCancelled || len(m.calls()) != 1 {
						t.Errorf("%+v, %v after %d calls", res, err, len(m.calls()))
					}
					time.Sleep(2 * time.Minute)
					return
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
				if took := time.Since(start); took != time.Minute || res.FinalOutput != "done" {
					t.Errorf("%+v after %v", res, took)
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}
