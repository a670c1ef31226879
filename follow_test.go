package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
)

// seen reads what a watch shows until it ends, or until the reader has had enough.
func seen(events iter.Seq2[pawl.WatchEvent, error], enough func(pawl.Event) bool) (list []string, at []pawl.Cursor, err error) {
	for ev, e := range events {
		if e != nil {
			return list, at, e
		}
		list, at = append(list, strings.TrimSpace(describe(ev.Event))), append(at, ev.Cursor)
		if enough != nil && enough(ev.Event) {
			break
		}
	}
	return list, at, nil
}

// durable leaves out of a stream what is not recorded.
func durable(list []string) (kept []string) {
	for _, ev := range list {
		if !strings.HasPrefix(ev, "delta ") && !strings.HasPrefix(ev, "raw ") && !strings.HasPrefix(ev, "reset ") {
			kept = append(kept, ev)
		}
	}
	return kept
}

// busyScript has items of every kind, unknown tools, a failed attempt and two turns with calls.
func busyScript() *script {
	return newScript(
		items(item.ReasoningItem("", "hm"), fc("c1", "pay", `{"cents":5}`), fc("c2", "look", `{"cents":1}`), fc("c3", "look", `{}`), fc("c4", "fly", `{}`)),
		failing(&model.Error{Err: model.ErrStreamCut, Retryable: true}),
		items(item.MessageItem("", "wait"), fc("c5", "look", `{"cents":2}`)),
		says("done"))
}

func busyAgent(s *script, e *effects) *pawl.Agent {
	agent := agentWith(s, charging("pay", e, nil), charging("look", e, nil))
	agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 2, InitialDelay: time.Millisecond}}
	return agent
}

