package pawl_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl"
)

var guardrailFeatures = []feature{
	{"A1.12", func(t *testing.T) { // an agent's guardrails
		var e effects
		agent := agentWith(newScript(says("done")))
		agent.InputGuardrails = []pawl.InputGuardrail{blocking(onInput("in", &e, verdict{}))}
		agent.OutputGuardrails = []pawl.OutputGuardrail{onOutput("out", &e, "")}
		res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("hi"), nil))
		e.want(t, "in of support: user: hi", "out of support: done")
		wantSaid(t, res.Guardrails(), "input in of support", "output out of support")
	}},
	{"L3.03", TestParallelGuardrailTrips},
	{"T8.09", func(t *testing.T) { // a tool's guardrails, whatever kind of tool it is
		var e effects
		in, out := []pawl.ToolInputGuardrail{onCall("in", &e, toolVerdict{})}, []pawl.ToolOutputGuardrail{onResult("out", &e, toolVerdict{})}
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), calling(fc("c2", "raw", `{}`)), calling(ask("c3", "go")), says("done"))
		desk := &pawl.Agent{Name: "Billing desk", Model: newScript(says("billed"))}
		agent := agentWith(m, charging("charge", new(effects), guarding(in, out)),
			pawl.NewRawTool(pawl.RawFunc{Name: "raw", Schema: `{"type":"object","properties":{},"additionalProperties":false}`, InputGuardrails: in, OutputGuardrails: out,
				Run: func(context.Context, *pawl.Call) (string, error) { return "cooked", nil }}),
			pawl.AgentTool(desk, &pawl.AgentToolOptions{InputGuardrails: in, OutputGuardrails: out}))
		must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
		e.want(t, `in: charge {"cents":5}`, `out: {"cents":5}, receipt 5`, `in: raw {}`, `out: {}, cooked`, `in: billing_desk {"input":"go"}`, `out: {"input":"go"}, billed`)
	}},
	{"G10.01", TestInputGuardrails},
	{"G10.02", TestOutputGuardrails},
	{"G10.03", TestBlockingGuardrailTrips},
	{"G10.04", TestToolInputGuardrails},
	{"G10.05", TestToolOutputGuardrails},
	{"G10.06", func(t *testing.T) { // results are on the result, the error and the state, over resumes (S17.10)
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("secret")), charging("charge", new(effects), func(f *pawl.Func[charge, string]) {
			asking(f)
			guarding([]pawl.ToolInputGuardrail{onCall("in", new(effects), pawl.PassTool(1))}, []pawl.ToolOutputGuardrail{onResult("out", new(effects), pawl.PassTool(2))})(f)
		}))
		agent.InputGuardrails = []pawl.InputGuardrail{onInput("first", new(effects), verdict{Info: "hello"})}
		agent.OutputGuardrails = []pawl.OutputGuardrail{onOutput("last", new(effects), "secret")}
		res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), nil))
		first := `input first of support: "hello"`
		wantSaid(t, res.Guardrails(), first)
		s := viaJSON(t, res.State())
		if err := s.Approve(res.Interruptions[0], "ann"); err != nil {
			t.Fatal(err)
		}
		res, err := new(pawl.Runner).Resume(t.Context(), agent, s, nil)
		want := []string{first, "tool_input in of support, charge c1: 1", "tool_output out of support, charge c1: 2", "output last of support, tripped"}
		wantSaid(t, res.Guardrails(), want...)
		wantSaid(t, viaJSON(t, stateOf(t, err)).Guardrails(), want...)
		if strings.Contains(texts(res.ToInputList()), "secret") {
			t.Error("what was withheld is in the replay")
		}
	}},
	{"G10.07", TestMistakesInGuardrails},
}
