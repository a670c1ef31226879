package journal

// readable is a body that can be read. Its read reads one member; the error is
// errUnknown for a name or a word that this version of the encoding does not have.
type readable interface {
	Body
	read(name, value string) error
}

// newBody returns an empty body of that kind, nil if the kind is not known.
func newBody(k Kind) readable {
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
	case KindExpired:
		return new(Expired)
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
	case KindTransferred:
		return new(Transferred)
	case KindChecked:
		return new(Checked)
	case KindHandled:
		return new(Handled)
	case KindAdded:
		return new(Added)
	case KindAdmitted:
		return new(Admitted)
	case KindObserved:
		return new(Observed)
	case KindCancelled:
		return new(Cancelled)
	case KindFinished:
		return new(Finished)
	}
	return nil
}

func (b *Started) read(name, value string) error {
	switch name {
	case "run":
		return scanText(&b.Run, value)
	case "agent":
		return scanText(&b.Agent, value)
	case "digest":
		return scanDigest(&b.Digest, value)
	case "input":
		return scanItems(&b.Input, value)
	case "session":
		return scanObject(&b.Session, value)
	case "conv":
		return scanText(&b.Conversation, value)
	case "prev":
		return scanText(&b.Previous, value)
	case "auto":
		return scanFlag(&b.Auto, value)
	case "turns":
		return scanInt(&b.MaxTurns, value)
	case "parallel":
		return scanInt(&b.Parallel, value)
	case "unique":
		return scanFlag(&b.UniqueCallIDs, value)
	case "guards":
		return scanWord(&b.Guards, value, GuardsBlocking, GuardsParallel, GuardsBoth)
	case "omitids":
		return scanFlag(&b.OmitReasoningIDs, value)
	case "ctx":
		return scanText(&b.Context, value)
	case "queue":
		return scanText(&b.Queue, value)
	case "priority":
		return scanInt(&b.Priority, value)
	case "due":
		return scanInt(&b.Due, value)
	case "machine":
		return scanInt(&b.Machine, value)
	}
	return errUnknown
}

func (s *SessionRef) read(name, value string) error {
	switch name {
	case "id":
		return scanText(&s.ID, value)
	case "backend":
		return scanText(&s.Backend, value)
	case "own":
		return scanFlag(&s.Own, value)
	case "batches":
		return scanFlag(&s.Batches, value)
	}
	return errUnknown
}

func (b *Forked) read(name, value string) error {
	switch name {
	case "run":
		return scanText(&b.Run, value)
	case "session":
		return scanObject(&b.Session, value)
	}
	return errUnknown
}

func (b *Claimed) read(name, value string) error {
	switch name {
	case "epoch":
		return scanUint(&b.Epoch, value)
	case "owner":
		return scanMembers(value, b.Owner.read)
	case "gone":
		return scanFlag(&b.Gone, value)
	}
	return errUnknown
}

func (o *Owner) read(name, value string) error {
	switch name {
	case "host":
		return scanText(&o.Host, value)
	case "boot":
		return scanText(&o.Boot, value)
	case "pid":
		return scanInt(&o.PID, value)
	case "start":
		return scanText(&o.Start, value)
	}
	return errUnknown
}

func (b *Resumed) read(name, value string) error {
	switch name {
	case "turns":
		return scanInt(&b.MaxTurns, value)
	case "ctx":
		return scanText(&b.Context, value)
	}
	return errUnknown
}

func (b *Loaded) read(name, value string) error {
	switch name {
	case "items":
		return scanItems(&b.Items, value)
	case "healed":
		return scanItems(&b.Healed, value)
	case "view":
		return scanObjects(&b.View, value)
	}
	return errUnknown
}

func (b *Prepared) read(name, value string) error {
	switch name {
	case "n":
		return scanInt(&b.N, value)
	case "upto":
		return scanInt(&b.Upto, value)
	case "manifest":
		return scanObject(&b.Manifest, value)
	case "same":
		return scanInt(&b.Same, value)
	case "view":
		return scanObjects(&b.View, value)
	}
	return errUnknown
}

func (m *Manifest) read(name, value string) error {
	switch name {
	case "agent":
		return scanText(&m.Agent, value)
	case "instr":
		return scanText(&m.Instructions, value)
	case "prompt":
		return scanText(&m.Prompt, value)
	case "settings":
		return scanText(&m.Settings, value)
	case "tools":
		return scanObjects(&m.Tools, value)
	case "use":
		return scanWord(&m.ToolUse, value, "first", "names", "custom")
	case "stop":
		return scanTexts(&m.StopAt, value)
	case "output":
		return scanText(&m.Output, value)
	case "guardsin":
		return scanFlag(&m.GuardsInput, value)
	case "guardsout":
		return scanFlag(&m.GuardsOutput, value)
	case "handles":
		return scanHandles(&m.Handles, value)
	}
	return errUnknown
}

func (t *ToolSpec) read(name, value string) error {
	switch name {
	case "name":
		return scanText(&t.Name, value)
	case "id":
		return scanText(&t.Identity, value)
	case "class":
		return scanWord(&t.Class, value, Idempotent, ReadOnly, Transactional)
	case "timeout":
		return scanInt(&t.Timeout, value)
	case "unknown":
		return scanWord(&t.OnUnknown, value, UnknownTell, UnknownWait)
	case "recover":
		return scanFlag(&t.Recover, value)
	case "expires":
		return scanInt(&t.Expires, value)
	case "expiryfails":
		return scanFlag(&t.ExpiryFails, value)
	case "agent":
		return scanText(&t.Agent, value)
	case "tellfailure":
		return scanFlag(&t.TellFailure, value)
	case "handoff":
		return scanText(&t.Handoff, value)
	case "guarded":
		return scanFlag(&t.Guarded, value)
	case "hosted":
		return scanFlag(&t.Hosted, value)
	}
	return errUnknown
}

