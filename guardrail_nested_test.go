package pawl_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// A guardrail on the output of an agent's tool that gives no verdict lets nothing through: the caller reads that the agent failed, if
// the guardrail lets that pass, or else that it was withheld, or the run fails and the guardrail is asked again (S17.6).
func TestNoVerdictOnAnAgentsOutput(t *testing.T) {
	errNo := errors.New("no verdict")
	for name, tt := range map[string]struct {
		failRun bool
		fails   int // how often
		want    []string
	}{
		"it fails":                {false, 1, []string{`c1: The agent failed: guardrail "strict" gave no verdict: no verdict`}},
		"it fails on the failure": {false, 2, []string{"c1: The output of this tool call was withheld: a guardrail on it failed."}},
		"the run fails":           {true, 2, []string{"c1: secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				asked := 0
				strict := pawl.ToolOutputGuardrail{Name: "strict", Check: func(context.Context, *pawl.ToolOutputCheck) (toolVerdict, error) {
					if asked++; asked <= tt.fails {
						return toolVerdict{}, errNo
					}
					return toolVerdict{}, nil
				}}
				inner := &pawl.Agent{Name: "inner", Model: newScript(says("secret"))}
				outer := agentWith(newScript(calling(fc("c1", "inner", `{"input":"go"}`)), says("done")),
					pawl.AgentTool(inner, &pawl.AgentToolOptions{FailRun: tt.failRun, OutputGuardrails: []pawl.ToolOutputGuardrail{strict}}))
				var r pawl.Runner
				res, err := m.run(&r, t.Context(), outer, pawl.UserText("go"), nil)
				for range tt.fails {
					if !tt.failRun {
						break
					}
					if !as[*pawl.GuardrailError](err) || !errors.Is(err, errNo) {
						t.Fatal(err)
					}
					res, err = m.resume(&r, t.Context(), outer, viaJSON(t, stateOf(t, err)), nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := outputs(res.ToInputList()); !slices.Equal(got, tt.want) {
					t.Errorf("the model read %q", got)
				}
			})
		})
	}
}

// mute is a session that can say its id some times only.
type mute struct {
	*session.Memory
	times int
}

func (m *mute) ID() string {
	if m.times--; m.times < 0 {
		panic("no id")
	}
	return m.Memory.ID()
}

// A panic of what an application gave is an error also where a run is begun or resumed, and the run is nobody's then.
func TestPanicsAtTheBeginning(t *testing.T) {
	store := journal.NewMemory()
	sess := session.NewMemory("s")
	r := &pawl.Runner{Store: store}
	agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", new(effects), asking))
	if _, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: &mute{sess, 0}}); !as[*pawl.PanicError](err) {
		t.Fatal(err)
	}
	opts := &pawl.RunOptions{ID: "r", Session: sess}
	must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), opts))
	panics := 0
	for times := range 5 {
		_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: &mute{sess, times}})
		switch {
		case as[*pawl.PanicError](err):
			panics++
		case err != nil:
			t.Errorf("after %d times: %v", times, err)
		}
		if res, err := r.Run(t.Context(), agent, pawl.UserText("pay"), opts); err != nil || !res.Waiting() {
			t.Fatalf("after %d times: %v", times, err)
		}
	}
	if panics < 3 { // the last one of them when the run was claimed
		t.Errorf("it panicked %d times", panics)
	}
}

// A model of a nested run that ends its goroutine has failed, and the run goes on from there.
func TestNestedModelEndsItsGoroutine(t *testing.T) {
	inner := &pawl.Agent{Name: "inner", Model: newScript(func(context.Context, *model.Request, func(*model.Event) bool) (*model.Response, error) {
		runtime.Goexit()
		return nil, nil
	}, says("found"))}
	outer := agentWith(newScript(calling(fc("c1", "inner", `{"input":"go"}`)), says("done")), pawl.AgentTool(inner, &pawl.AgentToolOptions{FailRun: true}))
	var r pawl.Runner
	_, err := r.Run(t.Context(), outer, pawl.UserText("go"), nil)
	if err == nil || !strings.Contains(err.Error(), "it ended its goroutine") {
		t.Fatal(err)
	}
	res := must(t)(r.Resume(t.Context(), outer, viaJSON(t, stateOf(t, err)), nil))
	if got := outputs(res.ToInputList()); !slices.Equal(got, []string{"c1: found"}) {
		t.Errorf("the model read %q", got)
	}
}
