package pawl_test

import (
	"encoding/json"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/pawltest"
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
