package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// held is a conversation that a run may have to itself, in a store.
type held struct {
	store   journal.Driver
	opts    func(run string) *pawl.RunOptions
	session session.Session // nil for a conversation object
	id      string
}

// conversations makes the kinds of conversations.
var conversations = map[string]func(t *testing.T) held{
	"session of the store": func(t *testing.T) held {
		s := openSQLite(t, filepath.Join(t.TempDir(), "runs.db"))
		return onSession(s, s.Session("chat"))
	},
	"memory session": func(t *testing.T) held { return onSession(journal.NewMemory(), session.NewMemory("chat")) },
	"plain session": func(t *testing.T) held {
		return onSession(openSQLite(t, filepath.Join(t.TempDir(), "runs.db")), &plainSession{Session: session.NewMemory("chat")})
	},
	"conversation": func(t *testing.T) held {
		return held{store: openSQLite(t, filepath.Join(t.TempDir(), "runs.db")), id: "conv_1", opts: func(run string) *pawl.RunOptions {
			return &pawl.RunOptions{ID: run, ConversationID: "conv_1"}
		}}
	},
}

func onSession(d journal.Driver, s session.Session) held {
	return held{store: d, session: s, id: s.ID(), opts: func(run string) *pawl.RunOptions { return &pawl.RunOptions{ID: run, Session: s} }}
}

// eachConversation runs a test for every kind of conversation, run and stream.
func eachConversation(t *testing.T, f func(t *testing.T, mode mode, h held)) {
	for name, open := range conversations {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, mode mode) { f(t, mode, open(t)) })
		})
	}
}

// keeps makes a model whose server keeps conversations.
func keeps(m *script) *script {
	m.info.ServerState = true
	return m
}

// bystander is an agent that must not be asked anything.
func bystander(t *testing.T) *pawl.Agent {
	return agentWith(keeps(newScript(func(context.Context, *model.Request, func(*model.Event) bool) (*model.Response, error) {
		t.Error("the model is asked")
		return nil, errors.New("asked")
	})))
}

// holdsItems checks what a session holds, in short.
func holdsItems(t *testing.T, s session.Session, want ...string) {
	t.Helper()
	if s == nil {
		return
	}
	list, err := s.Items(context.Background(), -1)
	if err != nil {
		t.Fatal(err)
	}
	paired(t, "session", list)
	var got []string
	for _, it := range list {
		switch h := it.Head(); h.Type {
		case item.TypeFunctionCall:
			got = append(got, "call "+h.CallID)
		case item.TypeFunctionCallOutput:
			o, _ := it.FunctionCallOutput()
			got = append(got, o.Text)
		default:
			m, _ := it.Message()
			got = append(got, m.Text())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("session (-want +got):\n%s", diff)
	}
}

// A session whose run somebody drives is that run's, and a second run on it is refused before
// anything of it happens. The same run again is no second run.
func TestSessionBusy(t *testing.T) {
	eachConversation(t, func(t *testing.T, mode mode, h held) {
		entered, release := make(chan struct{}), make(chan struct{})
		agent := agentWith(keeps(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))), charging("charge", &effects{}, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
				close(entered)
				<-release
				return "paid", nil
			}
		}))
		done := make(chan *pawl.Result)
		go func() {
			r := pawl.Runner{Store: h.store}
			res, _ := r.Run(context.Background(), agent, pawl.UserText("pay"), h.opts("first"))
			done <- res
		}()
		<-entered
		r := &pawl.Runner{Store: h.store}
		for _, supersede := range []bool{false, true} {
			o := h.opts("second")
			o.Supersede = supersede
			_, err := mode.run(r, t.Context(), bystander(t), pawl.UserText("hurry"), o)
			busy, ok := errors.AsType[*pawl.SessionBusyError](err)
			if !ok || !errors.Is(err, pawl.ErrSessionBusy) || busy.Run != "first" || busy.Session != h.id || busy.Holder.Owner.PID == 0 {
				t.Fatalf("second run: %v", err)
			}
			if _, err := r.State(t.Context(), "second"); !errors.Is(err, pawl.ErrUnknownRun) {
				t.Errorf("it left something: %v", err)
			}
		}
		if _, err := mode.run(r, t.Context(), agent, pawl.UserText("pay"), h.opts("first")); !errors.Is(err, pawl.ErrClaimed) || errors.Is(err, pawl.ErrSessionBusy) {
			t.Errorf("the same run: %v", err)
		}
		if res := must(t)(r.Run(t.Context(), agentWith(newScript(says("hello"))), pawl.UserText("hi"), nil)); res.FinalOutput != "hello" {
			t.Errorf("without a session: %+v", res)
		}
		close(release)
		if res := <-done; res == nil || res.FinalOutput != "done" {
			t.Fatalf("the first: %+v", res)
		}
		res := must(t)(mode.run(r, t.Context(), agentWith(keeps(newScript(says("again")))), pawl.UserText("thanks"), h.opts("second")))
		if res.FinalOutput != "again" {
			t.Errorf("%+v", res)
		}
		holdsItems(t, h.session, "pay", "call c1", "paid", "done", "thanks", "again")
	})
}

