package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

// plainSession is a session without memory of batches, as a user might write one. fault says
// what becomes of append n: how many items are stored, and the error.
type plainSession struct {
	session.Session
	appends int
	fault   func(n int, items []pawl.Item) (stored int, err error)
}

func (p *plainSession) Append(ctx context.Context, items []pawl.Item) error {
	p.appends++
	stored, err := len(items), error(nil)
	if p.fault != nil {
		stored, err = p.fault(p.appends, items)
	}
	if stored > 0 {
		if err := p.Session.Append(ctx, items[:stored]); err != nil {
			return err
		}
	}
	return err
}

var errSession = errors.New("session down")

// faultAt makes append n fail after so many items were stored; -1 is all of them.
func faultAt(n, stored int) func(int, []pawl.Item) (int, error) {
	return func(i int, items []pawl.Item) (int, error) {
		switch {
		case i != n:
			return len(items), nil
		case stored < 0:
			return len(items), errSession
		}
		return stored, errSession
	}
}

// An append that fails leaves the run resumable; what is owed is appended once, before the
// model is asked again, and nothing runs twice.
func TestSessionAppendFails(t *testing.T) {
	for name, stored := range map[string]int{"nothing stored": 0, "acknowledgement lost": -1} {
		for n := 1; n <= 3; n++ { // the input, the pair, the answer
			eachMode(t, func(t *testing.T, mode mode) {
				for _, how := range []string{"live", "json", "store"} {
					t.Run(fmt.Sprintf("%s/append %d/%s", name, n, how), func(t *testing.T) {
						var e effects
						m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
						agent := agentWith(m, charging("charge", &e, asking))
						sess := &plainSession{Session: session.NewMemory("s"), fault: faultAt(n, stored)}
						r := &pawl.Runner{}
						var from pawl.Resumable
						res, err := mode.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess})
						failures := 0
						for err != nil || res.Waiting() {
							var s *pawl.RunState
							if err != nil {
								if failures++; failures > 1 || !errors.Is(err, errSession) {
									t.Fatal(err)
								}
								if owed := n; len(m.calls()) != owed-1 {
									t.Errorf("%d model calls before append %d was made good", len(m.calls()), n)
								}
								s = stateOf(t, err)
							} else {
								s = res.State()
								if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
									t.Fatal(err)
								}
							}
							switch how {
							case "live":
								from = s
							case "json":
								from, r = viaJSON(t, s), &pawl.Runner{}
							case "store":
								if err := r.Decide(t.Context(), "r", s.Staged()...); err != nil {
									t.Fatal(err)
								}
								from = pawl.RunID("r")
							}
							res, err = mode.resume(r, t.Context(), agent, from, &pawl.RunOptions{Session: sess})
						}
						if failures != 1 {
							t.Errorf("%d failures", failures)
						}
						e.want(t, "charge 5")
						sameViews(t, res, m, sess)
						replays(t, r, "r")
					})
				}
			})
		}
	}
}

// A tail that fits both ways or neither is nobody's guess: the caller gets what is needed to
// repair it, and until then nothing is asked, run or written.
func TestSessionAmbiguous(t *testing.T) {
	call, out := fc("c1", "charge", `{"cents":5}`), item.FunctionOutput("c1", "receipt 5")
	for name, tt := range map[string]struct {
		stored int
		after  func(s session.Session) // what else happens to the session
	}{
		"half of it":               {1, nil},
		"a foreign write behind":   {0, func(s session.Session) { s.Append(context.Background(), []pawl.Item{item.UserText("hello?")}) }},
		"a foreign write, stored":  {-1, func(s session.Session) { s.Append(context.Background(), []pawl.Item{item.UserText("hello?")}) }},
		"cleared":                  {0, func(s session.Session) { s.Clear(context.Background()) }},
		"something was taken away": {0, func(s session.Session) { s.Pop(context.Background()) }},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			m := newScript(calling(call), says("done"))
			agent := agentWith(m, charging("charge", &e, nil))
			sess := &plainSession{Session: session.NewMemory("s"), fault: faultAt(2, tt.stored)}
			var r pawl.Runner
			_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess})
			if !errors.Is(err, errSession) {
				t.Fatal(err)
			}
			if tt.after != nil {
				tt.after(sess.Session)
			}
			held, _ := sess.Items(t.Context(), -1)
			for range 2 {
				_, err = r.Resume(t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{Session: sess})
				var amb *pawl.SessionAmbiguousError
				if !errors.Is(err, pawl.ErrSessionAmbiguous) || !errors.As(err, &amb) {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]pawl.Item{call, out}, amb.Batch); diff != "" || amb.Session != "s" {
					t.Errorf("batch: %s", diff)
				}
				if diff := cmp.Diff([]pawl.Item{item.UserText("pay")}, amb.Before); diff != "" {
					t.Errorf("before: %s", diff)
				}
				if diff := cmp.Diff(held, amb.Tail); diff != "" && len(held) > 0 {
					t.Errorf("tail: %s", diff)
				}
			}
			if n := len(m.calls()); n != 1 || sess.appends != 2 {
				t.Errorf("%d model calls, %d appends", n, sess.appends)
			}
			e.want(t, "charge 5")
			// As the error says: make it end with the batch, and resume.
			sess.Clear(t.Context())
			sess.Session.Append(t.Context(), []pawl.Item{item.UserText("pay"), call, out})
			res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{Session: sess}))
			sameViews(t, res, m, sess)
			e.want(t, "charge 5")
		})
	}
}

