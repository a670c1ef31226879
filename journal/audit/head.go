// Package audit makes evidence of a run's ledger: a head that stands for it, an export that
// people and programs can read, and proofs of single calls that anybody can check without the
// ledger. docs/spec.md S10 has the forms, docs/audit.md what they are worth.
//
// It works on records as journal.Driver.Read returns them. All functions are safe for concurrent
// use.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/merkle"
)

// The schemas of the documents.
const (
	HeadSchema  = "pawl.head/1"
	ProofSchema = "pawl.proof/1"
)

// Errors of the package.
var (
	// ErrMismatch: the ledger is not the one that the head was taken of: it was edited,
	// cut short, put in another order or replaced.
	ErrMismatch = errors.New("pawl: the ledger is not the one of the head")
	// ErrAnchor: a text is no head.
	ErrAnchor = errors.New("pawl: this is no head of a ledger")
	// ErrNoCall: the run has no such call.
	ErrNoCall = errors.New("pawl: the run has no such call")
)

// Head stands for the first records of a run's ledger.
type Head struct {
	Run string
	// Size is the number of records.
	Size uint64
	// Root is the root of their Merkle tree.
	Root merkle.Hash
}

// Hash returns the hash of all of it. It is what is worth keeping elsewhere: nobody can find
// another run, size or ledger with it.
func (h Head) Hash() merkle.Hash {
	text := append(make([]byte, 0, 256), 2) // leaves begin with 0, nodes with 1
	text = binary.BigEndian.AppendUint64(text, uint64(len(h.Run)))
	text = append(text, h.Run...)
	text = binary.BigEndian.AppendUint64(text, h.Size)
	return sha256.Sum256(append(text, h.Root[:]...))
}

// headJSON is the JSON object of a head.
type headJSON struct {
	Schema string `json:"schema"`
	Run    string `json:"run"`
	Size   uint64 `json:"size"`
	Root   string `json:"root"`
	Head   string `json:"head"`
}

// MarshalJSON writes the head as one line, its hash included.
func (h Head) MarshalJSON() ([]byte, error) {
	hash := h.Hash()
	return marshal(headJSON{HeadSchema, h.Run, h.Size, hex.EncodeToString(h.Root[:]), hex.EncodeToString(hash[:])}, "")
}

// UnmarshalJSON reads what MarshalJSON wrote, with any white space. The error wraps ErrAnchor if
// it is something else, or if the hash is not that of the other members.
func (h *Head) UnmarshalJSON(text []byte) error {
	var j headJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("%w: %w", ErrAnchor, err)
	}
	root, err := ParseHash(j.Root)
	if err != nil || j.Schema != HeadSchema {
		return fmt.Errorf("%w: schema %q, root %q", ErrAnchor, j.Schema, j.Root)
	}
	read := Head{Run: j.Run, Size: j.Size, Root: root}
	again, err := read.MarshalJSON()
	var given bytes.Buffer
	if err := errors.Join(err, json.Compact(&given, text)); err != nil {
		return fmt.Errorf("%w: %w", ErrAnchor, err)
	}
	if !bytes.Equal(again, given.Bytes()) {
		return fmt.Errorf("%w: its hash is not that of its run, size and root, or it has other members", ErrAnchor)
	}
	*h = read
	return nil
}

// ParseHash reads a hash of 64 hexadecimal digits.
func ParseHash(text string) (merkle.Hash, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != sha256.Size {
		return merkle.Hash{}, fmt.Errorf("%w: %.80q is not 64 hexadecimal digits", ErrAnchor, text)
	}
	return merkle.Hash(b), nil
}

// Anchor is a head as it was kept elsewhere: whole, or only its hash.
type Anchor struct {
	Hash merkle.Hash
	// Head is nil if only the hash was kept.
	Head *Head
}

// ParseAnchor reads a head that was kept: its JSON, a whole export, of which the last line is
// the head, or only its hash in hexadecimal. The error wraps ErrAnchor.
func ParseAnchor(text []byte) (Anchor, error) {
	text = bytes.TrimSpace(text)
	text = bytes.TrimSpace(text[bytes.LastIndexByte(text, '\n')+1:])
	if len(text) == 0 || text[0] != '{' {
		hash, err := ParseHash(string(text))
		return Anchor{Hash: hash}, err
	}
	var h Head
	if err := h.UnmarshalJSON(text); err != nil {
		return Anchor{}, err
	}
	return Anchor{Hash: h.Hash(), Head: &h}, nil
}

