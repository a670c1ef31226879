package audit

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/merkle"
)

// Proof shows what the ledger behind a head says of one call: the records that are about it, each
// with its audit path. Its JSON is made by encoding/json from these structs; whoever checks it accepts
// no other. docs/spec.md S10.6 says what a verifier checks; the program cmd/pawl-verify does.
type Proof struct {
	Schema string `json:"schema"`
	Run    string `json:"run"`
	Size   uint64 `json:"size"`
	Root   string `json:"root"` // hexadecimal
	// Call is the call's response and position, for example "3.2".
	Call string `json:"call"`
	// Arguments are those of which the plan has the digest: the model's in canonical form, or as it
	// wrote them if they are unreadable.
	Arguments string       `json:"arguments"`
	Facts     []ProvenFact `json:"facts"`
}

// ProvenFact is a record of the ledger and where it stands.
type ProvenFact struct {
	// Fact is its number, from 1.
	Fact   uint64       `json:"fact"`
	Record ProvenRecord `json:"record"`
	// Path is its audit path, hexadecimal, from the leaf up.
	Path []string `json:"path"`
}

// ProvenRecord is a record as it stands in documents [S8.7], without its hash: a verifier computes
// that.
type ProvenRecord struct {
	Kind    journal.Kind `json:"k"`
	Version int          `json:"v"`
	Frame   string       `json:"f"`
	Time    int64        `json:"t"`
	Salt    string       `json:"s"` // base64url
	Payload string       `json:"p"`
}

// Prove returns the proof of a call against the head of the whole ledger or, if an anchor is given,
// against the one that was kept: of the call's facts those that it covers are in the proof. The records
// are the response that made the call, its plan, what was decided about it (a sticky decision of another
// call among it), and what became of it. Each is there whole: a response and its plan may hold other
// calls too. Nothing else of the ledger is disclosed.
//
// The error wraps ErrNoCall if the run made no such call, or made it before it was forked or after the
// anchor; else it is that of HeadOf or Verify.
func Prove(run string, records []journal.Record, call journal.EffectID, anchor *Anchor) (*Proof, error) {
	l, err := read(run, records)
	if err != nil {
		return nil, err
	}
	head := l.head(len(l.leaves))
	if anchor != nil {
		if head, err = l.find(*anchor); err != nil {
			return nil, err
		}
	}
	facts := l.facts[:head.Size]
	b := newBook()
	for _, f := range facts {
		b.note(f)
	}
	c := b.find(journal.EffectID{Kind: journal.EffectTool, N: call.N, P: call.P})
	switch {
	case c == nil:
		return nil, fmt.Errorf("%w: %s, in its first %d facts", ErrNoCall, nameOf(call), head.Size)
	case c.Run != run:
		return nil, fmt.Errorf("%w: %s was made by run %q, which this one was forked from; prove it there", ErrNoCall, c.Name(), c.Run)
	}
	p := &Proof{Schema: ProofSchema, Run: run, Size: head.Size, Root: hex.EncodeToString(head.Root[:]), Call: c.Name(), Arguments: c.Arguments}
	if canonical, err := item.Canonical(c.Arguments); err == nil {
		p.Arguments = string(canonical)
	}
	for i, f := range facts {
		if f.Frame != "" || !(c.concerns(f.Body) || i+1 == c.covered()) {
			continue
		}
		proven, err := l.prove(i, int(head.Size))
		if err != nil {
			return nil, err
		}
		p.Facts = append(p.Facts, proven)
	}
	return p, nil
}

// concerns reports whether a fact is about the call. Each turn has one response, so the turn of a
// response is its number [M4.1].
func (c *bookCall) concerns(body journal.Body) bool {
	switch b := body.(type) {
	case *journal.Responded:
		return b.ID.N == c.ID.N
	case *journal.Planned:
		return b.N == c.ID.N
	}
	id := effectOf(body)
	return id.Kind == journal.EffectTool && id.N == c.ID.N && id.P == c.ID.P
}

// prove returns the record at an index with its path to the root of the first size.
func (l *ledger) prove(index, size int) (ProvenFact, error) {
	path, err := merkle.Inclusion(l.leaves[:size], index)
	if err != nil {
		return ProvenFact{}, err
	}
	rec := &l.recs[index]
	f := ProvenFact{Fact: uint64(index + 1), Path: make([]string, len(path)), Record: ProvenRecord{Kind: rec.Kind, Version: rec.Version,
		Frame: rec.Frame, Time: rec.Time, Salt: base64.RawURLEncoding.EncodeToString(rec.Salt[:]), Payload: rec.Payload}}
	for i, h := range path {
		f.Path[i] = hex.EncodeToString(h[:])
	}
	return f, nil
}

// Document writes the proof as JSON, indented, without a line feed at the end.
func (p *Proof) Document() ([]byte, error) { return marshal(p, "  ") }
