package pawl_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// noTransfers is a store that takes everything but handoffs, as long as it is full.
type noTransfers struct {
	journal.Driver
	full bool
}

func (s *noTransfers) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	if s.full && slices.ContainsFunc(recs, func(r journal.Record) bool { return r.Kind == journal.KindTransferred }) {
		return errors.New("the disk is full")
	}
	return s.Driver.Append(ctx, run, epoch, after, recs, with...)
}

// What a nested run came to before a handoff is told once more when that could not be recorded, although the run has another
// agent now, which knows nothing of the agent that was called [S19.3].
func TestHooksOfWhatWasBeforeAHandoff(t *testing.T) {
	scout := &pawl.Agent{Name: "scout", Model: newScript(says("found"))}
	agent := withBilling(newScript(calling(ask("a", "go"), ho("h", "scout"))), newScript(says("billed")), nil)
	agent.Handoffs = []pawl.Handoff{pawl.HandoffTo(scout)}
	store := &noTransfers{journal.NewMemory(), true}
	r := &pawl.Runner{Store: store, OnHookError: func(err error) { t.Error(err) }}
	var e effects
	_, err := r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", Hooks: noting(&e, "run")})
	failed, ok := errors.AsType[*pawl.RunError](err)
	if !ok {
		t.Fatal(err)
	}
	const answered = "run model of Billing desk answered in turn 1: 1 items, 5 tokens"
	if !slices.Contains(e.list, answered) {
		t.Fatalf("told %q", e.list)
	}
	store.full, e.list = false, nil
	res := must(t)(r.Resume(t.Context(), agent, failed.State, &pawl.RunOptions{Hooks: noting(&e, "run")}))
	if res.FinalOutput != "found" || !slices.Contains(e.list, answered) {
		t.Errorf("%v, told %q", res.FinalOutput, e.list)
	}
}