// waitingOn starts a run that waits for an approval.
func waitingOn(t *testing.T, mode mode, h held, e *effects) (*pawl.Agent, *pawl.Result) {
	t.Helper()
	agent := agentWith(keeps(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))), charging("charge", e, asking))
	r := pawl.Runner{Store: h.store}
	res := must(t)(mode.run(&r, t.Context(), agent, pawl.UserText("pay"), h.opts("first")))
	if !res.Waiting() {
		t.Fatalf("%+v", res)
	}
	return agent, res
}

// A run that waits for a decision keeps its session until it is decided.
func TestSessionWaiting(t *testing.T) {
	eachConversation(t, func(t *testing.T, mode mode, h held) {
		var e effects
		agent, res := waitingOn(t, mode, h, &e)
		r := &pawl.Runner{Store: h.store}
		_, err := mode.run(r, t.Context(), bystander(t), pawl.UserText("never mind"), h.opts("second"))
		waiting, ok := errors.AsType[*pawl.SessionWaitingError](err)
		if !ok || !errors.Is(err, pawl.ErrSessionWaiting) || waiting.Run != "first" || waiting.Session != h.id || !strings.Contains(err.Error(), "1.0#0 charge") {
			t.Fatalf("second run: %v", err)
		}
		if diff := cmp.Diff(res.Interruptions, waiting.Interruptions); diff != "" {
			t.Errorf("interruptions (-the run's +the error's):\n%s", diff)
		}
		if facts := replays(t, r, "first").Facts(); facts != res.State().Facts() {
			t.Errorf("the run has %d facts, had %d", facts, res.State().Facts())
		}
		if err := waiting.State.Approve(waiting.Interruptions[0], "ann"); err != nil {
			t.Fatal(err)
		}
		o := &pawl.RunOptions{Session: h.session}
		if res := must(t)(mode.resume(r, t.Context(), agent, waiting.State, o)); res.FinalOutput != "done" {
			t.Errorf("%+v", res)
		}
		e.want(t, "charge 5")
		must(t)(mode.run(r, t.Context(), agentWith(keeps(newScript(says("again")))), pawl.UserText("thanks"), h.opts("second")))
		holdsItems(t, h.session, "pay", "call c1", "receipt 5", "done", "thanks", "again")
	})
}

