package temporal

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-agents/pawl"
)

// histories of a version that was released stay: runs of it may still be open.
var record = flag.Bool("record", false, "write the histories of the tests to testdata")

// record keeps the histories of the test's run, one of each of its workflows.
func (s *site) record(name string) {
	s.t.Helper()
	if !*record {
		return
	}
	ctx := s.t.Context()
	d, err := s.client.DescribeWorkflow(ctx, s.run(), "")
	if err != nil {
		s.t.Fatal(err)
	}
	n := 0
	for id := d.RawResponse.WorkflowExecutionInfo.FirstRunId; id != ""; id = s.next(ctx, id) {
		var h historypb.History
		for it := s.client.GetWorkflowHistory(ctx, s.run(), id, false, 0); it.HasNext(); {
			ev, err := it.Next()
			if err != nil {
				s.t.Fatal(err)
			}
			h.Events = append(h.Events, ev)
		}
		data, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(&h)
		if err == nil {
			n++
			err = os.WriteFile(filepath.Join("testdata", fmt.Sprintf("%s-%d.json", name, n)), data, 0o644)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// What the workflow does follows from its history, also of those that older versions made.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r := worker.NewWorkflowReplayer()
			tm := Options{}.timing(0)
			if continued, _ := filepath.Match("testdata/continued-*", file); continued {
				tm.Full = continuedFull
			}
			r.RegisterWorkflowWithOptions(tm.runWorkflow, workflow.RegisterOptions{Name: workflowName})
			if err := r.ReplayWorkflowHistoryFromJSONFile(quiet, file); err != nil {
				t.Error(err)
			}
		})
	}
}

const continuedFull = 60

// A workflow is continued as a new one while a decision is on its way [S23.9].
func TestContinued(t *testing.T) {
	keys := map[string]int{}
	agent := &pawl.Agent{Name: "clerk", Model: calls{"note", 6, 5}, Tools: []pawl.Tool{noting("note", keys)}}
	s := onServer(t, &pawl.Runner{Store: memory(), Agents: []*pawl.Agent{agent}}, WorkerOptions{full: continuedFull}).start()
	go func() {
		time.Sleep(100 * time.Millisecond)
		s.AddInput(t.Context(), s.run(), pawl.UserText("and more"))
	}()
	res, err := s.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: s.run()})
	if err != nil || res.FinalOutput != "done" || len(keys) != 6 {
		t.Fatalf("%+v, %v, %d calls", res, err, len(keys))
	}
	if workflows, _, _, _, _ := s.histories(t.Context()); workflows < 2 {
		t.Errorf("%d workflows", workflows)
	}
	s.record("continued")
}
