package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

func TestRun(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "charge", `{"cents":7}`)), says("done"))
		sess := session.NewMemory("s")
		sess.Append(t.Context(), []pawl.Item{item.UserText("before")})
		var r pawl.Runner
		res := must(t)(mode.run(&r, t.Context(), agentWith(m, charging("charge", &e, nil)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess}))
		if res.FinalOutput != "done" || res.Status != pawl.StatusFinished || res.Run != "r" || res.Turns != 2 {
			t.Errorf("result %+v", res)
		}
		if want := (pawl.Usage{Requests: 2, Input: 6, Output: 4, Total: 10}); res.Usage != want {
			t.Errorf("usage %+v, want %+v", res.Usage, want)
		}
		if diff := cmp.Diff([]string{"c1: receipt 5", "c2: receipt 7"}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
		if n := len(res.ToInputList()); n != 7 {
			t.Errorf("the conversation has %d items, want 7", n)
		}
		sameViews(t, res, m, sess)
		if s := replays(t, &r, "r"); s.Status() != pawl.StatusFinished || s.Result().FinalOutput != "done" {
			t.Errorf("stored: %s %q", s.Status(), s.Result().FinalOutput)
		}
	})
}

// A response that waits for a decision is in no view before it is settled.
func TestRunWaits(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		for _, how := range []string{"live", "json", "store"} {
			t.Run(how, func(t *testing.T) {
				var e effects
				m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "look", `{"cents":1}`)), says("done"))
				agent := agentWith(m, charging("charge", &e, asking), charging("look", &e, nil))
				sess := session.NewMemory("s")
				r := &pawl.Runner{}
				res := must(t)(mode.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{Session: sess}))
				if !res.Waiting() || len(res.Interruptions) != 1 {
					t.Fatalf("result %+v", res)
				}
				in := res.Interruptions[0]
				if in.Kind != pawl.ApprovalNeeded || in.Tool != "charge" || in.CallID != "c1" || in.Arguments != `{"cents":5}` || in.Agent != "support" {
					t.Errorf("interruption %+v", in)
				}
				e.want(t, "look 1")
				sameViews(t, res, m, sess)
				if n := len(res.NewItems()); n != 0 {
					t.Errorf("%d new items while a call is open", n)
				}
				var from pawl.Resumable
				switch how {
				case "store":
					if err := r.Decide(t.Context(), res.Run, pawl.Approve(in.ID, "ann")); err != nil {
						t.Fatal(err)
					}
					from = pawl.RunID(res.Run)
				default:
					s := res.State()
					if err := s.Approve(in, "ann"); err != nil {
						t.Fatal(err)
					}
					if how == "json" {
						s, r = viaJSON(t, s), &pawl.Runner{}
					}
					from = s
				}
				res = must(t)(mode.resume(r, t.Context(), agent, from, &pawl.RunOptions{Session: sess}))
				if res.FinalOutput != "done" {
					t.Errorf("result %+v", res)
				}
				e.want(t, "look 1", "charge 5")
				if diff := cmp.Diff([]string{"c1: receipt 5", "c2: receipt 1"}, outputs(res.NewItems())); diff != "" {
					t.Error(diff)
				}
				sameViews(t, res, m, sess)
				replays(t, r, res.Run)
			})
		}
	})
}

// One Runner and one Agent serve many runs at once, and leave no goroutine behind.
func TestManyRuns(t *testing.T) {
	const runs = 100
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			var e effects
			tool := charging("charge", &e, func(f *pawl.Func[charge, string]) {
				f.Approve = func(_ context.Context, _ *pawl.Call, in charge) (pawl.Gate, error) {
					if in.Cents%2 == 0 {
						return pawl.Allow, nil
					}
					return pawl.Ask, nil
				}
			})
			agent := agentWith(nil, tool)
			agent.Instructions = pawl.Text("be kind")
			store := open(t)
			r := pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
			var wg sync.WaitGroup
			for i := range runs {
				wg.Go(func() {
					m := newScript(calling(fc("c1", "charge", fmt.Sprintf(`{"cents":%d}`, i)), fc("c2", "charge", `{"cents":1000}`)), says(fmt.Sprint("done ", i)))
					var sess session.Session = session.NewMemory(fmt.Sprint("s", i))
					if s, ok := store.(*sqlstore.Store); ok {
						sess = s.Session(fmt.Sprint("s", i))
					}
					id := fmt.Sprint("run-", i)
					res, err := modes[i%2].run(&r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: id, Session: sess, Model: m})
					if err == nil && res.Waiting() {
						if err = r.Decide(t.Context(), id, pawl.Approve(res.Interruptions[0].ID, "ann")); err == nil {
							res, err = modes[i%2].resume(&r, t.Context(), nil, pawl.RunID(id), &pawl.RunOptions{Session: sess, Model: m})
						}
					}
					if err != nil || res.FinalOutput != fmt.Sprint("done ", i) {
						t.Errorf("run %d: %+v, %v", i, res, err)
						return
					}
					sameViews(t, res, m, sess)
				})
			}
			wg.Wait()
			if n := len(e.list); n != 2*runs {
				t.Errorf("%d effects, want %d", n, 2*runs)
			}
			infos, err := store.List(t.Context(), journal.Query{Limit: 1000})
			if err != nil || len(infos) != runs {
				t.Fatalf("%d runs in the store, %v", len(infos), err)
			}
			for _, info := range infos {
				if !info.Ended || info.Holder != nil {
					t.Errorf("%+v", info)
				}
			}
			settles(t, before)
		})
	}
}

