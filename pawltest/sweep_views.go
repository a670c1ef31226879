package pawltest

import (
	"slices"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
)

// meet notes the classes of the tools that an agent has, and of those of the agents that it hands over to and runs. conversing
// says that it may have the run's own conversation.
func (f *far) meet(a *pawl.Agent, conversing bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	type visit struct {
		agent      *pawl.Agent
		conversing bool
	}
	list, seen := []visit{{a, conversing}}, map[visit]bool{}
	for len(list) > 0 {
		v := list[0]
		list = list[1:]
		if seen[v] {
			continue
		}
		seen[v] = true
		if m, ok := v.agent.Model.(sweptModel); ok && v.conversing {
			f.conversing[m.script] = true
		}
		f.hear(v.agent)
		for _, t := range v.agent.Tools {
			if nested := t.Agent(); nested != nil {
				f.agentTools[t.Name()] = true
				list = append(list, visit{nested, false})
			} else {
				f.classes[t.Name()] = t.Effect()
			}
		}
		for _, h := range v.agent.Handoffs {
			list = append(list, visit{h.Agent(), v.conversing})
		}
	}
}

// views are all the conversations at an end, by what knows them.
func (e *ending) views() map[string][]item.Item {
	views := map[string][]item.Item{"session": e.Session, "replay": e.Replay, "input of the model": e.Wire, "input of the first model": e.Wires[""]}
	for script, items := range e.Wires {
		if script != "" {
			views["input of the model of "+script] = items
		}
	}
	for id, items := range e.Sessions {
		views["session "+id] = items
	}
	return views
}

// checkWithheld checks that nobody reads what a guardrail keeps back.
func (st *stage) checkWithheld() {
	s, f := st.scenario, st.far
	check := func(texts []string, view, content string) {
		for _, text := range texts {
			if strings.Contains(content, text) {
				f.problem("%q is withheld, and in the %s", text, view)
			}
		}
	}
	check(slices.Concat(s.Withheld, s.Unrecorded), "final output", st.end.Final)
	for view, items := range st.end.views() {
		content := strings.Join(texts(items), "\n")
		check(s.Unrecorded, view, content)
		if view == "replay" || strings.HasPrefix(view, "session") {
			check(s.Withheld, view, content)
		}
	}
	for _, r := range f.ledger {
		check(s.Unrecorded, "ledger", r.Payload)
	}
	check(s.Unrecorded, "document", string(st.saved))
}

// compareViews compares the conversations with those of another end, but for the outputs of excused calls.
func (st *stage) compareViews(want *ending, excused map[string]bool) {
	got := st.end.views()
	failed := len(st.nestedFailed()) > 0
	for name, items := range want.views() {
		known := name == "session" || name == "replay"
		if !known && (failed || st.point.fault.stops() || st.scenario.Filtered && len(excused) > 0) {
			continue // a nested run that failed is not the same, a process that was stopped may ask once more, a filter quotes outputs
		}
		if a, b := masked(items, excused), masked(got[name], excused); !slices.Equal(a, b) {
			st.far.problem("the %s differs from that without the fault: %s", name, difference(a, b))
		}
	}
}
