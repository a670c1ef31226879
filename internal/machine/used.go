package machine

import (
	"slices"

	"github.com/pawl-agents/pawl/item"
)

// ToolsUsed says that a response to the agent had a call, also one that the server of the
// model answered itself, but not if it only searched for tools, or asked whether it may
// call one [M14.7].
func (f *Frame) ToolsUsed(agent string) bool {
	for i := len(f.responses) - 1; i >= 0; i-- {
		r := f.responses[i]
		if r.manifest.Agent != agent {
			continue
		}
		if slices.ContainsFunc(f.history[r.first:r.end], func(s slot) bool { return usesTool(s.item) }) {
			return true
		}
	}
	return false
}

func usesTool(it item.Item) bool {
	t := it.Type()
	if t == item.TypeToolSearchCall || t == item.TypeMCPApprovalRequest {
		return false
	}
	_, err := it.HostedCall()
	return err == nil || item.IsCall(t)
}