// A run that is started in place of one that waits closes it: its call is not executed, now or
// by a late approval, and the new run reads that.
func TestSupersede(t *testing.T) {
	eachConversation(t, func(t *testing.T, mode mode, h held) {
		var e effects
		agent, first := waitingOn(t, mode, h, &e)
		staged := first.State()
		if err := staged.Approve(first.Interruptions[0], "ann"); err != nil {
			t.Fatal(err)
		}
		r := &pawl.Runner{Store: h.store}
		o := h.opts("second")
		o.Supersede = true
		m := keeps(newScript(says("fine")))
		if res := must(t)(mode.run(r, t.Context(), agentWith(m), pawl.UserText("never mind"), o)); res.FinalOutput != "fine" {
			t.Errorf("%+v", res)
		}
		const dropped = "The tool was not executed: the run was cancelled."
		holdsItems(t, h.session, "pay", "call c1", dropped, "never mind", "fine")
		if h.session != nil {
			if diff := cmp.Diff([]string{"c1: " + dropped}, outputs(m.calls()[0].Input)); diff != "" {
				t.Errorf("the new run reads:\n%s", diff)
			}
		}
		resume := func(agent *pawl.Agent, from pawl.Resumable) error {
			_, err := mode.resume(r, t.Context(), agent, from, &pawl.RunOptions{Session: h.session})
			return err
		}
		for what, err := range map[string]error{
			"decided":          r.Decide(t.Context(), "first", pawl.Approve(first.Interruptions[0].ID, "ann")),
			"decided on state": replays(t, r, "first").Decide(pawl.Approve(first.Interruptions[0].ID, "ann")),
			"resumed by state": resume(agent, staged),
			"resumed by id":    resume(agent, pawl.RunID("first")),
			"without an agent": resume(nil, pawl.RunID("first")),
		} {
			if by, ok := errors.AsType[*pawl.SupersededError](err); !ok || !errors.Is(err, pawl.ErrSuperseded) || by.Run != "first" || by.Successor != "second" {
				t.Errorf("%s: %v", what, err)
			}
		}
		if s := replays(t, r, "first"); s.Status() != pawl.StatusCancelled {
			t.Errorf("status %s", s.Status())
		}
		e.want(t)
	})
}

// A run that is cancelled and was not driven since does not keep its session, though it waits.
func TestCancelledRunGivesItsSessionUp(t *testing.T) {
	eachConversation(t, func(t *testing.T, mode mode, h held) {
		var e effects
		_, _ = waitingOn(t, mode, h, &e)
		r := &pawl.Runner{Store: h.store}
		if err := r.Cancel(t.Context(), "first", "ann", "enough"); err != nil {
			t.Fatal(err)
		}
		must(t)(mode.run(r, t.Context(), agentWith(keeps(newScript(says("fine")))), pawl.UserText("again"), h.opts("second")))
		holdsItems(t, h.session, "pay", "call c1", "The tool was not executed: the run was cancelled.", "again", "fine")
		_, err := mode.resume(r, t.Context(), nil, pawl.RunID("first"), nil)
		if !errors.Is(err, pawl.ErrCancelled) {
			t.Errorf("resumed: %v", err)
		}
		e.want(t)
	})
}

// A cancelled run needs no agent to be brought to its end.
func TestCancelledRunNeedsNoAgent(t *testing.T) {
	h := conversations["memory session"](t)
	var e effects
	waitingOn(t, modes[0], h, &e)
	r := &pawl.Runner{Store: h.store, Sessions: func(string) session.Session { return h.session }}
	if _, err := r.Resume(t.Context(), nil, pawl.RunID("first"), nil); !errors.Is(err, pawl.ErrUnknownAgent) {
		t.Fatalf("not cancelled: %v", err)
	}
	if err := r.Cancel(t.Context(), "first", "ann", "enough"); err != nil {
		t.Fatal(err)
	}
	res, err := r.Resume(t.Context(), nil, pawl.RunID("first"), nil)
	if !errors.Is(err, pawl.ErrCancelled) || errors.Is(err, pawl.ErrSuperseded) || res.Status != pawl.StatusCancelled {
		t.Fatalf("%+v, %v", res, err)
	}
	holdsItems(t, h.session, "pay", "call c1", "The tool was not executed: the run was cancelled.")
}

