package pawl

import (
	"fmt"
	"iter"
	"slices"

	"github.com/pawl-agents/pawl/journal"
)

// team is the agents that a run can come to: the one it starts with, and those that the
// conversation can be handed over to.
type team struct {
	root   *Agent
	others []member
	// bare says that the agents are not known. A run that only has to be closed needs
	// none: what it is given is only a key.
	bare bool
}

// member is an agent of a team.
type member struct {
	agent *Agent
	// key identifies the agent in the ledger: its Key, or its Name if no other agent of
	// the team has that; else the route.
	key string
	// route is the names of the handoffs that lead to the agent, behind the key of the
	// agent where they begin.
	route string
}

// bareTeam is the team of a run whose agents are not known.
func bareTeam(key string) team { return team{root: &Agent{Key: key}, bare: true} }

// teamOf walks from the agents that are given, of which the first is the run's. Two agents
// with one key are an error: the ledger could not tell them apart.
func teamOf(roots ...*Agent) (team, error) {
	t := team{root: roots[0]}
	if len(roots) == 1 && (t.root == nil || len(t.root.Handoffs) == 0) {
		return t, nil
	}
	var found []member
	reach := func(a *Agent, route string) {
		if a != nil && !slices.ContainsFunc(found, func(m member) bool { return m.agent == a }) {
			found = append(found, member{agent: a, route: route})
		}
	}
	for _, a := range roots {
		reach(a, a.key())
	}
	begins := len(found)
	named := make(map[string]int)
	for i := 0; i < len(found); i++ {
		m := found[i]
		named[m.agent.key()]++
		for j := range m.agent.Handoffs {
			reach(m.agent.Handoffs[j].Agent(), m.route+"/"+m.agent.Handoffs[j].tool.name)
		}
	}
	keys := make(map[string]member)
	for i := range found {
		m := &found[i]
		m.key = m.agent.key()
		if m.agent.Key == "" && named[m.key] > 1 && i >= begins {
			m.key = m.route
		}
		if other, twice := keys[m.key]; twice {
			return team{}, &ConfigError{Field: "Agent.Key", Problem: fmt.Sprintf("%q is the key of two agents, %q (%s) and %q (%s)",
				m.key, other.agent.Name, other.route, m.agent.Name, m.route)}
		}
		keys[m.key] = *m
	}
	t.others = found[1:]
	return t, nil
}

// all returns the agents of the team.
func (t *team) all() iter.Seq[*Agent] {
	return func(yield func(*Agent) bool) {
		if !yield(t.root) {
			return
		}
		for i := range t.others {
			if !yield(t.others[i].agent) {
				return
			}
		}
	}
}

// key returns what identifies an agent of the team in the ledger.
func (t *team) key(a *Agent) string {
	for i := range t.others {
		if t.others[i].agent == a {
			return t.others[i].key
		}
	}
	return a.key()
}

// find returns the agent with a key, nil if there is none.
func (t *team) find(key string) *Agent {
	if t.root.key() == key {
		return t.root
	}
	for i := range t.others {
		if t.others[i].key == key {
			return t.others[i].agent
		}
	}
	if t.bare {
		return &Agent{Key: key}
	}
	return nil
}

// check reports what is wrong with any agent of the team, before anything happens. managed
// says that the server has the conversation.
// seen are the agents that are checked already.
func (t *team) check(opts *RunOptions, store journal.Driver, managed bool, seen map[checkedAgent]bool) error {
	for a := range t.all() {
		if err := a.check(a.model(opts), store); err != nil {
			return err
		}
		if err := a.checkAgentTools(opts, store, seen); err != nil {
			return err
		}
	}
	if !managed {
		return nil
	}
	for _, m := range t.others {
		if info := m.agent.model(opts).Info(); !info.ServerState {
			return &ConfigError{Field: "RunOptions", Problem: fmt.Sprintf("the server of model %q, of agent %q, keeps no conversation", info.Name, m.agent.Name)}
		}
	}
	if err := t.checkFilters(opts); err != nil {
		return err
	}
	return t.refuseOutputGuardrails(opts)
}

// checkFilters refuses filters where the server has the conversation: what it has cannot be
// left out.
func (t *team) checkFilters(opts *RunOptions) error {
	const why = "the server keeps the conversation, so that a handoff cannot change what the next agent reads"
	if opts.HandoffFilter != nil {
		return &ConfigError{Field: "RunOptions.HandoffFilter", Problem: why}
	}
	for a := range t.all() {
		for i := range a.Handoffs {
			if h := &a.Handoffs[i].tool; h.handoff.filter != nil {
				return &ConfigError{Field: "HandoffFunc.Filter", Problem: fmt.Sprintf("handoff %q: %s", h.name, why)}
			}
		}
	}
	return nil
}

// refuseOutputGuardrails refuses them where the server has the conversation: it would keep what
// they withhold.
func (t *team) refuseOutputGuardrails(opts *RunOptions) error {
	const why = "the server keeps the conversation, also an output that a guardrail withholds"
	if len(opts.OutputGuardrails) > 0 {
		return &ConfigError{Field: "RunOptions.OutputGuardrails", Problem: why}
	}
	for a := range t.all() {
		if len(a.OutputGuardrails) > 0 {
			return &ConfigError{Field: "Agent.OutputGuardrails", Problem: fmt.Sprintf("of agent %q: %s", a.Name, why)}
		}
	}
	return nil
}

// uniqueCallIDs says that no model of the team uses the id of a call twice.
func (t *team) uniqueCallIDs(opts *RunOptions) bool {
	for a := range t.all() {
		if !a.model(opts).Info().UniqueCallIDs {
			return false
		}
	}
	return true
}

// lookUp finds an agent by its key, from the agent of a run with the key root, or else among
// Runner.Agents. One that is not known has only its Key.
func (r *Runner) lookUp(root, key string) *Agent {
	if a, err := r.agentFor(nil, root); err == nil {
		if t, err := r.teamWith(a, key); err == nil {
			return t.find(key)
		}
	}
	return &Agent{Key: key}
}

// teamWith returns the team of a run that an agent of that key has now. If nothing leads to
// it any more, it may be among Runner.Agents. ErrUnknownAgent if it is not there either.
func (r *Runner) teamWith(root *Agent, key string) (team, error) {
	t, err := teamOf(root)
	if err != nil || t.find(key) != nil {
		return t, err
	}
	other, err := r.agentFor(nil, key)
	if err != nil {
		return t, err
	}
	return teamOf(root, other)
}
