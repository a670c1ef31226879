package temporal

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/sqlstore"
)

type note struct {
	Text string `json:"text"`
}

// noting is a tool that counts the calls by key.
func noting(name string, keys map[string]int) pawl.Tool {
	return pawl.NewTool(pawl.Func[note, string]{Name: name, Description: "Notes.", Run: func(_ context.Context, c *pawl.Call, in note) (string, error) {
		keys[c.Key]++
		return fmt.Sprintf("noted %d bytes", len(in.Text)), nil
	}})
}

// histories returns how many workflows a run took, their events and bytes, and the most of one.
func (s *site) histories(ctx context.Context) (workflows, events, mostEvents int, bytes, mostBytes int64) {
	s.t.Helper()
	d, err := s.client.DescribeWorkflow(ctx, s.run(), "")
	if err != nil {
		s.t.Fatal(err)
	}
	for id := d.RawResponse.WorkflowExecutionInfo.FirstRunId; id != ""; workflows++ {
		d, err := s.client.DescribeWorkflow(ctx, s.run(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		info := d.RawResponse.WorkflowExecutionInfo
		events, bytes = events+int(info.HistoryLength), bytes+info.HistorySizeBytes
		mostEvents, mostBytes = max(mostEvents, int(info.HistoryLength)), max(mostBytes, info.HistorySizeBytes)
		id = s.next(ctx, id)
	}
	return workflows, events, mostEvents, bytes, mostBytes
}

// next is the workflow that goes on with one.
func (s *site) next(ctx context.Context, id string) (next string) {
	s.t.Helper()
	for it := s.client.GetWorkflowHistory(ctx, s.run(), id, false, 0); it.HasNext(); {
		ev, err := it.Next()
		if err != nil {
			s.t.Fatal(err)
		}
		if a := ev.GetWorkflowExecutionContinuedAsNewEventAttributes(); a != nil {
			next = a.NewExecutionRunId
		}
	}
	return next
}

// A thousand turns are one run, in histories that stay small [S23.9].
func TestThousandTurns(t *testing.T) {
	const turns = 1000
	store, err := sqlstore.OpenSQLite(filepath.Join(t.TempDir(), "runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	keys := map[string]int{}
	agent := &pawl.Agent{Name: "clerk", Model: calls{"note", turns, 700}, Tools: []pawl.Tool{noting("note", keys)}}
	s := onServer(t, &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}, WorkerOptions{Options: Options{Blobs: Dir(t.TempDir())}}).start()
	began := time.Now()
	res, err := s.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: s.run(), MaxTurns: -1})
	if err != nil || res.FinalOutput != "done" || res.Turns != turns+1 {
		t.Fatalf("%+v, %v", res, err)
	}
	took := time.Since(began)
	size := 0
	for _, it := range res.ToInputList() {
		size += len(it.Raw())
	}
	for key, n := range keys {
		if n != 1 {
			t.Errorf("call %s was made %d times", key, n)
		}
	}
	workflows, events, mostEvents, bytes, mostBytes := s.histories(t.Context())
	t.Logf("%d turns in %v: %d bytes of conversation, %d workflows, %d events (at most %d), %d bytes of history (at most %d)",
		turns, took.Round(time.Second), size, workflows, events, mostEvents, bytes, mostBytes)
	if len(keys) != turns || size < 650_000 {
		t.Errorf("%d calls, %d bytes of conversation", len(keys), size)
	}
	if mostEvents >= 10_000 || mostBytes >= 10<<20 || workflows < 2 {
		t.Errorf("%d workflows; one has %d events, one %d bytes", workflows, mostEvents, mostBytes)
	}
	if perTurn := bytes / turns; perTurn > 12_000 {
		t.Errorf("%d bytes of history a turn", perTurn)
	}
}