// A failed run can be resumed until a new run is started on its session, which closes it.
func TestFailedRunGivesItsSessionUp(t *testing.T) {
	eachConversation(t, func(t *testing.T, mode mode, h held) {
		down := errors.New("model down")
		var e effects
		tool := charging("charge", &e, nil)
		agent := agentWith(keeps(newScript(calling(fc("c1", "charge", `{"cents":5}`)), failing(down), failing(down))), tool)
		r := &pawl.Runner{Store: h.store}
		_, err := mode.run(r, t.Context(), agent, pawl.UserText("pay"), h.opts("first"))
		if !errors.Is(err, down) {
			t.Fatal(err)
		}
		_, err = mode.resume(r, t.Context(), agent, pawl.RunID("first"), &pawl.RunOptions{Session: h.session})
		if err == nil {
			t.Fatal("the model is up again")
		}
		must(t)(mode.run(r, t.Context(), agentWith(keeps(newScript(says("fine")))), pawl.UserText("again"), h.opts("second")))
		holdsItems(t, h.session, "pay", "call c1", "receipt 5", "again", "fine")
		_, err = mode.resume(r, t.Context(), agent, pawl.RunID("first"), &pawl.RunOptions{Session: h.session})
		if !errors.Is(err, pawl.ErrSuperseded) {
			t.Errorf("resumed: %v", err)
		}
		e.want(t, "charge 5")
	})
}

// A run that was stopped in the middle of its tools and is followed by another on its session
// is closed: what ran is in the session once, with its output, and nothing runs again.
func TestStoppedRunGivesItsSessionUp(t *testing.T) {
	eachConversation(t, func(t *testing.T, mode mode, h held) {
		var e effects
		ctx, cancel := context.WithCancel(t.Context())
		var others sync.WaitGroup
		others.Add(2)
		tool := func(name string, last bool) pawl.Tool {
			return charging(name, &e, func(f *pawl.Func[charge, string]) {
				f.Run = func(ctx context.Context, _ *pawl.Call, in charge) (string, error) {
					e.add("%s", name)
					if last {
						others.Wait()
						cancel()
						<-ctx.Done()
						return "", ctx.Err()
					}
					others.Done()
					return name + " done", nil
				}
			})
		}
		agent := agentWith(keeps(newScript(calling(fc("c1", "e1", `{"cents":5}`), fc("c2", "e2", `{"cents":5}`), fc("c3", "e3", `{"cents":5}`)))),
			tool("e1", false), tool("e2", false), tool("e3", true))
		r := &pawl.Runner{Store: h.store}
		if _, err := mode.run(r, ctx, agent, pawl.UserText("go"), h.opts("first")); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		m := keeps(newScript(says("fine")))
		must(t)(mode.run(r, t.Context(), agentWith(m), pawl.UserText("continue"), h.opts("second")))
		if len(e.list) != 3 {
			t.Errorf("effects %v", e.list)
		}
		if h.session == nil {
			return
		}
		got := outputs(m.calls()[0].Input)
		if len(got) != 3 || got[0] != "c1: e1 done" || got[1] != "c2: e2 done" || !strings.HasPrefix(got[2], "c3: The outcome of this tool call is unknown") {
			t.Errorf("outputs %q", got)
		}
		paired(t, "request", m.calls()[0].Input)
	})
}

