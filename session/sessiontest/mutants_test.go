package sessiontest_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/session/sessiontest"
)

// faultVariable names the fault of the sessions that TestMutant runs.
const faultVariable = "SESSIONTEST_FAULT"

// mutant is a session with one fault.
type mutant struct {
	*session.Memory
	id, fault string
}

func (m *mutant) has(fault string) bool { return m.fault == fault }

func (m *mutant) ID() string {
	if m.has("forgets its id") {
		return ""
	}
	return m.id
}

func (m *mutant) Backend() string {
	if m.has("backend by session") {
		return "memory/" + m.id
	}
	return m.Memory.Backend()
}

func (m *mutant) Items(ctx context.Context, limit int) ([]item.Item, error) {
	if m.has("reads for ever") {
		ctx = context.WithoutCancel(ctx)
	}
	if m.has("no limit") {
		limit = -1
	}
	items, err := m.Memory.Items(ctx, limit)
	if m.has("newest first") {
		slices.Reverse(items)
	}
	return items, err
}

func (m *mutant) Append(ctx context.Context, items []item.Item) error {
	switch m.fault {
	case "appends for ever":
		ctx = context.WithoutCancel(ctx)
	case "compacts":
		items = compact(items)
	case "one by one":
		for _, it := range items {
			if err := m.Memory.Append(ctx, []item.Item{it}); err != nil {
				return err
			}
		}
		return nil
	}
	return m.Memory.Append(ctx, items)
}

// compact drops the spaces of items.
func compact(items []item.Item) []item.Item {
	items = slices.Clone(items)
	for i, it := range items {
		items[i] = item.FromTrusted(strings.ReplaceAll(it.Raw(), " ", ""))
	}
	return items
}

func (m *mutant) AppendBatch(ctx context.Context, batchID string, items []item.Item) error {
	if m.has("forgets batches") {
		return m.Memory.Append(ctx, items)
	}
	if m.has("one space of ids") {
		batchID = strings.ToLower(batchID)
	}
	if m.has("drops empty batches") && len(items) == 0 {
		return nil
	}
	return m.Memory.AppendBatch(ctx, batchID, items)
}

func (m *mutant) Pop(ctx context.Context) (item.Item, bool, error) {
	if m.has("peeks") {
		items, err := m.Memory.Items(ctx, 1)
		if len(items) == 0 {
			return item.Item{}, false, err
		}
		return items[0], true, err
	}
	return m.Memory.Pop(ctx)
}

func (m *mutant) Clear(ctx context.Context) error {
	if m.has("never clears") {
		return ctx.Err()
	}
	return m.Memory.Clear(ctx)
}

func TestMutant(t *testing.T) {
	sessiontest.Run(t, func(*testing.T) sessiontest.Open {
		var mu sync.Mutex
		sessions := map[string]*mutant{}
		return func(id string) session.Session {
			mu.Lock()
			defer mu.Unlock()
			fault, key := os.Getenv(faultVariable), id
			if fault == "ids without case" {
				key = strings.ToLower(id)
			}
			if sessions[key] == nil {
				sessions[key] = &mutant{Memory: session.NewMemory(id), id: id, fault: fault}
			}
			return sessions[key]
		}
	})
}

// Each fault is found by the rule it breaks; sound sessions are TestMutant itself.
func TestFaultsAreFound(t *testing.T) {
	for fault, rule := range map[string]string{
		"forgets its id":      "an_unused_session_is_empty",
		"newest first":        "items_come_back_in_order",
		"no limit":            "a_limit_selects_the_newest",
		"compacts":            "bytes_are_kept",
		"one by one":          "append_takes_all_or_none",
		"never clears":        "clear_removes_all",
		"ids without case":    "sessions_are_separate",
		"appends for ever":    "a_done_context_changes_nothing",
		"reads for ever":      "a_done_context_changes_nothing",
		"peeks":               "pop_takes_the_newest",
		"backend by session":  "backend",
		"forgets batches":     "batches/a_batch_is_taken_once",
		"one space of ids":    "batches/ids_belong_to_their_session",
		"drops empty batches": "batches/an_empty_batch_is_a_batch",
	} {
		t.Run(fault, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestMutant$/^"+strings.ReplaceAll(rule, "/", "$/^")+"$")
			cmd.Env = append(os.Environ(), faultVariable+"="+fault)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestMutant/"+rule) {
				t.Errorf("%q does not find it: %v\n%s", rule, err, out)
			}
		})
	}
}
