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
		var e struct {
			Type, ID string
			CallID   string `json:"call_id"`
		}
		if err := json.Unmarshal([]byte(it.Raw()), &e); err != nil {
			problems = append(problems, "an item is unreadable: "+err.Error())
		}
		if e.ID != "" && ids[e.ID] {
			problems = append(problems, "two items have the id "+e.ID)
		}
		ids[e.ID] = true
		switch e.Type {
		case "function_call", "custom_tool_call":
			if open[e.CallID] || answered[e.CallID] {
				problems = append(problems, "the call "+e.CallID+" is there twice")
			}
			open[e.CallID] = true
		case "function_call_output", "custom_tool_call_output":
			switch {
			case answered[e.CallID]:
				problems = append(problems, "the call "+e.CallID+" has two outputs")
			case !open[e.CallID]:
				problems = append(problems, "the output of "+e.CallID+" has no call before it")
			default:
				answered[e.CallID] = true
				delete(open, e.CallID)
			}
		}
	}
	for id := range open {
		problems = append(problems, "the call "+id+" has no output")
	}
	slices.Sort(problems)
	return problems
}