// A watch shows what the stream showed, and from each of its cursors on the rest, each event
// once [S12.1] [S12.2].
func TestWatchShowsWhatTheStreamShows(t *testing.T) {
	var e effects
	store := openSQLite(t, filepath.Join(t.TempDir(), "runs.db"))
	r := &pawl.Runner{Store: store}
	agent := busyAgent(busyScript(), &e)
	streamed, err := trail(r.Stream(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", MaxParallelTools: 1, ToolNotFound: pawl.TellModel}))
	if err != nil {
		t.Fatal(err)
	}
	other := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
	list, at, err := seen(other.Watch(t.Context(), "r", pawl.Cursor{}), nil)
	if diff := cmp.Diff(durable(streamed), list); diff != "" || err != nil {
		t.Fatalf("error %v (-streamed +watched):\n%s", err, diff)
	}
	for i, cursor := range at[:len(at)-1] {
		rest, _, err := seen(other.Watch(t.Context(), "r", cursor), nil)
		if diff := cmp.Diff(list[i+1:], rest); diff != "" || err != nil {
			t.Errorf("behind %v: error %v (-want +got):\n%s", cursor, err, diff)
		}
	}
	last, _, err := seen(other.Watch(t.Context(), "r", at[len(at)-1]), nil)
	if diff := cmp.Diff([]string{"done done"}, last); diff != "" || err != nil {
		t.Errorf("at the end: error %v (-want +got):\n%s", err, diff)
	}
}

// The turn of an item is that of its response, in a watch and in a stream.
func TestWatchTellsTurns(t *testing.T) {
	var e effects
	var r pawl.Runner
	type created struct {
		name pawl.ItemName
		turn int
	}
	var streamed, watched []created
	note := func(list *[]created, ev pawl.Event) {
		if it, ok := ev.(*pawl.ItemCreated); ok {
			*list = append(*list, created{it.Name, it.Turn})
		}
	}
	s := newScript(calling(fc("c1", "fly", `{}`)), calling(fc("c2", "pay", `{"cents":1}`)), says("done"))
	for ev, err := range r.Stream(t.Context(), agentWith(s, charging("pay", &e, nil)), pawl.UserText("go"), &pawl.RunOptions{ID: "r", ToolNotFound: pawl.TellModel}) {
		if err != nil {
			t.Fatal(err)
		}
		note(&streamed, ev)
	}
	for ev, err := range r.Watch(t.Context(), "r", pawl.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		note(&watched, ev.Event)
	}
	want := []created{{pawl.ToolCalled, 1}, {pawl.ToolOutput, 1}, {pawl.ToolCalled, 2}, {pawl.ToolOutput, 2}, {pawl.MessageCreated, 3}}
	opt := cmp.AllowUnexported(created{})
	if diff := cmp.Diff(want, streamed, opt); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, watched, opt); diff != "" {
		t.Errorf("watch (-want +got):\n%s", diff)
	}
}

// A watch goes on while the run waits or has failed, whoever decides and resumes it
// [S12.4].
func TestWatchWaits(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			var e effects
			store := open(t)
			s := newScript(calling(fc("c1", "pay", `{"cents":1}`)), failing(errors.New("no answer")), says("done"))
			agent := agentWith(s, charging("pay", &e, asking))
			r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
			res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
			watcher := &pawl.Runner{Store: store} // as in another process
			var list []string
			var last pawl.Cursor
			for ev, err := range watcher.Watch(t.Context(), "r", pawl.Cursor{}) {
				if err != nil {
					t.Fatal(err)
				}
				if ev.Cursor.Fact < last.Fact || ev.Cursor.Fact == last.Fact && ev.Cursor.Event < last.Event {
					t.Errorf("cursor %v after %v", ev.Cursor, last)
				}
				last = ev.Cursor
				list = append(list, strings.TrimSpace(describe(ev.Event)))
				switch ev := ev.Event.(type) {
				case *pawl.Paused:
					if ev.Interruptions[0].ID != res.Interruptions[0].ID {
						t.Errorf("interruption %v", ev.Interruptions[0])
					}
					if err := r.Decide(t.Context(), "r", pawl.Approve(ev.Interruptions[0].ID, "ann")); err != nil {
						t.Fatal(err)
					}
					if _, err := r.Resume(t.Context(), nil, pawl.RunID("r"), nil); err == nil {
						t.Error("the model call did not fail")
					}
				case *pawl.RunFailed:
					if ev.Err.Text != "no answer" {
						t.Errorf("failure %q", ev.Err.Text)
					}
					must(t)(r.Resume(t.Context(), nil, pawl.RunID("r"), nil))
				}
			}
			want := []string{"started resumed=false", "agent", "tool_called c1", "paused 1", "tool started pay c1 1", "tool_output c1",
				"*pawl.RunFailed", "message_output_created", "done done"}
			if diff := cmp.Diff(want, list); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A watch in the process of the driver hears of a fact at once, while the tool is still at work.
func TestWatchIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		var r pawl.Runner
		release := make(chan struct{})
		s := newScript(calling(fc("c1", "pay", `{"cents":1}`)), says("done"))
		pay := charging("pay", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) { <-release; return "paid", nil }
		})
		entered := make(chan struct{})
		agent := agentWith(s, pay)
		agent.Instructions = func(_ context.Context, rc *pawl.RunContext) (string, error) {
			if rc.Turn == 1 {
				close(entered)
			}
			return "", nil
		}
		go func() {
			<-entered
			time.Sleep(10 * time.Second) // until the tool is at work
			start := time.Now()
			released := time.Time{}
			for ev, err := range r.Watch(t.Context(), "r", pawl.Cursor{}) {
				switch {
				case err != nil:
					t.Error(err)
				case strings.HasPrefix(describe(ev.Event), "tool started"):
					released = time.Now()
					close(release)
				}
			}
			if released != start || time.Now() != start {
				t.Errorf("the watch waited for %v and %v", released.Sub(start), time.Since(start))
			}
		}()
		must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
		synctest.Wait()
	})
}

