package pawl_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
)

// A body with nothing beside it holds up nobody: the run is driven on while it runs, and goes
// on from its outcome as from any other.
func TestBodyAlone(t *testing.T) {
	one := fc("c1", "charge", `{"cents":5}`)
	for name, tt := range map[string]struct {
		body   func(ctx context.Context, stop context.CancelFunc, r *pawl.Runner) error
		err    error
		output string
	}{
		"takes longer than the driver waits": {
			body: func(context.Context, context.CancelFunc, *pawl.Runner) error {
				time.Sleep(3 * time.Second)
				return nil
			},
			output: "c1: paid",
		},
		"cancels its run": {
			body: func(ctx context.Context, _ context.CancelFunc, r *pawl.Runner) error {
				if err := r.Cancel(context.Background(), "r", "ann", "enough"); err != nil {
					return err
				}
				<-ctx.Done() // the driver has seen it
				return nil
			},
			err:    pawl.ErrCancelled,
			output: "c1: paid",
		},
		"ends the caller's context": {
			body: func(ctx context.Context, stop context.CancelFunc, _ *pawl.Runner) error {
				stop()
				<-ctx.Done()
				return nil
			},
			err:    context.Canceled,
			output: "c1: paid",
		},
		"ends its goroutine late": {
			body: func(context.Context, context.CancelFunc, *pawl.Runner) error {
				time.Sleep(3 * time.Second)
				runtime.Goexit()
				return nil
			},
			output: "c1: The outcome of this tool call is unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var e effects
				r := &pawl.Runner{Store: journal.NewMemory()}
				first := charging("charge", &e, func(f *pawl.Func[charge, string]) {
					body := f.Run
					f.Run = func(ctx context.Context, c *pawl.Call, in charge) (string, error) {
						if _, err := body(ctx, c, in); err != nil {
							return "", err
						}
						return "paid", tt.body(ctx, stop, r)
					}
				})
				m := newScript(calling(one), calling(fc("c2", "look", `{"cents":1}`)), says("done"))
				_, err := r.Run(ctx, agentWith(m, first, charging("look", &e, nil)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				if !errors.Is(err, tt.err) {
					t.Fatalf("%v, want %v", err, tt.err)
				}
				if tt.err == nil {
					e.want(t, "charge 5", "look 1")
				} else {
					e.want(t, "charge 5")
				}
				state, err := r.State(context.Background(), "r")
				if err != nil {
					t.Fatal(err)
				}
				out := outputs(state.Result().NewItems())
				if len(out) == 0 || len(out[0]) < len(tt.output) || out[0][:len(tt.output)] != tt.output {
					t.Errorf("outputs %q, want %q", out, tt.output)
				}
			})
		})
	}
}

// What ends the driver's goroutine ends the caller's, and the run can be resumed.
func TestDriverEndsItsGoroutine(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)),
		func(context.Context, *model.Request, func(*model.Event) bool) (*model.Response, error) {
			runtime.Goexit()
			return nil, nil
		}, says("done"))
	agent := agentWith(m, charging("charge", &e, nil))
	r := &pawl.Runner{Store: journal.NewMemory()}
	returned, ended := false, make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(context.Background(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
		returned = true
	}()
	<-ended
	if returned {
		t.Error("Run returned")
	}
	if res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil)); res.FinalOutput != "done" {
		t.Errorf("%+v", res)
	}
	e.want(t, "charge 5")
}

// panickingStore is a store that panics in an append.
type panickingStore struct {
	journal.Driver
	appends int
}

func (p *panickingStore) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	if p.appends++; p.appends == 3 {
		panic("a broken store")
	}
	return p.Driver.Append(ctx, run, epoch, after, recs, with...)
}

// A store that panics does so where its caller can recover.
func TestStorePanics(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	r := &pawl.Runner{Store: &panickingStore{Driver: journal.NewMemory()}}
	defer func() {
		if v := recover(); v != "a broken store" {
			t.Errorf("recovered %v", v)
		}
		if got := slices.Clone(e.list); len(got) > 1 {
			t.Errorf("effects %q", got)
		}
	}()
	r.Run(t.Context(), agentWith(m, charging("charge", &e, nil)), pawl.UserText("pay"), nil)
	t.Error("Run returned")
}