// A run whose process is gone does not keep its session, whatever its lease says.
func TestDeadRunGivesItsSessionUp(t *testing.T) {
	sess := session.NewMemory("chat")
	agent := func(body func()) *pawl.Agent {
		return agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &effects{}, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) { body(); return "", nil }
		}))
	}
	doc := snapshot(t, agent, &pawl.RunOptions{Session: session.NewMemory("chat")})
	sess.Append(t.Context(), []pawl.Item{item.UserText("pay")})
	for name, owner := range map[string]func(*journal.Owner){"gone": gone, "elsewhere, its lease ran out": elsewhere} {
		t.Run(name, func(t *testing.T) {
			sess := session.NewMemory("chat")
			r := pawl.Runner{Store: abandoned(t, doc, owner)}
			m := newScript(says("fine"))
			must(t)(r.Run(t.Context(), agentWith(m), pawl.UserText("continue"), &pawl.RunOptions{ID: "second", Session: sess}))
			got := outputs(m.calls()[0].Input)
			if len(got) != 1 || !strings.HasPrefix(got[0], "c1: The outcome of this tool call is unknown") {
				t.Errorf("outputs %q", got)
			}
		})
	}
}

// Of runs that are started at once on one session, in several stores of one file, one has it;
// the session never holds a mixture of two turns.
func TestRunsAtOnce(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) func() held{
		"sqlite": func(t *testing.T) func() held {
			path := filepath.Join(t.TempDir(), "runs.db")
			return func() held { s := openSQLite(t, path); return onSession(s, s.Session("chat")) }
		},
		"memory": func(t *testing.T) func() held {
			h := conversations["memory session"](t)
			return func() held { return h }
		},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 6
			view := open(t)
			release := make(chan struct{})
			errs := make([]error, n)
			var wg, busy sync.WaitGroup
			busy.Add(n - 1)
			for i := range n {
				h := view()
				agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &effects{}, func(f *pawl.Func[charge, string]) {
					f.Run = func(context.Context, *pawl.Call, charge) (string, error) { <-release; return "paid", nil }
				}))
				wg.Go(func() {
					r := pawl.Runner{Store: h.store}
					_, errs[i] = r.Run(context.Background(), agent, pawl.UserText("pay"), h.opts(fmt.Sprintf("r%d", i)))
					if errs[i] != nil {
						busy.Done()
					}
				})
			}
			busy.Wait()
			close(release)
			wg.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else if !errors.Is(err, pawl.ErrSessionBusy) {
					t.Error(err)
				}
			}
			if won != 1 {
				t.Errorf("%d runs had the session: %v", won, errs)
			}
			holdsItems(t, view().session, "pay", "call c1", "paid", "done")
		})
	}
}

// A fork that is given a session, and a document that brings one, are runs like any other.
func TestForkOnABusySession(t *testing.T) {
	h := conversations["session of the store"](t)
	var e effects
	_, res := waitingOn(t, modes[0], h, &e)
	fork, err := res.State().Fork("fork")
	if err != nil {
		t.Fatal(err)
	}
	r := &pawl.Runner{Store: h.store}
	agent := agentWith(newScript(says("done")), charging("charge", &e, asking))
	_, err = r.Resume(t.Context(), agent, fork, &pawl.RunOptions{Session: h.session})
	if waiting, ok := errors.AsType[*pawl.SessionWaitingError](err); !ok || waiting.Run != "first" {
		t.Fatalf("%v", err)
	}
	if _, err := r.State(t.Context(), "fork"); !errors.Is(err, pawl.ErrUnknownRun) {
		t.Errorf("it left something: %v", err)
	}
	if err := fork.Approve(fork.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	forked := must(t)(r.Resume(t.Context(), agent, fork, &pawl.RunOptions{Session: h.session, Supersede: true}))
	if forked.FinalOutput != "done" {
		t.Errorf("%+v", forked)
	}
	e.want(t, "charge 5")
	if s := replays(t, r, "first"); s.Status() != pawl.StatusCancelled {
		t.Errorf("the first is %s", s.Status())
	}

	var memory pawl.Runner
	sess := session.NewMemory("chat")
	must(t)(memory.Run(t.Context(), agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`))), charging("charge", &e, asking)), pawl.UserText("pay"), &pawl.RunOptions{ID: "first", Session: sess}))
	var elsewhere pawl.Runner
	other := must(t)(elsewhere.Run(t.Context(), agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`))), charging("charge", &e, asking)), pawl.UserText("pay"), &pawl.RunOptions{ID: "other", Session: session.NewMemory("chat")}))
	_, err = memory.Resume(t.Context(), agent, viaJSON(t, other.State()), &pawl.RunOptions{Session: sess})
	if !errors.Is(err, pawl.ErrSessionWaiting) {
		t.Errorf("a document: %v", err)
	}
}