// A session that already had history is reconciled by its tail, also if it repeats itself.
func TestSessionPeriodic(t *testing.T) {
	hi := item.UserText("hi")
	for name, tt := range map[string]struct {
		history   []pawl.Item
		stored    int
		ambiguous bool
	}{
		"stored behind a history":      {[]pawl.Item{item.UserText("a"), item.AssistantText("b")}, -1, false},
		"not stored behind a history":  {[]pawl.Item{item.UserText("a"), item.AssistantText("b")}, 0, false},
		"stored, the same all along":   {[]pawl.Item{hi, hi, hi, hi, hi, hi, hi, hi, hi, hi}, -1, true},
		"not stored, the same all":     {[]pawl.Item{hi, hi, hi, hi, hi, hi, hi, hi, hi, hi}, 0, true},
		"stored, the same, but few":    {[]pawl.Item{hi, hi}, -1, false},
		"not stored, the same and few": {[]pawl.Item{hi, hi}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newScript(says("done"))
			agent := agentWith(m)
			sess := &plainSession{Session: session.NewMemory("s"), fault: faultAt(1, tt.stored)}
			sess.Session.Append(t.Context(), tt.history)
			var r pawl.Runner
			_, err := r.Run(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ID: "r", Session: sess})
			if !errors.Is(err, errSession) {
				t.Fatal(err)
			}
			res, err := r.Resume(t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{Session: sess})
			if tt.ambiguous {
				if !errors.Is(err, pawl.ErrSessionAmbiguous) || len(m.calls()) > 0 {
					t.Errorf("%v", err)
				}
				return
			}
			must(t)(res, err)
			sameViews(t, res, m, sess)
		})
	}
}

// The batches of a session that remembers them, or shares the store's database, need no
// look at its tail.
func TestSessionKinds(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (journal.Driver, session.Session){
		"memory": func(*testing.T) (journal.Driver, session.Session) { return nil, session.NewMemory("s") },
		"plain": func(*testing.T) (journal.Driver, session.Session) {
			return nil, &plainSession{Session: session.NewMemory("s")}
		},
		"sqlite, own": func(t *testing.T) (journal.Driver, session.Session) {
			s := openSQLite(t, filepath.Join(t.TempDir(), "a.db"))
			return s, s.Session("s")
		},
		"sqlite, apart": func(t *testing.T) (journal.Driver, session.Session) {
			return journal.NewMemory(), openSQLite(t, filepath.Join(t.TempDir(), "a.db")).Session("s")
		},
		"sqlite, two": func(t *testing.T) (journal.Driver, session.Session) {
			return openSQLite(t, filepath.Join(t.TempDir(), "a.db")), openSQLite(t, filepath.Join(t.TempDir(), "b.db")).Session("s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), calling(fc("c1", "charge", `{"cents":5}`)), says("done"), says("again"))
			agent := agentWith(m, charging("charge", &e, asking))
			store, sess := open(t)
			asked := 0
			r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}, Sessions: func(id string) session.Session {
				if asked++; id == "s" {
					return sess
				}
				return nil
			}}
			res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess}))
			if s := res.State(); s.SessionID() != "s" {
				t.Errorf("session %q", s.SessionID())
			}
			for res.Waiting() {
				if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
					t.Fatal(err)
				}
				res = must(t)(r.Resume(t.Context(), nil, pawl.RunID("r"), nil))
				sameViews(t, res, m, sess)
			}
			if asked != 2 {
				t.Errorf("Sessions was asked %d times", asked)
			}
			e.want(t, "charge 5", "charge 5")
			res = must(t)(r.Run(t.Context(), agent, pawl.UserText("and?"), &pawl.RunOptions{Session: sess}))
			if len(res.ToInputList()) != 8 || len(res.NewItems()) != 1 {
				t.Errorf("%d items, %d new", len(res.ToInputList()), len(res.NewItems()))
			}
			held, _ := sess.Items(t.Context(), -1)
			if diff := cmp.Diff([]pawl.Item(res.ToInputList()), held); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A call that a session's history left open is answered as unknown, once, and stays so.