func (b *Intended) read(name, value string) error {
	switch name {
	case "id":
		return scanEffect(&b.ID, value)
	case "upto":
		return scanInt(&b.Upto, value)
	case "until":
		return scanInt(&b.NotAfter, value)
	}
	return errUnknown
}

func (b *Responded) read(name, value string) error {
	switch name {
	case "id":
		return scanEffect(&b.ID, value)
	case "resp":
		return scanText(&b.ResponseID, value)
	case "req":
		return scanText(&b.RequestID, value)
	case "items":
		return scanItems(&b.Items, value)
	case "usage":
		return scanObject(&b.Usage, value)
	}
	return errUnknown
}

func (u *Usage) read(name, value string) error {
	switch name {
	case "in":
		return scanInt(&u.Input, value)
	case "cached":
		return scanInt(&u.Cached, value)
	case "out":
		return scanInt(&u.Output, value)
	case "reason":
		return scanInt(&u.Reasoning, value)
	case "total":
		return scanInt(&u.Total, value)
	case "raw":
		return scanText(&u.Raw, value)
	}
	return errUnknown
}

func (b *Planned) read(name, value string) error {
	switch name {
	case "n":
		return scanInt(&b.N, value)
	case "calls":
		return scanObjects(&b.Calls, value)
	case "tools":
		return scanObjects(&b.Tools, value)
	case "final":
		return scanWord(&b.Final, value, FinalMessage, FinalEmpty, FinalRefusal, FinalInvalid)
	case "at":
		return scanInt(&b.FinalAt, value)
	case "refusal":
		return scanText(&b.Refusal, value)
	}
	return errUnknown
}

func (c *PlannedCall) read(name, value string) error {
	switch name {
	case "p":
		return scanInt(&c.P, value)
	case "tool":
		return scanInt(&c.Tool, value)
	case "digest":
		return scanDigest(&c.Digest, value)
	case "gate":
		return scanWord(&c.Gate, value, Ask, Deny)
	case "bad":
		return scanFlag(&c.Unreadable, value)
	case "twin":
		return scanFlag(&c.Twin, value)
	case "output":
		return scanItem(&c.Output, value)
	case "reject":
		return scanText(&c.Reject, value)
	case "checks":
		return scanObjects(&c.Checks, value)
	}
	return errUnknown
}

func (b *Decided) read(name, value string) error {
	switch name {
	case "id":
		return scanEffect(&b.Call, value)
	case "stage":
		return scanInt(&b.Stage, value)
	case "digest":
		return scanDigest(&b.Digest, value)
	case "verdict":
		return scanWord(&b.Verdict, value, Approve, Reject, Settle, Retry, GiveUp)
	case "sticky":
		return scanFlag(&b.Sticky, value)
	case "args":
		return scanText(&b.Arguments, value)
	case "text":
		return scanText(&b.Text, value)
	case "by":
		return scanText(&b.By, value)
	case "why":
		return scanText(&b.Why, value)
	case "at":
		return scanInt(&b.At, value)
	}
	return errUnknown
}

func (b *Settled) read(name, value string) error {
	switch name {
	case "id":
		return scanEffect(&b.ID, value)
	case "outcome":
		return scanWord(&b.Outcome, value, ToolFailed, Unknown, NotExecuted, Pending, AsksAgain, Rejected, Decreed, Dropped)
	case "output":
		return scanItem(&b.Output, value)
	case "error":
		return scanText(&b.Error, value)
	case "late":
		return scanFlag(&b.Late, value)
	case "running":
		return scanFlag(&b.Running, value)
	case "checks":
		return scanObjects(&b.Checks, value)
	}
	return errUnknown
}

func (b *Expired) read(name, value string) error {
	switch name {
	case "id":
		return scanEffect(&b.Call, value)
	case "stage":
		return scanInt(&b.Stage, value)
	}
	return errUnknown
}

func (b *Judged) read(name, value string) error {
	switch name {
	case "n":
		return scanInt(&b.N, value)
	case "final":
		return scanFlag(&b.Final, value)
	case "text":
		return scanText(&b.Text, value)
	}
	return errUnknown
}

func (b *Confirmed) read(name, value string) error {
	switch name {
	case "n":
		return scanInt(&b.N, value)
	case "upto":
		return scanInt(&b.Upto, value)
	case "found":
		return scanFlag(&b.Found, value)
	}
	return errUnknown
}

func (b *Absent) read(name, value string) error {
	if name == "id" {
		return scanEffect(&b.ID, value)
	}
	return errUnknown
}

func (b *Failed) read(name, value string) error {
	switch name {
	case "id":
		return scanEffect(&b.ID, value)
	case "code":
		return scanText(&b.Code, value)
	case "error":
		return scanText(&b.Error, value)
	case "unknown":
		return scanFlag(&b.Unknown, value)
	case "retry":
		return scanInt(&b.RetryAt, value)
	}
	return errUnknown
}

func (b *Fired) read(name, value string) error {
	if name == "id" {
		return scanEffect(&b.ID, value)
	}
	return errUnknown
}

func (b *Cancelled) read(name, value string) error {
	switch name {
	case "by":
		return scanText(&b.By, value)
	case "why":
		return scanText(&b.Why, value)
	case "successor":
		return scanText(&b.Successor, value)
	}
	return errUnknown
}

func (b *Finished) read(name, value string) error {
	switch name {
	case "cancelled":
		return scanFlag(&b.Cancelled, value)
	case "tripped":
		return scanFlag(&b.Tripped, value)
	case "at":
		return scanInt(&b.At, value)
	case "text":
		return scanText(&b.Text, value)
	}
	return errUnknown
}
