package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// The failure that is best known: an approved tool has run, and the write of its call and its output to the session fails
// (https://github.com/openai/openai-agents-python/issues/4615). Before the fault there are a pause and a failing resume,
// after it there is the retry; each is made blocking and as a stream, with the state kept alive and taken through JSON, and
// the write fails for good or only its acknowledgement is lost. In all rows there is one effect, one call and one output in
// the session and in the replay, the caller gets the session's own error, and the model is not asked before the session has
// the batch.
func TestSessionWriteFailsAfterApprovedTool(t *testing.T) {
	for name, fault := range map[string]pawltest.SessionFault{
		"failed":               {Err: errDisk},
		"acknowledgement lost": {Err: errDisk, Stored: pawltest.AllItems},
	} {
		for _, c := range (variant{mixed: true}).cells() {
			if c.carrier != live && c.carrier != byJSON {
				continue
			}
			t.Run(name+"/"+c.String(), func(t *testing.T) { sessionWriteFails(t, fault, c) })
		}
	}
}

var errDisk = errors.New("disk full")

func sessionWriteFails(t *testing.T, fault pawltest.SessionFault, c cell) {
	log := pawltest.NewEffectLog(t)
	memory := session.NewMemory("chat")
	chat := pawltest.NewFaultySession(memory, map[int]pawltest.SessionFault{2: fault})
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(call("c1", "charge")),
		pawltest.ScriptedStep{Output: []item.Item{says("done")}, Check: func(pawltest.ScriptedCall) error {
			if n := len(itemsOf(t, memory)); n != 3 {
				return fmt.Errorf("the session has %d items while the model is asked: a batch is owed", n)
			}
			return nil
		}},
	)
	caller := &caller{cell: c, model: m, log: log, opts: &pawl.RunOptions{Session: chat}}

	res, err := caller.start(t.Context(), "pay")
	if err != nil || !res.Waiting() || len(res.Interruptions) != 1 {
		t.Fatalf("the run is %+v (%v), want that it asks", res, err)
	}
	state := caller.carry(t, res.State())
	if err := state.Approve(state.Interruptions()[0], reviewer); err != nil {
		t.Fatal(err)
	}

	_, err = caller.resume(t.Context(), state)
	var failed *pawl.RunError
	if !errors.Is(err, errDisk) || !errors.As(err, &failed) {
		t.Fatalf("error %v, want the session's own and the state", err)
	}
	if n := log.Count(t, "charge"); n != 1 || len(m.Calls()) != 1 {
		t.Fatalf("%d effects and %d model calls after the failing resume, want 1 and 1", n, len(m.Calls()))
	}

	res, err = caller.resume(t.Context(), caller.carry(t, failed.State))
	if err != nil || res.FinalOutput != "done" {
		t.Fatalf("the retry ends with %+v (%v)", res, err)
	}
	if n := log.Count(t, "charge"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
	const want = "user pay; call c1 charge; output c1 receipt-5; message done"
	if got := strings.Join(shapes(raws(itemsOf(t, memory))), "; "); got != want {
		t.Errorf("the session has %q, want %q", got, want)
	}
	if got := strings.Join(shapes(raws(res.ToInputList())), "; "); got != want {
		t.Errorf("the replay has %q, want %q", got, want)
	}
	if got := strings.Join(shapes(raws(m.Calls()[1].Input)), "; "); got+"; message done" != want {
		t.Errorf("the model got %q", got)
	}
	m.AssertComplete(t)
}

func itemsOf(t *testing.T, s session.Session) []item.Item {
	t.Helper()
	items, err := s.Items(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

// caller makes the calls of a row, each in its mode.
type caller struct {
	cell   cell
	model  *pawltest.ScriptedModel
	log    *pawltest.EffectLog
	opts   *pawl.RunOptions
	runner *pawl.Runner
	calls  int
}

func (c *caller) agent() *pawl.Agent {
	return &pawl.Agent{Name: "Desk", Model: c.model, Tools: []pawl.Tool{charge.make(c.log, request{})}}
}

func (c *caller) start(ctx context.Context, text string) (*pawl.Result, error) {
	c.runner = &pawl.Runner{}
	c.calls++
	if c.cell.mode(0) == stream {
		return pawl.Collect(c.runner.Stream(ctx, c.agent(), pawl.UserText(text), c.opts))
	}
	return c.runner.Run(ctx, c.agent(), pawl.UserText(text), c.opts)
}

func (c *caller) resume(ctx context.Context, state *pawl.RunState) (*pawl.Result, error) {
	c.calls++
	if c.cell.mode(c.calls-1) == stream {
		return pawl.Collect(c.runner.ResumeStream(ctx, c.agent(), state, c.opts))
	}
	return c.runner.Resume(ctx, c.agent(), state, c.opts)
}

// carry takes a state to the next call: as it is, or through JSON to a runner that knows nothing.
func (c *caller) carry(t *testing.T, state *pawl.RunState) *pawl.RunState {
	t.Helper()
	if c.cell.carrier == live {
		return state
	}
	doc, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	c.runner = &pawl.Runner{}
	if state, err = pawl.ParseRunState(slices.Clone(doc)); err != nil {
		t.Fatal(err)
	}
	return state
}