func TestSessionHealed(t *testing.T) {
	custom, err := item.ParseString(`{"type":"custom_tool_call","call_id":"c8","name":"grep","input":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, sess := range map[string]session.Session{"memory": session.NewMemory("s"), "plain": &plainSession{Session: session.NewMemory("s")}} {
		t.Run(name, func(t *testing.T) {
			sess.Append(t.Context(), []pawl.Item{item.UserText("before"), fc("c9", "charge", "{}"), custom})
			m := newScript(says("done"), says("done"))
			var r pawl.Runner
			for range 2 {
				res := must(t)(r.Run(t.Context(), agentWith(m), pawl.UserText("hi"), &pawl.RunOptions{Session: sess}))
				held, _ := sess.Items(t.Context(), -1)
				if diff := cmp.Diff([]pawl.Item(res.ToInputList()), held); diff != "" {
					t.Error(diff)
				}
				paired(t, "session", held)
			}
			for _, a := range m.calls() {
				paired(t, "request", a.Input)
				if out := outputs(a.Input); len(out) != 2 {
					t.Errorf("outputs %q", out)
				}
			}
		})
	}
}

// Calls of other kinds are healed if their output can say so; one that cannot be healed does not keep a run from
// its session. [M3.2]
func TestSessionHealedOfOtherCalls(t *testing.T) {
	const unknown = "The outcome of this tool call is unknown: it was found without an output. Do not assume that it failed."
	for name, tt := range map[string]struct {
		call, healed string // healed is empty if the call stays open
	}{
		"shell": {`{"type":"shell_call","call_id":"c1","action":{"commands":["ls"]}}`,
			`{"type":"shell_call_output","call_id":"c1","output":[{"stdout":"","stderr":"` + unknown + `","outcome":{"type":"timeout"}}]}`},
		"local shell": {`{"type":"local_shell_call","call_id":"c1","action":{}}`, `{"type":"local_shell_call_output","id":"c1","output":"` + unknown + `"}`},
		"patch":       {`{"type":"apply_patch_call","call_id":"c1"}`, `{"type":"apply_patch_call_output","call_id":"c1","status":"failed","output":"` + unknown + `"}`},
		"computer":    {`{"type":"computer_call","call_id":"c1"}`, ""},
		"tool search": {`{"type":"tool_search_call","call_id":"c1","execution":"client"}`, ""},
		"unreadable":  {`{"type":"function_call","call_id":1}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sess := session.NewMemory("s")
			call := item.FromTrusted(tt.call)
			sess.Append(t.Context(), []pawl.Item{call})
			want := []pawl.Item{call, item.UserText("hi"), item.MessageItem("", "done")}
			if tt.healed != "" {
				want = slices.Insert(want, 1, item.FromTrusted(tt.healed))
			}
			res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(newScript(says("done"))), pawl.UserText("hi"), &pawl.RunOptions{Session: sess}))
			if diff := cmp.Diff(want, []pawl.Item(res.ToInputList())); diff != "" {
				t.Errorf("replay (-want +got):\n%s", diff)
			}
			held, _ := sess.Items(t.Context(), -1)
			if diff := cmp.Diff(want, held); diff != "" {
				t.Errorf("session (-want +got):\n%s", diff)
			}
		})
	}
}

// A session that returns what is no item fails the run before anything happens.
func TestSessionReturnsNoItem(t *testing.T) {
	for _, bad := range []pawl.Item{{}, item.FromTrusted("{")} {
		m := newScript(says("done"))
		sess := &brokenSession{Session: session.NewMemory("s"), items: []pawl.Item{bad}}
		var r pawl.Runner
		_, err := r.Run(t.Context(), agentWith(m), pawl.UserText("hi"), &pawl.RunOptions{ID: "r", Session: sess})
		if err == nil || len(m.calls()) > 0 {
			t.Fatal(err)
		}
		sess.items = nil
		if res := must(t)(r.Resume(t.Context(), agentWith(m), stateOf(t, err), &pawl.RunOptions{Session: sess})); res.FinalOutput != "done" {
			t.Errorf("%+v", res)
		}
		replays(t, &r, "r")
	}
}

type brokenSession struct {
	session.Session
	items []pawl.Item
	err   error
}