// What the store cannot give is an error that names it [S12.3].
func TestWatchLosesNothing(t *testing.T) {
	var e effects
	store := journal.NewMemory()
	r := &pawl.Runner{Store: store}
	must(t)(r.Run(t.Context(), busyAgent(busyScript(), &e), pawl.UserText("go"), &pawl.RunOptions{ID: "r", ToolNotFound: pawl.TellModel}))
	recs, err := store.Read(t.Context(), "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(len(recs))
	holed := journal.NewMemory() // a store that lost the response of the first turn
	var left []journal.Record
	lost := uint64(0)
	for i, rec := range recs {
		if rec.Kind == journal.KindResponded && lost == 0 {
			lost = uint64(i) + 1
			continue
		}
		left = append(left, rec)
	}
	if err := holed.Import("r", left); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		store journal.Driver
		from  pawl.Cursor
		want  *pawl.LostRangeError
		is    error
	}{
		"behind the end":     {store, pawl.Cursor{Fact: n + 3}, &pawl.LostRangeError{From: n + 1, Upto: n + 3}, pawl.ErrConflict},
		"one behind the end": {store, pawl.Cursor{Fact: n + 1}, &pawl.LostRangeError{From: n + 1, Upto: n + 1}, pawl.ErrConflict},
		"a hole":             {holed, pawl.Cursor{}, &pawl.LostRangeError{From: lost, Upto: lost}, nil},
		"an unknown run":     {journal.NewMemory(), pawl.Cursor{}, nil, pawl.ErrUnknownRun},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := seen((&pawl.Runner{Store: tt.store}).Watch(t.Context(), "r", tt.from), nil)
			var lost *pawl.LostRangeError
			if got := errors.As(err, &lost); got != (tt.want != nil) || got && (lost.From != tt.want.From || lost.Upto != tt.want.Upto) {
				t.Errorf("error %v, want %+v", err, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v is not %v", err, tt.is)
			}
			if re, ok := errors.AsType[*pawl.RunError](err); !ok || re.Run != "r" {
				t.Errorf("%v is not of the run", err)
			}
		})
	}
}

// shrinking is a store that was put back to an older copy.
type shrinking struct {
	journal.Driver
	reads int
}

func (s *shrinking) Read(ctx context.Context, run string, after uint64) ([]journal.Record, error) {
	recs, err := s.Driver.Read(ctx, run, after)
	if s.reads++; s.reads > 1 {
		recs = nil
	}
	return recs, err
}

func TestWatchNoticesAnOlderCopy(t *testing.T) {
	var e effects
	store := journal.NewMemory()
	agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":1}`))), charging("pay", &e, asking))
	res := must(t)((&pawl.Runner{Store: store}).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
	n := uint64(res.State().Facts())
	list, _, err := seen((&pawl.Runner{Store: &shrinking{Driver: store}}).Watch(t.Context(), "r", pawl.Cursor{}), nil)
	var lost *pawl.LostRangeError
	if !errors.As(err, &lost) || lost.From != n || lost.Upto != n || !errors.Is(err, pawl.ErrConflict) || len(list) != 4 {
		t.Errorf("error %v after %q", err, list)
	}
}

// How a watch ends.
func TestWatchEnds(t *testing.T) {
	var e effects
	var r pawl.Runner
	agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":1}`))), charging("pay", &e, asking))
	must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	_, _, err := seen(r.Watch(ctx, "r", pawl.Cursor{}), func(ev pawl.Event) bool {
		if _, ok := ev.(*pawl.Paused); ok {
			cancel(why)
		}
		return false
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Errorf("a watch whose context ended: %v", err)
	}
	list, _, err := seen(r.Watch(t.Context(), "r", pawl.Cursor{}), func(pawl.Event) bool { return true })
	if len(list) != 1 || err != nil {
		t.Errorf("a reader that left has seen %q, error %v", list, err)
	}
	if err := r.Cancel(t.Context(), "r", "ann", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrCancelled) {
		t.Fatal(err)
	}
	_, _, err = seen(r.Watch(t.Context(), "r", pawl.Cursor{}), nil)
	if !errors.Is(err, pawl.ErrCancelled) || stateOf(t, err).Status() != pawl.StatusCancelled {
		t.Errorf("a watch of a cancelled run: %v", err)
	}
}

// A cursor can be kept as JSON.
func TestCursorJSON(t *testing.T) {
	doc, err := json.Marshal([]pawl.Cursor{{}, {Fact: 7, Event: 2}})
	if err != nil || string(doc) != `[{"fact":0},{"fact":7,"event":2}]` {
		t.Errorf("%s, %v", doc, err)
	}
}