// A run that cannot be closed keeps its session, can be resumed, and nothing of the new run
// happens.
func TestSessionCannotBeHandedOver(t *testing.T) {
	down := errors.New("model down")
	var e effects
	sess := &plainSession{Session: session.NewMemory("chat")}
	agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, nil))
	r := &pawl.Runner{Store: journal.NewMemory()}
	sess.fault = func(n int, items []pawl.Item) (int, error) {
		if n > 1 {
			return 0, down
		}
		return len(items), nil
	}
	if _, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "first", Session: sess}); !errors.Is(err, down) {
		t.Fatal(err)
	}
	_, err := r.Run(t.Context(), bystander(t), pawl.UserText("again"), &pawl.RunOptions{ID: "second", Session: sess})
	if !errors.Is(err, down) || !strings.Contains(err.Error(), "closing run first") {
		t.Fatalf("%v", err)
	}
	if _, err := r.State(t.Context(), "second"); !errors.Is(err, pawl.ErrUnknownRun) {
		t.Errorf("it left something: %v", err)
	}
	sess.fault = nil
	must(t)(r.Run(t.Context(), agentWith(newScript(says("fine"))), pawl.UserText("again"), &pawl.RunOptions{ID: "second", Session: sess}))
	holdsItems(t, sess, "pay", "call c1", "receipt 5", "again", "fine")
	e.want(t, "charge 5")
}

// A lost answer to the first append is looked up, and is not taken for another run.
func TestFirstAppendIsLost(t *testing.T) {
	for _, reply := range []journaltest.Reply{journaltest.Absent, journaltest.Stored, journaltest.Later} {
		t.Run(reply.String(), func(t *testing.T) {
			store := journaltest.Faulty(journal.NewMemory(), journaltest.Plan{1: reply})
			r := pawl.Runner{Store: store}
			sess := session.NewMemory("chat")
			must(t)(r.Run(t.Context(), agentWith(newScript(says("done"))), pawl.UserText("hi"), &pawl.RunOptions{ID: "r", Session: sess}))
			if reply == journaltest.Later {
				if err := store.Deliver(1); !errors.Is(err, pawl.ErrFenced) {
					t.Errorf("delivered late: %v", err)
				}
			}
			holdsItems(t, sess, "hi", "done")
		})
	}
}

// A panic in Runner.Sessions is an error of the run.
func TestSessionsPanics(t *testing.T) {
	h := conversations["memory session"](t)
	agent, _ := waitingOn(t, modes[0], h, &effects{})
	r := pawl.Runner{Store: h.store, Sessions: func(string) session.Session { panic("no such table") }}
	_, err := r.Resume(t.Context(), agent, pawl.RunID("first"), nil)
	if p, ok := errors.AsType[*pawl.PanicError](err); !ok || p.In != `Runner.Sessions("chat")` || p.Value != "no such table" || p.Stack == "" {
		t.Errorf("%v", err)
	}
}

// A Runner's settings that make no sense are mistakes.
func TestRunnerMistakes(t *testing.T) {
	for want, r := range map[string]*pawl.Runner{
		"pawl: Runner.Lease: is negative": {Lease: -1},
		"pawl: Runner.Grace: is negative": {Grace: -1},
	} {
		_, run := r.Run(t.Context(), bystander(t), pawl.UserText("hi"), nil)
		_, resume := r.Resume(t.Context(), bystander(t), pawl.RunID("r"), nil)
		for _, err := range []error{run, resume} {
			if _, ok := errors.AsType[*pawl.ConfigError](err); !ok || err.Error() != want {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
}
