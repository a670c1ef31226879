package journal

import (
	"encoding/base64"
	"strconv"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
)

// AppendPayload appends the JSON object of a body: members in a fixed order, no
// white space, zero values left out.
func AppendPayload(dst []byte, b Body) []byte {
	return append(appendBody(append(dst, '{'), b), '}')
}

func appendBody(dst []byte, b Body) []byte {
	switch b := b.(type) {
	case *Started:
		return appendStarted(dst, b)
	case *Forked:
		dst = appendText(dst, "run", b.Run)
		return appendSession(dst, b.Session)
	case *Claimed:
		dst = appendUint(dst, "epoch", b.Epoch)
		dst = appendOwner(dst, &b.Owner)
		return appendFlag(dst, "gone", b.Gone)
	case *Resumed:
		dst = appendInt(dst, "turns", int64(b.MaxTurns))
		return appendText(dst, "ctx", b.Context)
	case *Loaded:
		dst = appendItems(dst, "items", b.Items)
		dst = appendItems(dst, "healed", b.Healed)
		return appendView(dst, b.View)
	case *Prepared:
		return appendPrepared(dst, b)
	case *Intended:
		dst = appendEffect(dst, "id", b.ID)
		dst = appendInt(dst, "upto", int64(b.Upto))
		return appendInt(dst, "until", b.NotAfter)
	case *Responded:
		return appendResponded(dst, b)
	case *Planned:
		return appendPlanned(dst, b)
	case *Decided:
		return appendDecided(dst, b)
	case *Settled:
		return appendSettled(dst, b)
	case *Expired:
		dst = appendEffect(dst, "id", b.Call)
		return appendInt(dst, "stage", int64(b.Stage))
	case *Judged:
		dst = appendInt(dst, "n", int64(b.N))
		dst = appendFlag(dst, "final", b.Final)
		return appendText(dst, "text", b.Text)
	case *Confirmed:
		dst = appendInt(dst, "n", int64(b.N))
		dst = appendInt(dst, "upto", int64(b.Upto))
		return appendFlag(dst, "found", b.Found)
	case *Absent:
		return appendEffect(dst, "id", b.ID)
	case *Failed:
		return appendFailed(dst, b)
	case *Fired:
		return appendEffect(dst, "id", b.ID)
	case *Transferred:
		return appendTransferred(dst, b)
	case *Checked:
		return appendChecked(dst, b)
	case *Handled:
		return appendHandled(dst, b)
	case *Added:
		return appendAdded(dst, b)
	case *Admitted:
		return appendInt(dst, "n", int64(b.N))
	case *Observed:
		return appendUint(dst, "n", b.N)
	case *Cancelled:
		dst = appendText(dst, "by", b.By)
		dst = appendText(dst, "why", b.Why)
		return appendText(dst, "successor", b.Successor)
	case *Finished:
		dst = appendFlag(dst, "cancelled", b.Cancelled)
		dst = appendFlag(dst, "tripped", b.Tripped)
		dst = appendInt(dst, "at", int64(b.At))
		return appendText(dst, "text", b.Text)
	}
	return dst
}

func appendStarted(dst []byte, b *Started) []byte {
	dst = appendText(dst, "run", b.Run)
	dst = appendText(dst, "agent", b.Agent)
	dst = appendDigest(dst, "digest", &b.Digest)
	dst = appendItems(dst, "input", b.Input)
	dst = appendSession(dst, b.Session)
	dst = appendText(dst, "conv", b.Conversation)
	dst = appendText(dst, "prev", b.Previous)
	dst = appendFlag(dst, "auto", b.Auto)
	dst = appendInt(dst, "turns", int64(b.MaxTurns))
	dst = appendInt(dst, "parallel", int64(b.Parallel))
	dst = appendFlag(dst, "unique", b.UniqueCallIDs)
	dst = appendText(dst, "guards", string(b.Guards))
	dst = appendFlag(dst, "omitids", b.OmitReasoningIDs)
	dst = appendText(dst, "ctx", b.Context)
	dst = appendText(dst, "queue", b.Queue)
	dst = appendInt(dst, "priority", int64(b.Priority))
	dst = appendInt(dst, "due", b.Due)
	return appendInt(dst, "machine", int64(b.Machine))
}

