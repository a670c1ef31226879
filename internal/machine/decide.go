package machine

import "github.com/pawl-agents/pawl/journal"

// stickyFor returns the sticky decision that covers a call, nil if none does: a
// rejection covers every call of the tool's identity, an approval answers only a
// rule that asks [M9].
func (m *Machine) stickyFor(c *call) *journal.Decided {
	if c.spec == nil || c.spec.Identity == "" {
		return nil
	}
	return m.sticky[c.spec.Identity]
}

// foldDecided applies a decision to its call, and a sticky one to the open calls of
// the same tool [M9].
func (m *Machine) foldDecided(b *journal.Decided) {
	c := m.find(b.Call)
	c.decisions = append(c.decisions, b)
	c.stage++
	m.apply(c, b)
	if !b.Sticky {
		return
	}
	m.sticky[c.spec.Identity] = b
	for _, o := range m.last().calls {
		if o.state == callAsked && o.spec != nil && o.spec.Identity == c.spec.Identity {
			m.apply(o, &journal.Decided{Verdict: b.Verdict, Text: b.Text})
		}
	}
}

func (m *Machine) apply(c *call, b *journal.Decided) {
	switch b.Verdict {
	case journal.Approve:
		if b.Arguments != "" {
			c.edited = b.Arguments
		}
		if c.plan.Unreadable && c.edited == "" {
			c.state = callDecided
			return
		}
		c.state = callReady
	case journal.Retry:
		c.state = callReady
	case journal.Reject, journal.Settle, journal.GiveUp:
		c.state, c.verdict = callDecided, b
	}
}

// openKind says what a call waits for, and whether it waits at all.
func (c *call) openKind() (InterruptionKind, bool) {
	switch {
	case c.state == callAsked:
		return Approval, true
	case c.state == callDoubt && c.spec.OnUnknown != journal.UnknownTell:
		return InDoubt, true
	}
	return 0, false
}
