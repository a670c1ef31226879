package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// MaxPayload is the longest payload a reader accepts, in bytes. Drivers refuse to
// store a longer one, so that what was stored can be read.
const MaxPayload = 1 << 29

// version is the encoding's version of every kind. When a kind gets a new one, the
// reader of the old one stays.
const version = 1

// onStack is the size up to which a fact is encoded without a buffer on the heap.
const onStack = 2048

// Encode returns the fact as it is stored. The caller draws the salt once, from a
// cryptographic source, and repeats an append with the same record. Texts must be
// valid UTF-8: each byte that is not becomes U+FFFD. Items are embedded as their
// bytes, unchanged; a list must not hold the zero Item.
func Encode(f Fact, salt [16]byte) Record {
	return EncodeAll([]Fact{f}, salt[:])[0]
}

// EncodeAll is Encode for facts that are appended together. Their salts stand one behind
// the other in salts; their payloads share memory.
func EncodeAll(facts []Fact, salts []byte) []Record {
	recs := make([]Record, len(facts))
	var space [2 * onStack]byte
	leaves := space[:0] // one behind the other, as they are hashed
	var few [8][2]int
	payloads, size := few[:0], 0 // where they stand in the leaves
	for i := range facts {
		f, r := &facts[i], &recs[i]
		*r = Record{Version: version, Frame: f.Frame, Time: f.Time, Salt: [16]byte(salts[16*i:])}
		if f.Body != nil {
			r.Kind = f.Body.Kind()
		}
		leaf := len(leaves)
		leaves = appendLeafHead(leaves, r, 0)
		start := len(leaves)
		leaves = AppendPayload(leaves, f.Body)
		end := len(leaves)
		binary.BigEndian.PutUint64(leaves[start-8:], uint64(end-start))
		r.Hash = sha256.Sum256(leaves[leaf:])
		payloads, size = append(payloads, [2]int{start, end}), size+end-start
	}
	var text strings.Builder
	text.Grow(size)
	for i, p := range payloads {
		text.Write(leaves[p[0]:p[1]])
		recs[i].Payload = text.String()[text.Len()-(p[1]-p[0]):]
	}
	return recs
}

// Decode reads what Encode wrote and accepts nothing else: the fact it returns
// encodes to the same payload. It checks the items as item.Parse does, but not the
// hash; see Verify. The fact shares memory with the payload.
//
// The error wraps ErrNewerJournal if the kind, the version, a member or one of the
// words with a fixed meaning is not known here, and ErrCorrupt if the payload is
// damaged.
func Decode(r Record) (Fact, error) {
	body := newBody(r.Kind)
	if body == nil || r.Version != version {
		return Fact{}, fmt.Errorf("%w: fact %q, version %d", ErrNewerJournal, r.Kind, r.Version)
	}
	if err := readPayload(body, r.Payload); err != nil {
		return Fact{}, fmt.Errorf("%w (fact %q)", err, r.Kind)
	}
	return Fact{Frame: r.Frame, Time: r.Time, Body: body}, nil
}

func readPayload(b readable, payload string) error {
	if len(payload) > MaxPayload {
		return fmt.Errorf("%w: payload of %d bytes", ErrCorrupt, len(payload))
	}
	err := scanMembers(payload, b.read)
	if errors.Is(err, errUnknown) {
		return fmt.Errorf("%w: %w", ErrNewerJournal, err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	var space [onStack]byte
	if string(AppendPayload(space[:0], b)) != payload {
		return fmt.Errorf("%w: payload not in the form it is written in", ErrCorrupt)
	}
	return nil
}