func appendSession(dst []byte, s *SessionRef) []byte {
	if s == nil {
		return dst
	}
	dst = append(appendName(dst, "session"), '{')
	dst = appendText(dst, "id", s.ID)
	dst = appendText(dst, "backend", s.Backend)
	dst = appendFlag(dst, "own", s.Own)
	dst = appendFlag(dst, "batches", s.Batches)
	return append(dst, '}')
}

func appendOwner(dst []byte, o *Owner) []byte {
	if *o == (Owner{}) {
		return dst
	}
	dst = append(appendName(dst, "owner"), '{')
	dst = appendText(dst, "host", o.Host)
	dst = appendText(dst, "boot", o.Boot)
	dst = appendInt(dst, "pid", int64(o.PID))
	dst = appendText(dst, "start", o.Start)
	return append(dst, '}')
}

func appendPrepared(dst []byte, b *Prepared) []byte {
	dst = appendInt(dst, "n", int64(b.N))
	dst = appendInt(dst, "upto", int64(b.Upto))
	if b.Manifest != nil {
		dst = append(appendName(dst, "manifest"), '{')
		dst = append(appendManifest(dst, b.Manifest), '}')
	}
	dst = appendInt(dst, "same", int64(b.Same))
	return appendView(dst, b.View)
}

func appendManifest(dst []byte, m *Manifest) []byte {
	dst = appendText(dst, "agent", m.Agent)
	dst = appendText(dst, "instr", m.Instructions)
	dst = appendText(dst, "prompt", m.Prompt)
	dst = appendText(dst, "settings", m.Settings)
	dst = appendTools(dst, m.Tools)
	dst = appendText(dst, "use", m.ToolUse)
	if len(m.StopAt) > 0 {
		dst = append(appendName(dst, "stop"), '[')
		for _, name := range m.StopAt {
			dst = jsonscan.AppendString(appendComma(dst), name)
		}
		dst = append(dst, ']')
	}
	dst = appendText(dst, "output", m.Output)
	dst = appendFlag(dst, "guardsin", m.GuardsInput)
	dst = appendFlag(dst, "guardsout", m.GuardsOutput)
	return appendHandles(dst, m.Handles)
}

func appendTools(dst []byte, tools []ToolSpec) []byte {
	if len(tools) == 0 {
		return dst
	}
	dst = append(appendName(dst, "tools"), '[')
	for i := range tools {
		dst = append(appendComma(dst), '{')
		dst = append(appendTool(dst, &tools[i]), '}')
	}
	return append(dst, ']')
}

func appendTool(dst []byte, t *ToolSpec) []byte {
	dst = appendText(dst, "name", t.Name)
	dst = appendText(dst, "id", t.Identity)
	dst = appendText(dst, "class", string(t.Class))
	dst = appendInt(dst, "timeout", t.Timeout)
	dst = appendText(dst, "unknown", string(t.OnUnknown))
	dst = appendFlag(dst, "recover", t.Recover)
	dst = appendInt(dst, "expires", t.Expires)
	dst = appendFlag(dst, "expiryfails", t.ExpiryFails)
	dst = appendText(dst, "agent", t.Agent)
	dst = appendFlag(dst, "tellfailure", t.TellFailure)
	dst = appendText(dst, "handoff", t.Handoff)
	dst = appendFlag(dst, "guarded", t.Guarded)
	return appendFlag(dst, "hosted", t.Hosted)
}

func appendResponded(dst []byte, b *Responded) []byte {
	dst = appendEffect(dst, "id", b.ID)
	dst = appendText(dst, "resp", b.ResponseID)
	dst = appendText(dst, "req", b.RequestID)
	dst = appendItems(dst, "items", b.Items)
	u := b.Usage
	if u == nil {
		return dst
	}
	dst = append(appendName(dst, "usage"), '{')
	dst = appendInt(dst, "in", u.Input)
	dst = appendInt(dst, "cached", u.Cached)
	dst = appendInt(dst, "out", u.Output)
	dst = appendInt(dst, "reason", u.Reasoning)
	dst = appendInt(dst, "total", u.Total)
	dst = appendText(dst, "raw", u.Raw)
	return append(dst, '}')
}