func (b *brokenSession) Items(ctx context.Context, limit int) ([]pawl.Item, error) {
	if b.err != nil || b.items != nil {
		return b.items, b.err
	}
	return b.Session.Items(ctx, limit)
}

// A history is read once: when its reading failed it is read again, and never after that.
func TestSessionIsReadOnce(t *testing.T) {
	down := errors.New("down")
	reads := 0
	inner := session.NewMemory("s")
	inner.Append(t.Context(), []pawl.Item{item.UserText("before")})
	sess := &points{Session: inner, at: func(point string) {
		if point == "load" {
			reads++
		}
	}}
	broken := &brokenSession{Session: sess, err: down}
	m := newScript(failing(down), says("done"))
	var r pawl.Runner
	_, err := r.Run(t.Context(), agentWith(m), pawl.UserText("hi"), &pawl.RunOptions{ID: "r", Session: broken})
	if !errors.Is(err, down) || len(m.calls()) > 0 {
		t.Fatal(err)
	}
	broken.err = nil
	for reads == 0 || err != nil {
		var res *pawl.Result
		res, err = r.Resume(t.Context(), agentWith(m), pawl.RunID("r"), &pawl.RunOptions{Session: broken})
		if err == nil && res.FinalOutput != "done" {
			t.Errorf("%+v", res)
		}
	}
	if reads != 1 || len(m.calls()) != 2 {
		t.Errorf("%d reads, %d model calls", reads, len(m.calls()))
	}
}

// A run in the session's own database commits batch and fact together: whatever append of
// the ledger fails, the session has each batch once.
func TestOwnSessionStoreFails(t *testing.T) {
	for _, stored := range []bool{false, true} {
		for n := 2; n < 12; n++ {
			t.Run(fmt.Sprintf("stored %v/append %d", stored, n), func(t *testing.T) {
				var e effects
				m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
				agent := agentWith(m, charging("charge", &e, nil))
				store := openSQLite(t, filepath.Join(t.TempDir(), "a.db"))
				sess := store.Session("s")
				ill := &illStore{Store: store, n: n, stored: stored}
				r := &pawl.Runner{Store: ill}
				_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: ownedBy{sess, ill}})
				var je *pawl.JournalError
				if err != nil && !errors.As(err, &je) {
					t.Fatal(err)
				}
				well := &pawl.Runner{Store: store}
				from := pawl.Resumable(pawl.RunID("r"))
				if err != nil {
					from = stateOf(t, err)
				}
				res := must(t)(well.Resume(t.Context(), agent, from, &pawl.RunOptions{Session: sess}))
				if res.Waiting() { // the append of the intent was in doubt
					if err := well.Decide(t.Context(), "r", pawl.Retry(res.Interruptions[0].ID, "ann")); err != nil {
						t.Fatal(err)
					}
					res = must(t)(well.Resume(t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{Session: sess}))
				}
				e.want(t, "charge 5")
				sameViews(t, res, m, sess)
			})
		}
	}
}

// illStore fails from its n-th append on.
type illStore struct {
	*sqlstore.Store
	n      int
	stored bool // the first of them is stored all the same
	seen   int
}

func (s *illStore) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	if s.seen++; s.seen < s.n {
		return s.Store.Append(ctx, run, epoch, after, recs, with...)
	}
	if s.stored && s.seen == s.n {
		s.Store.Append(ctx, run, epoch, after, recs, with...)
	}
	return errDead
}

func (s *illStore) Read(ctx context.Context, run string, after uint64) ([]journal.Record, error) {
	if s.seen >= s.n {
		return nil, errDead // so that nobody can tell what was stored
	}
	return s.Store.Read(ctx, run, after)
}

// ownedBy is a session of a store that is wrapped.
type ownedBy struct {
	*sqlstore.Session
	store journal.Driver
}

func (o ownedBy) Store() journal.Driver { return o.store }

// A run with a session whose context ends in the middle of an append does not lose it.
func TestSessionAppendCutShort(t *testing.T) {
	for _, stored := range []int{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var e effects
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			agent := agentWith(m, charging("charge", &e, nil))
			sess := &plainSession{Session: session.NewMemory("s")}
			sess.fault = func(n int, items []pawl.Item) (int, error) {
				if n != 2 {
					return len(items), nil
				}
				cancel()
				if stored < 0 {
					return len(items), ctx.Err()
				}
				return 0, ctx.Err()
			}
			var r pawl.Runner
			_, err := r.Run(ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess})
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			res := must(t)(r.Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), &pawl.RunOptions{Session: sess}))
			e.want(t, "charge 5")
			sameViews(t, res, m, sess)
		})
	}
}
