package journal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// LeafHash returns the hash of the record's content: SHA-256 over a zero byte, the
// salt, and kind, version, frame, time and payload, where a text is its length and
// its bytes, and lengths and numbers are 8 bytes, big-endian. The zero byte makes
// it a leaf of the tree of RFC 6962, section 2.1; the salt keeps a published hash
// from revealing content that can be guessed.
func LeafHash(r *Record) [32]byte {
	var space [onStack]byte
	leaf := appendLeafHead(space[:0], r, len(r.Payload))
	return sha256.Sum256(append(leaf, r.Payload...))
}

// appendLeafHead appends what is hashed before the payload.
func appendLeafHead(dst []byte, r *Record, payload int) []byte {
	dst = append(dst, 0)
	dst = append(dst, r.Salt[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(len(r.Kind)))
	dst = append(dst, r.Kind...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.Version))
	dst = binary.BigEndian.AppendUint64(dst, uint64(len(r.Frame)))
	dst = append(dst, r.Frame...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.Time))
	return binary.BigEndian.AppendUint64(dst, uint64(payload))
}

// Verify reports whether the record is what was hashed when it was encoded. The
// error wraps ErrCorrupt.
func (r Record) Verify() error {
	if LeafHash(&r) != r.Hash {
		return fmt.Errorf("%w: fact %q does not have its hash", ErrCorrupt, r.Kind)
	}
	return nil
}

// AppendRecordJSON appends the record as a JSON object:
//
//	{"k":kind,"v":version,"f":frame,"t":milliseconds,"s":salt,"h":hash,"p":payload}
//
// Version 1 and an empty frame are left out; salt and hash are base64url without
// padding. The payload is JSON, and stands there as text: its bytes are hashed, and
// documents pass through tools that reformat what is not a string.
func AppendRecordJSON(dst []byte, r *Record) []byte {
	dst = append(dst, `{"k":`...)
	dst = jsonscan.AppendString(dst, string(r.Kind))
	if r.Version != 1 {
		dst = append(dst, `,"v":`...)
		dst = strconv.AppendInt(dst, int64(r.Version), 10)
	}
	if r.Frame != "" {
		dst = append(dst, `,"f":`...)
		dst = jsonscan.AppendString(dst, r.Frame)
	}
	dst = append(dst, `,"t":`...)
	dst = strconv.AppendInt(dst, r.Time, 10)
	dst = append(dst, `,"s":"`...)
	dst = base64.RawURLEncoding.AppendEncode(dst, r.Salt[:])
	dst = append(dst, `","h":"`...)
	dst = base64.RawURLEncoding.AppendEncode(dst, r.Hash[:])
	dst = append(dst, `","p":`...)
	dst = jsonscan.AppendString(dst, r.Payload)
	return append(dst, '}')
}

// ReadRecordJSON reads what AppendRecordJSON wrote and verifies the hash. The
// record shares no memory with value. The error wraps ErrNewerJournal if there is a
// member that is not known here, else ErrCorrupt, also for a member that is there twice.
func ReadRecordJSON(value []byte) (Record, error) {
	r := Record{Version: 1}
	err := jsonscan.UniqueObject(string(value), func(key, value string) error {
		switch key {
		case "k":
			return scanText((*string)(&r.Kind), value)
		case "v":
			return scanInt(&r.Version, value)
		case "f":
			return scanText(&r.Frame, value)
		case "t":
			return scanInt(&r.Time, value)
		case "s":
			return scanBytes(r.Salt[:], value)
		case "h":
			return scanBytes(r.Hash[:], value)
		case "p":
			return scanText(&r.Payload, value)
		}
		return fmt.Errorf("%w: member %q of a record", ErrNewerJournal, key)
	})
	if errors.Is(err, ErrNewerJournal) {
		return Record{}, err
	}
	if err != nil {
		return Record{}, fmt.Errorf("%w: record: %w", ErrCorrupt, err)
	}
	if err := r.Verify(); err != nil {
		return Record{}, err
	}
	return r, nil
}