func appendPlanned(dst []byte, b *Planned) []byte {
	dst = appendInt(dst, "n", int64(b.N))
	if len(b.Calls) > 0 {
		dst = append(appendName(dst, "calls"), '[')
		for i := range b.Calls {
			dst = append(appendComma(dst), '{')
			dst = append(appendCall(dst, &b.Calls[i]), '}')
		}
		dst = append(dst, ']')
	}
	dst = appendTools(dst, b.Tools)
	dst = appendText(dst, "final", string(b.Final))
	dst = appendInt(dst, "at", int64(b.FinalAt))
	return appendText(dst, "refusal", b.Refusal)
}

func appendCall(dst []byte, c *PlannedCall) []byte {
	dst = appendInt(dst, "p", int64(c.P))
	dst = appendInt(dst, "tool", int64(c.Tool))
	dst = appendDigest(dst, "digest", &c.Digest)
	dst = appendText(dst, "gate", string(c.Gate))
	dst = appendFlag(dst, "bad", c.Unreadable)
	dst = appendFlag(dst, "twin", c.Twin)
	dst = appendItem(dst, "output", c.Output)
	dst = appendText(dst, "reject", c.Reject)
	return appendChecks(dst, c.Checks)
}

func appendDecided(dst []byte, b *Decided) []byte {
	dst = appendEffect(dst, "id", b.Call)
	dst = appendInt(dst, "stage", int64(b.Stage))
	dst = appendDigest(dst, "digest", &b.Digest)
	dst = appendText(dst, "verdict", string(b.Verdict))
	dst = appendFlag(dst, "sticky", b.Sticky)
	dst = appendText(dst, "args", b.Arguments)
	dst = appendText(dst, "text", b.Text)
	dst = appendText(dst, "by", b.By)
	dst = appendText(dst, "why", b.Why)
	return appendInt(dst, "at", b.At)
}

func appendSettled(dst []byte, b *Settled) []byte {
	dst = appendEffect(dst, "id", b.ID)
	dst = appendText(dst, "outcome", string(b.Outcome))
	dst = appendItem(dst, "output", b.Output)
	dst = appendText(dst, "error", b.Error)
	dst = appendFlag(dst, "late", b.Late)
	dst = appendFlag(dst, "running", b.Running)
	return appendChecks(dst, b.Checks)
}

func appendFailed(dst []byte, b *Failed) []byte {
	dst = appendEffect(dst, "id", b.ID)
	dst = appendText(dst, "code", b.Code)
	dst = appendText(dst, "error", b.Error)
	dst = appendFlag(dst, "unknown", b.Unknown)
	return appendInt(dst, "retry", b.RetryAt)
}

func appendComma(dst []byte) []byte {
	if last := dst[len(dst)-1]; last != '{' && last != '[' {
		return append(dst, ',')
	}
	return dst
}

func appendName(dst []byte, name string) []byte {
	dst = append(appendComma(dst), '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

func appendText(dst []byte, name, s string) []byte {
	if s == "" {
		return dst
	}
	return jsonscan.AppendString(appendName(dst, name), s)
}

func appendInt(dst []byte, name string, n int64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(appendName(dst, name), n, 10)
}

func appendUint(dst []byte, name string, n uint64) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendUint(appendName(dst, name), n, 10)
}

func appendFlag(dst []byte, name string, b bool) []byte {
	if !b {
		return dst
	}
	return append(appendName(dst, name), "true"...)
}

func appendDigest(dst []byte, name string, d *item.Digest) []byte {
	if d.IsZero() {
		return dst
	}
	dst = append(appendName(dst, name), '"')
	dst = base64.RawURLEncoding.AppendEncode(dst, d[:])
	return append(dst, '"')
}

func appendEffect(dst []byte, name string, id EffectID) []byte {
	if id == (EffectID{}) {
		return dst
	}
	dst = append(appendName(dst, name), '"')
	return append(id.Append(dst), '"')
}

func appendItem(dst []byte, name string, it item.Item) []byte {
	if it.IsZero() {
		return dst
	}
	return it.AppendRaw(appendName(dst, name))
}

func appendItems(dst []byte, name string, items []item.Item) []byte {
	if len(items) == 0 {
		return dst
	}
	dst = append(appendName(dst, name), '[')
	for _, it := range items {
		dst = it.AppendRaw(appendComma(dst))
	}
	return append(dst, ']')
}
