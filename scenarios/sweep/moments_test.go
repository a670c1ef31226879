package sweep

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// places are where calls occur, by the model's id: the frame of an agent's tool for nested runs is made of them.
type places map[string]string

// frame is the frame that code with that RunContext is called in.
func (p places) frame(rc pawl.RunContext) string {
	if rc.Invocation == nil {
		return ""
	}
	return p[rc.Invocation.CallID]
}

// position is where a call occurs in its frame.
func (p places) position(callID string) string {
	return p[callID][strings.LastIndex(p[callID], "/")+1:]
}

// fact finds a fact by what stands in it.
func fact(frame string, kind journal.Kind, texts ...string) func(journal.Record) bool {
	return func(r journal.Record) bool {
		if r.Kind != kind || r.Frame != frame {
			return false
		}
		for _, text := range texts {
			if !strings.Contains(r.Payload, text) {
				return false
			}
		}
		return true
	}
}

func number(n int) string { return fmt.Sprintf(`"n":%d`, n) }

func named(name string) string { return fmt.Sprintf(`"name":%q`, name) }

// hooks are hooks of all kinds that say what they are told.
func hooks(w *pawltest.World, who string, at places) *pawl.Hooks {
	told := func(rc pawl.RunContext, what string, f func(journal.Record) bool) {
		w.Told(pawltest.Moment{Name: strings.TrimSpace(who + ": " + what), In: rc, Fact: f})
	}
	turn := func(rc pawl.RunContext, what string) string {
		return fmt.Sprintf("%s of %s in turn %d of %q", what, rc.Agent.Name, rc.Turn, at.frame(rc))
	}
	return &pawl.Hooks{
		AgentStart: func(_ context.Context, ev *pawl.AgentStart) {
			told(ev.RunContext, turn(ev.RunContext, "AgentStart"), fact(at.frame(ev.RunContext), journal.KindPrepared, number(ev.Turn)))
		},
		AgentEnd: func(_ context.Context, ev *pawl.AgentEnd) {
			told(ev.RunContext, turn(ev.RunContext, "AgentEnd"), fact(at.frame(ev.RunContext), journal.KindFinished))
		},
		ModelStart: func(_ context.Context, ev *pawl.ModelStart) {
			told(ev.RunContext, turn(ev.RunContext, "ModelStart"), fact(at.frame(ev.RunContext), journal.KindPrepared, number(ev.Turn)))
		},
		ModelEnd: func(_ context.Context, ev *pawl.ModelEnd) {
			told(ev.RunContext, turn(ev.RunContext, "ModelEnd"), fact(at.frame(ev.RunContext), journal.KindResponded, fmt.Sprintf(`"id":"m%d.`, ev.Turn)))
		},
		Handoff: func(_ context.Context, ev *pawl.HandoffDone) {
			told(ev.RunContext, "Handoff "+ev.CallID, fact(at.frame(ev.RunContext), journal.KindTransferred, number(ev.Turn)))
		},
		ToolStart: func(_ context.Context, ev *pawl.ToolStart) {
			started := fact(at.frame(ev.RunContext), journal.KindIntended, fmt.Sprintf(`"id":"t%s.%d"`, at.position(ev.ID), ev.Attempt))
			if ev.Tool == "ask_clerk" || ev.Tool == "ask_scout" {
				started = fact(at[ev.ID], journal.KindStarted)
			}
			told(ev.RunContext, fmt.Sprintf("ToolStart, attempt %d of %s", ev.Attempt, ev.ID), started)
		},
		ToolEnd: func(_ context.Context, ev *pawl.ToolEnd) {
			told(ev.RunContext, "ToolEnd "+ev.ID, fact(at.frame(ev.RunContext), journal.KindSettled, `"id":"t`+at.position(ev.ID)+".", `"output":`))
		},
	}
}

// onInput is a guardrail on the input.
func onInput(w *pawltest.World, name string, blocking, trips bool) []pawl.InputGuardrail {
	return []pawl.InputGuardrail{{Name: name, Blocking: blocking, Check: func(_ context.Context, in *pawl.InputCheck) (pawl.GuardrailVerdict, error) {
		err := w.Ask(pawltest.Moment{Kind: pawltest.InputGuardrail, Name: name, In: in.RunContext, Fact: fact("", journal.KindChecked, named(name))})
		return pawl.GuardrailVerdict{Tripped: trips}, err
	}}}
}

// onOutput is a guardrail on the final output.
func onOutput(w *pawltest.World, name string, trips bool) []pawl.OutputGuardrail {
	return []pawl.OutputGuardrail{{Name: name, Check: func(_ context.Context, out *pawl.OutputCheck) (pawl.GuardrailVerdict, error) {
		err := w.Ask(pawltest.Moment{Kind: pawltest.OutputGuardrail, Name: name, In: out.RunContext, Fact: fact("", journal.KindChecked, named(name))})
		return pawl.GuardrailVerdict{Tripped: trips}, err
	}}}
}

// onCall is a guardrail on a call. One that is asked before an approval has its answer in the plan.
func onCall(w *pawltest.World, name string, verdict pawl.ToolVerdict) []pawl.ToolInputGuardrail {
	return []pawl.ToolInputGuardrail{{Name: name, Check: func(_ context.Context, in *pawl.ToolInputCheck) (pawl.ToolVerdict, error) {
		m := pawltest.Moment{Kind: pawltest.ToolInputGuardrail, Name: name + " " + in.ID, In: in.RunContext, Fact: fact("", journal.KindChecked, named(name))}
		if strings.Contains(name, "before") && len(in.ApprovedBy) == 0 {
			m.Name, m.Fact = name+" an approval of "+in.ID, fact("", journal.KindPlanned, named(name))
		}
		return verdict, w.Ask(m)
	}}}
}

// onResult is a guardrail on what a tool returns.
func onResult(w *pawltest.World, name string, verdict pawl.ToolVerdict) []pawl.ToolOutputGuardrail {
	return []pawl.ToolOutputGuardrail{{Name: name, Check: func(_ context.Context, out *pawl.ToolOutputCheck) (pawl.ToolVerdict, error) {
		return verdict, w.Ask(pawltest.Moment{Kind: pawltest.ToolOutputGuardrail, Name: name + " " + out.ID, In: out.RunContext,
			Fact: fact("", journal.KindSettled, named(name))})
	}}}
}

// question is any other code that the run asks.
func question(w *pawltest.World, rc pawl.RunContext, name string, answered func(journal.Record) bool) error {
	return w.Ask(pawltest.Moment{Kind: pawltest.Question, Name: name, In: rc, Fact: answered})
}
