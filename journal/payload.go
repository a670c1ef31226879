package journal

// This file lists the members of every kind of fact: their names, their order and
// their types. It is the encoding, so a change needs a new version of the kind.

// body writes or reads the members of a fact's body.
func (c *coder) body(b Body) {
	switch b := b.(type) {
	case *Started:
		c.started(b)
	case *Forked:
		c.text("run", &b.Run)
		c.session(&b.Session)
	case *Claimed:
		c.uint64("epoch", &b.Epoch)
		c.owner(&b.Owner)
		c.flag("gone", &b.Gone)
	case *Resumed:
		c.int("turns", &b.MaxTurns)
	case *Loaded:
		c.items("items", &b.Items)
		c.items("healed", &b.Healed)
	case *Prepared:
		c.int("n", &b.N)
		c.int("upto", &b.Upto)
		c.manifest(&b.Manifest)
		c.int("same", &b.Same)
	case *Intended:
		c.effect("id", &b.ID)
		c.int("upto", &b.Upto)
		c.int64("until", &b.NotAfter)
	case *Responded:
		c.effect("id", &b.ID)
		c.text("resp", &b.ResponseID)
		c.text("req", &b.RequestID)
		c.items("items", &b.Items)
		c.usage(&b.Usage)
	case *Planned:
		c.planned(b)
	case *Decided:
		c.decided(b)
	case *Settled:
		c.effect("id", &b.ID)
		word(c, "outcome", &b.Outcome, ToolFailed, Unknown, NotExecuted, Rejected, Decreed, Dropped)
		c.item("output", &b.Output)
		c.text("error", &b.Error)
		c.flag("late", &b.Late)
	case *Judged:
		c.int("n", &b.N)
		c.flag("final", &b.Final)
		c.text("text", &b.Text)
	case *Confirmed:
		c.int("n", &b.N)
		c.int("upto", &b.Upto)
		c.flag("found", &b.Found)
	case *Absent:
		c.effect("id", &b.ID)
	case *Failed:
		c.effect("id", &b.ID)
		c.text("code", &b.Code)
		c.text("error", &b.Error)
		c.flag("unknown", &b.Unknown)
		c.int64("retry", &b.RetryAt)
	case *Fired:
		c.effect("id", &b.ID)
	case *Cancelled:
		c.text("by", &b.By)
		c.text("why", &b.Why)
	case *Finished:
		c.flag("cancelled", &b.Cancelled)
		c.int("at", &b.At)
		c.text("text", &b.Text)
	}
}

// newBody returns an empty body of that kind, nil if the kind is not known.
func newBody(k Kind) Body {
	switch k {
	case KindStarted:
		return new(Started)
	case KindForked:
		return new(Forked)
	case KindClaimed:
		return new(Claimed)
	case KindResumed:
		return new(Resumed)
	case KindLoaded:
		return new(Loaded)
	case KindPrepared:
		return new(Prepared)
	case KindIntended:
		return new(Intended)
	case KindResponded:
		return new(Responded)
	case KindPlanned:
		return new(Planned)
	case KindDecided:
		return new(Decided)
	case KindSettled:
		return new(Settled)
	case KindJudged:
		return new(Judged)
	case KindConfirmed:
		return new(Confirmed)
	case KindAbsent:
		return new(Absent)
	case KindFailed:
		return new(Failed)
	case KindFired:
		return new(Fired)
	case KindCancelled:
		return new(Cancelled)
	case KindFinished:
		return new(Finished)
	}
	return nil
}

func (c *coder) started(b *Started) {
	c.text("run", &b.Run)
	c.text("agent", &b.Agent)
	c.digest("digest", &b.Digest)
	c.items("input", &b.Input)
	c.session(&b.Session)
	c.text("conv", &b.Conversation)
	c.text("prev", &b.Previous)
	c.flag("auto", &b.Auto)
	c.int("turns", &b.MaxTurns)
	c.int("parallel", &b.Parallel)
	c.flag("unique", &b.UniqueCallIDs)
	c.int("machine", &b.Machine)
}

func (c *coder) session(v **SessionRef) {
	if !c.begin("session", *v != nil) {
		return
	}
	if c.reading {
		*v = new(SessionRef)
	}
	s := *v
	c.text("id", &s.ID)
	c.text("backend", &s.Backend)
	c.flag("own", &s.Own)
	c.flag("batches", &s.Batches)
	c.end()
}

func (c *coder) owner(o *Owner) {
	if !c.begin("owner", *o != (Owner{})) {
		return
	}
	c.text("host", &o.Host)
	c.text("boot", &o.Boot)
	c.int("pid", &o.PID)
	c.text("start", &o.Start)
	c.end()
}

func (c *coder) manifest(v **Manifest) {
	if !c.begin("manifest", *v != nil) {
		return
	}
	if c.reading {
		*v = new(Manifest)
	}
	m := *v
	c.text("agent", &m.Agent)
	c.text("instr", &m.Instructions)
	c.text("settings", &m.Settings)
	if n := c.beginList("tools", len(m.Tools)); n > 0 {
		if c.reading {
			m.Tools = make([]ToolSpec, n)
		}
		for i := range m.Tools {
			c.tool(&m.Tools[i])
		}
		c.endList()
	}
	word(c, "use", &m.ToolUse, "first", "names", "custom")
	c.texts("stop", &m.StopAt)
	c.text("output", &m.Output)
	c.end()
}

func (c *coder) tool(t *ToolSpec) {
	if !c.begin("", true) {
		return
	}
	c.text("name", &t.Name)
	c.text("id", &t.Identity)
	word(c, "class", &t.Class, Idempotent, ReadOnly)
	c.int64("timeout", &t.Timeout)
	word(c, "unknown", &t.OnUnknown, UnknownTell, UnknownWait)
	c.end()
}

func (c *coder) usage(v **Usage) {
	if !c.begin("usage", *v != nil) {
		return
	}
	if c.reading {
		*v = new(Usage)
	}
	u := *v
	c.int64("in", &u.Input)
	c.int64("cached", &u.Cached)
	c.int64("out", &u.Output)
	c.int64("reason", &u.Reasoning)
	c.int64("total", &u.Total)
	c.text("raw", &u.Raw)
	c.end()
}

func (c *coder) planned(b *Planned) {
	c.int("n", &b.N)
	if n := c.beginList("calls", len(b.Calls)); n > 0 {
		if c.reading {
			b.Calls = make([]PlannedCall, n)
		}
		for i := range b.Calls {
			c.call(&b.Calls[i])
		}
		c.endList()
	}
	word(c, "final", &b.Final, FinalMessage, FinalEmpty)
	c.int("at", &b.FinalAt)
	c.text("refusal", &b.Refusal)
}

func (c *coder) call(v *PlannedCall) {
	if !c.begin("", true) {
		return
	}
	c.int("p", &v.P)
	c.int("tool", &v.Tool)
	c.digest("digest", &v.Digest)
	word(c, "gate", &v.Gate, Ask, Deny)
	c.flag("bad", &v.Unreadable)
	c.flag("twin", &v.Twin)
	c.item("output", &v.Output)
	c.text("reject", &v.Reject)
	c.end()
}

func (c *coder) decided(b *Decided) {
	c.effect("id", &b.Call)
	c.int("stage", &b.Stage)
	c.digest("digest", &b.Digest)
	word(c, "verdict", &b.Verdict, Approve, Reject, Settle, Retry, GiveUp)
	c.flag("sticky", &b.Sticky)
	c.text("args", &b.Arguments)
	c.text("text", &b.Text)
	c.text("by", &b.By)
	c.text("why", &b.Why)
	c.int64("at", &b.At)
}
