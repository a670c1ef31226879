package journal

import (
	"fmt"
	"strconv"
	"strings"
)

// EffectKind is the kind of an effect, one letter.
type EffectKind byte

// The kinds of effects that have an address in the ledger.
const (
	EffectLoad      EffectKind = 'l' // read the session's history
	EffectPrepare   EffectKind = 'p' // make a turn's request
	EffectModel     EffectKind = 'm' // call the model
	EffectPlan      EffectKind = 'c' // classify a response
	EffectTool      EffectKind = 't' // run a tool's body
	EffectJudge     EffectKind = 'j' // custom tool-use behaviour
	EffectSession   EffectKind = 's' // append a batch to the session
	EffectReconcile EffectKind = 'r' // find out what became of an effect
	EffectWait      EffectKind = 'w' // wait until a time
	EffectEnter     EffectKind = 'e' // make the input of a nested run
	EffectLeave     EffectKind = 'v' // make a call's output of a nested run
	EffectTransfer  EffectKind = 'x' // hand the conversation to another agent
	EffectGuard     EffectKind = 'g' // guardrails on the input
	EffectOutput    EffectKind = 'o' // guardrails on the candidate of the final output
	EffectCheck     EffectKind = 'k' // guardrails on a call
	EffectHandle    EffectKind = 'h' // turn an error into a final output
)

// effectKinds are the letters of all kinds.
const effectKinds = "lpmctjsrwevxgokh"

// EffectID is where an effect occurs in its frame: ordinal N (of the turn, response
// or batch, from 1), position P (of a call among the response's items, from 0) and
// attempt A (from 1). It is the in-flight key, an engine's activity id and the
// address of the outcome. Without the attempt it is what the idempotency key is
// derived from.
type EffectID struct {
	N, P, A int
	Kind    EffectKind // last, so that there is no gap in what is hashed: ids are keys
}

// String returns the id as it stands in the ledger, for example "t3.1.1".
func (id EffectID) String() string { return string(id.Append(nil)) }

// Append appends what String returns.
func (id EffectID) Append(dst []byte) []byte {
	dst = append(dst, byte(id.Kind))
	dst = strconv.AppendInt(dst, int64(id.N), 10)
	dst = append(dst, '.')
	dst = strconv.AppendInt(dst, int64(id.P), 10)
	dst = append(dst, '.')
	return strconv.AppendInt(dst, int64(id.A), 10)
}

// ParseEffectID reads what String wrote, and nothing else.
func ParseEffectID(s string) (EffectID, error) {
	if s == "" || !strings.Contains(effectKinds, s[:1]) {
		return EffectID{}, fmt.Errorf("pawl: %q is not an effect id", s)
	}
	id := EffectID{Kind: EffectKind(s[0])}
	n, rest, _ := strings.Cut(s[1:], ".")
	p, a, _ := strings.Cut(rest, ".")
	for _, part := range []struct {
		digits string
		v      *int
	}{{n, &id.N}, {p, &id.P}, {a, &id.A}} {
		v, err := strconv.ParseUint(part.digits, 10, 31)
		if err != nil || part.digits != strconv.FormatUint(v, 10) {
			return EffectID{}, fmt.Errorf("pawl: %q is not an effect id", s)
		}
		*part.v = int(v)
	}
	return id, nil
}
