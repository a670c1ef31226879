package pawltest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
)

// excused are the calls whose output may differ from the clean run's: the tool gave the model an error instead of its answer, or
// nobody could know what became of it.
func (st *stage) excused() map[string]bool {
	calls := st.nestedFailed()
	if k, f := st.point.boundary.Kind, st.point.fault; (k == ToolEffect || k == ToolOutputGuardrail) && (f == Fails || f == AckLost) {
		name := st.point.boundary.Name
		calls[name[strings.LastIndex(name, " ")+1:]] = true
	}
	for id := range st.settled {
		if st.edited[id] {
			calls[id] = true // the tool's answer would have been told with the edit
		}
	}
	for _, items := range st.end.views() {
		for _, it := range items {
			id := it.Head().CallID
			switch exposed := st.unrepeatable(); {
			case !strings.Contains(outputOf(it), "outcome of this tool call is unknown"):
			case slices.Contains(exposed, id):
				calls[id] = true
			case st.far.delegates(id) && len(exposed) > 0: // nobody knows what the agent's tools did
				for _, nested := range append(exposed, id) {
					calls[nested] = true
				}
			}
		}
	}
	return calls
}

// unrepeatable are the exposed calls whose tools may not be repeated, so that their outcomes are not found out in the end.
func (st *stage) unrepeatable() []string {
	return slices.DeleteFunc(slices.Clone(st.exposed), func(id string) bool { return st.far.classes[st.far.toolOf(id)] != pawl.AtMostOnce })
}

// toolOf returns the tool of a call.
func (f *far) toolOf(callID string) string {
	for _, script := range f.scripts {
		for _, step := range script {
			for _, it := range step.Output {
				if fc, err := it.FunctionCall(); err == nil && fc.CallID == callID {
					return fc.Name
				}
			}
		}
	}
	return ""
}

func outputOf(it item.Item) string {
	e := map[string]any{}
	_ = json.Unmarshal([]byte(it.Raw()), &e) // what has no output has none
	return fmt.Sprint(e["output"])
}

// delegates says that a call is one of a tool that runs an agent.
func (f *far) delegates(callID string) bool { return f.agentTools[f.toolOf(callID)] }

// failedAgents are the calls whose caller was told that their agent failed, and what it was told.
func failedAgents(e *ending) map[string]string {
	calls := map[string]string{}
	for _, items := range e.views() {
		for _, it := range items {
			if told := outputOf(it); strings.HasPrefix(told, "The agent failed: ") {
				calls[it.Head().CallID] = told
			}
		}
	}
	return calls
}

// nestedFailed returns the calls whose caller was told that their agent failed, and is not without the fault, with what the agents
// called: all of it is excused. That is told only of what failed: a crash is no failure.
func (st *stage) nestedFailed() map[string]bool {
	if st.clean == nil {
		return nil
	}
	calls, clean := map[string]bool{}, failedAgents(st.clean)
	for id, told := range failedAgents(st.end) {
		if told != clean[id] {
			calls[id] = true
		}
	}
	if f := st.point.fault; len(calls) > 0 && f != Fails && f != AckLost {
		st.far.problem("the model was told that an agent failed, and nothing did")
	}
	if len(calls) > 0 {
		for name, script := range st.scenario.Scripts {
			for _, step := range script {
				for _, it := range step.Output {
					if id := it.Head().CallID; id != "" && !st.far.conversing[name] {
						calls[id] = true
					}
				}
			}
		}
	}
	return calls
}