// Two drivers that want one run at the same moment: one has it, nothing happens twice.
func TestRaceForARun(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			var e effects
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			agent := agentWith(m, charging("charge", &e, asking))
			store := open(t)
			first := pawl.Runner{Store: store}
			s := must(t)(first.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})).State()
			if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
				t.Fatal(err)
			}
			doc := marshal(t, s)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					s, err := pawl.ParseRunState(doc)
					if err != nil {
						t.Error(err)
						return
					}
					r := pawl.Runner{Store: store}
					res, err := r.Resume(t.Context(), agent, s, nil)
					switch {
					case errors.Is(err, pawl.ErrClaimed):
					case err != nil:
						t.Error(err)
					case res.FinalOutput != "done":
						t.Errorf("%+v", res)
					}
				})
			}
			wg.Wait()
			e.want(t, "charge 5")
			if n := len(m.calls()); n != 2 {
				t.Errorf("%d model calls", n)
			}
			if s := replays(t, &first, "r"); s.Status() != pawl.StatusFinished {
				t.Errorf("status %s", s.Status())
			}
		})
	}
	t.Run("documents", func(t *testing.T) {
		var e effects
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
		agent := agentWith(m, charging("charge", &e, asking))
		s := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), nil)).State()
		if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		doc := marshal(t, s)
		var r pawl.Runner
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				s, err := pawl.ParseRunState(doc)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := r.Resume(t.Context(), agent, s, nil); err != nil && !errors.Is(err, pawl.ErrClaimed) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		e.want(t, "charge 5")
	})
}

// A server-managed run sends what its chain lacks, and nothing twice.
func TestServerManaged(t *testing.T) {
	for name, tt := range map[string]struct {
		opts pawl.RunOptions
		// want is what each request continues.
		want []string
	}{
		"conversation": {pawl.RunOptions{ConversationID: "conv"}, []string{"conv", "conv", "conv"}},
		"previous":     {pawl.RunOptions{PreviousResponseID: "resp_0"}, []string{"resp_0", "resp_1", "resp_2"}},
		"auto":         {pawl.RunOptions{AutoPreviousResponseID: true}, []string{"", "resp_1", "resp_2"}},
	} {
		eachMode(t, func(t *testing.T, mode mode) {
			for _, how := range []string{"live", "json"} {
				t.Run(name+"/"+how, func(t *testing.T) {
					var e effects
					m := newScript(
						response("resp_1", item.FunctionCallItem("fc_1", "c1", "charge", `{"cents":5}`), item.FunctionCallItem("fc_2", "c2", "look", `{"cents":1}`), item.FunctionCallItem("fc_3", "c3", "none", `{}`)),
						response("resp_2", item.FunctionCallItem("fc_4", "c4", "charge", `{"cents":6}`)),
						response("resp_3", item.MessageItem("msg_1", "done")))
					m.info = model.Info{ServerState: true, UniqueCallIDs: true}
					agent := agentWith(m, charging("charge", &e, asking), charging("look", &e, nil))
					r := &pawl.Runner{}
					opts := tt.opts
					opts.ToolNotFound = pawl.TellModel
					res := must(t)(mode.run(r, t.Context(), agent, pawl.UserText("pay"), &opts))
					for res.Waiting() {
						s := res.State()
						if how == "json" {
							s, r = viaJSON(t, s), &pawl.Runner{}
						}
						if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
							t.Fatal(err)
						}
						res = must(t)(mode.resume(r, t.Context(), agent, s, &pawl.RunOptions{ToolNotFound: pawl.TellModel}))
					}
					if res.FinalOutput != "done" || res.LastResponseID != "resp_3" {
						t.Errorf("%+v", res)
					}
					e.want(t, "look 1", "charge 5", "charge 6")
					var continues []string
					var sent [][]string
					for _, a := range m.calls() {
						continues = append(continues, a.Previous+a.Conversation)
						sent = append(sent, outputs(a.Input))
						if len(a.Input) != max(1, len(outputs(a.Input))) {
							t.Errorf("a request sends %v", a.Input)
						}
					}
					if diff := cmp.Diff(tt.want, continues); diff != "" {
						t.Errorf("requests continue (-want +got):\n%s", diff)
					}
					want := [][]string{nil, {"c1: receipt 5", "c2: receipt 1", `c3: Tool "none" not found. Available tools: charge, look.`}, {"c4: receipt 6"}}
					if diff := cmp.Diff(want, sent); diff != "" {
						t.Errorf("outputs sent (-want +got):\n%s", diff)
					}
					paired(t, "replay", res.ToInputList())
				})
			}
		})
	}
}

func TestStateOfUnknownRun(t *testing.T) {
	var r pawl.Runner
	for _, id := range []string{"", "none"} {
		if s, err := r.State(t.Context(), id); !errors.Is(err, pawl.ErrUnknownRun) || s != nil {
			t.Errorf("run %q: %v, %v", id, s, err)
		}
		if err := r.Decide(t.Context(), id, pawl.Approve("1.0#0", "ann")); !errors.Is(err, pawl.ErrUnknownRun) {
			t.Errorf("deciding run %q: %v", id, err)
		}
	}
}

// Run ids that are made are UUIDs of version 7, in order of time.
func TestRunIDs(t *testing.T) {
	var r pawl.Runner
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 50 {
		res := must(t)(r.Run(t.Context(), agentWith(newScript(says("done"))), pawl.UserText("hi"), nil))
		if !uuid.MatchString(res.Run) || seen[res.Run] {
			t.Errorf("run id %q", res.Run)
		}
		seen[res.Run] = true
	}
}
