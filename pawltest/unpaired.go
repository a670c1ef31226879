package pawltest

import (
	"encoding/json"
	"slices"

	"github.com/pawl-agents/pawl/item"
)

// Unpaired says what is wrong with a conversation, nothing if it is sound: every call of a function or a custom tool has one output
// behind it, every output one call before it, and no id occurs twice. A session, the input of a model and what a run can
// replay must be sound after every step. It reads the items' JSON by itself.
func Unpaired(items []item.Item) (problems []string) {
	open, answered, ids := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, it := range items {
		e := map[string]any{} // a map has its members by their exact names
		if err := json.Unmarshal([]byte(it.Raw()), &e); err != nil {
			problems = append(problems, "an item is unreadable: "+err.Error())
		}
		id, _ := e["id"].(string)
		if id != "" && ids[id] {
			problems = append(problems, "two items have the id "+id)
		}
		ids[id] = true
		callID, _ := e["call_id"].(string)
		switch e["type"] {
		case "function_call", "custom_tool_call":
			if open[callID] || answered[callID] {
				problems = append(problems, "the call "+callID+" is there twice")
			}
			open[callID] = true
		case "function_call_output", "custom_tool_call_output":
			switch {
			case answered[callID]:
				problems = append(problems, "the call "+callID+" has two outputs")
			case !open[callID]:
				problems = append(problems, "the output of "+callID+" has no call before it")
			default:
				answered[callID] = true
				delete(open, callID)
			}
		}
	}
	for id := range open {
		problems = append(problems, "the call "+id+" has no output")
	}
	slices.Sort(problems)
	return problems
}