// HeadOf returns the head of a run's ledger. It recomputes every leaf from its content: the
// error wraps journal.ErrCorrupt and names the first record that is not what its hash says, or
// says that the ledger is of another run.
func HeadOf(run string, records []journal.Record) (Head, error) {
	l, err := read(run, records)
	if err != nil {
		return Head{}, err
	}
	return l.head(len(l.leaves)), nil
}

// Verify finds the beginning of the ledger that the anchor is the head of, and returns it: all of
// the ledger, or less if it has grown since. The error wraps ErrMismatch if there is none, and
// journal.ErrCorrupt too if a record is not what its hash says; it is journal.ErrNewerJournal if a newer
// version wrote the ledger.
func Verify(run string, records []journal.Record, anchor Anchor) (Head, error) {
	l, err := read(run, records)
	switch {
	case errors.Is(err, journal.ErrNewerJournal):
		return Head{}, err
	case err != nil:
		return Head{}, fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	return l.find(anchor)
}

// ledger is a ledger whose records are what their hashes say.
type ledger struct {
	run    string
	facts  []journal.Fact
	recs   []journal.Record
	leaves []merkle.Hash
}

func read(run string, records []journal.Record) (*ledger, error) {
	l := &ledger{run: run, recs: records, facts: make([]journal.Fact, len(records)), leaves: make([]merkle.Hash, len(records))}
	name := ""
	for i, rec := range records {
		if err := rec.Verify(); err != nil {
			return nil, fmt.Errorf("fact %d: %w", i+1, err)
		}
		f, err := journal.Decode(rec)
		if err != nil {
			return nil, fmt.Errorf("fact %d: %w", i+1, err)
		}
		l.facts[i], l.leaves[i] = f, rec.Hash
		name = runAfter(name, f)
	}
	if name != run {
		return nil, fmt.Errorf("%w: it is the ledger of run %q, not of %q", journal.ErrCorrupt, name, run)
	}
	return l, nil
}

// runAfter returns the run that a ledger is of after a fact: a fork is a run of its own.
func runAfter(run string, f journal.Fact) string {
	switch b := f.Body.(type) {
	case *journal.Started:
		if f.Frame == "" {
			return b.Run
		}
	case *journal.Forked:
		if f.Frame == "" {
			return b.Run
		}
	}
	return run
}

// head returns the head of the first records.
func (l *ledger) head(size int) Head {
	return Head{Run: l.run, Size: uint64(size), Root: merkle.Root(l.leaves[:size])}
}

// find returns the head of the beginning that the anchor is of.
func (l *ledger) find(a Anchor) (Head, error) {
	if h := a.Head; h != nil {
		switch {
		case h.Run != l.run:
			return Head{}, fmt.Errorf("%w: the head is of run %q, the ledger of %q", ErrMismatch, h.Run, l.run)
		case h.Size > uint64(len(l.leaves)):
			return Head{}, fmt.Errorf("%w: it has %d facts, the head %d; it was cut short or replaced", ErrMismatch, len(l.leaves), h.Size)
		case l.head(int(h.Size)) != *h:
			return Head{}, fmt.Errorf("%w: its first %d facts are others; it was edited, put in another order or replaced", ErrMismatch, h.Size)
		}
		return *h, nil
	}
	var tree merkle.Tree
	for size := 0; ; size++ {
		if h := (Head{Run: l.run, Size: tree.Size(), Root: tree.Root()}); h.Hash() == a.Hash {
			return h, nil
		}
		if size == len(l.leaves) {
			return Head{}, fmt.Errorf("%w: no beginning of its %d facts has it; it was edited, cut short, put in another order or replaced", ErrMismatch, size)
		}
		tree.Append(l.leaves[size])
	}
}

// marshal is json.MarshalIndent without escapes for HTML.
func marshal(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
