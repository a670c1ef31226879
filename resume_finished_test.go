package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// A run that has ended and comes from elsewhere is taken in and let go of: nobody goes on renewing a lease on it.
func TestResumeOfAFinishedDocumentHoldsNoLease(t *testing.T) {
	agent := &pawl.Agent{Name: "Desk", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("done"))}
	var r pawl.Runner
	res, err := r.Run(t.Context(), agent, pawl.UserText("hello"), nil)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(res.State())
	if err != nil {
		t.Fatal(err)
	}
	state, err := pawl.ParseRunState(doc)
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	var elsewhere pawl.Runner
	if res, err = elsewhere.Resume(t.Context(), agent, state, nil); err != nil || res.FinalOutput != "done" {
		t.Fatalf("resumed: %+v, %v", res, err)
	}
	for limit := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
		}
	}
}

func TestForkOfAFinishedRunIsRefused(t *testing.T) {
	agent := &pawl.Agent{Name: "Desk", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("done"))}
	var r pawl.Runner
	res, err := r.Run(t.Context(), agent, pawl.UserText("hello"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := res.State().Fork("fork"); !errors.Is(err, pawl.ErrFork) {
		t.Errorf("error %v, want ErrFork", err)
	}
}

// A decision that reaches the store at the moment when somebody else brings the run to its end is
// either in the ledger, or refused with an error that says so. Nobody holds the run then.
func TestStagedWhileSomebodyFinishesTheRun(t *testing.T) {
	type drive = func(t *testing.T, r *pawl.Runner, agent *pawl.Agent)
	finish := func(t *testing.T, r *pawl.Runner, agent *pawl.Agent) {
		must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	}
	cancel := func(t *testing.T, r *pawl.Runner, agent *pawl.Agent) {
		if err := r.Cancel(t.Context(), "r", "bob", ""); err != nil {
			t.Error(err)
		}
		if _, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrCancelled) {
			t.Error(err)
		}
	}
	for name, tt := range map[string]struct {
		beforePost, beforeClaim drive
		status                  pawl.Status
		want                    error
		text                    string
		effects                 []string
	}{
		"finished with it":     {beforeClaim: finish, status: pawl.StatusFinished, effects: []string{"charge 5"}},
		"cancelled with it":    {beforeClaim: cancel, status: pawl.StatusCancelled, want: pawl.ErrCancelled},
		"cancelled without it": {beforePost: cancel, status: pawl.StatusCancelled, want: pawl.ErrNotOpen, text: "somebody else has just finished the run"},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			agent := payer("support", &e, asking)
			store := journal.NewMemory()
			other := &pawl.Runner{Store: store}
			s := must(t)(other.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})).State()
			if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
				t.Fatal(err)
			}
			late := meanwhile{Driver: store, post: func() {}, claim: func() {}}
			if tt.beforePost != nil {
				late.post = func() { tt.beforePost(t, other, agent) }
			}
			if tt.beforeClaim != nil {
				late.claim = func() { tt.beforeClaim(t, other, agent) }
			}
			_, err := (&pawl.Runner{Store: late}).Resume(t.Context(), agent, s, nil)
			if !errors.Is(err, tt.want) || tt.want != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v", err)
			}
			if now := replays(t, other, "r").Status(); now != tt.status {
				t.Errorf("the run is %s", now)
			}
			infos, err := store.List(t.Context(), journal.Query{})
			if err != nil || len(infos) != 1 || infos[0].Holder != nil {
				t.Errorf("%+v, %v", infos, err)
			}
			e.want(t, tt.effects...)
		})
	}
}

// meanwhile is a store in which something happens before a post, and before a claim.
type meanwhile struct {
	journal.Driver
	post, claim func()
}

func (s meanwhile) Post(ctx context.Context, run string, e journal.Entry) error {
	s.post()
	return s.Driver.Post(ctx, run, e)
}

func (s meanwhile) Claim(ctx context.Context, run string, req journal.ClaimRequest) (journal.Claim, error) {
	s.claim()
	return s.Driver.Claim(ctx, run, req)
}

// A run that has ended is looked at with the options of a resume, as one that goes on is.
func TestResumeOfAFinishedRunWithOptions(t *testing.T) {
	agent := &pawl.Agent{Name: "Desk", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("done"))}
	r := pawl.Runner{Store: journal.NewMemory()}
	chat, nest := session.NewMemory("chat"), &pawl.NestOptions{}
	if _, err := r.Run(t.Context(), agent, pawl.UserText("hello"), &pawl.RunOptions{ID: "r", Session: chat, NestHandoffs: nest}); err != nil {
		t.Fatal(err)
	}
	if res, err := r.Resume(t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{Session: chat, NestHandoffs: nest}); err != nil || res.FinalOutput != "done" {
		t.Errorf("%+v, %v", res, err)
	}
}
