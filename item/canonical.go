package item

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// Canonical returns the canonical form of tool arguments, in which equal arguments have equal bytes: object members sorted by
// the UTF-8 bytes of their unescaped names, no white space, number literals exactly as the model wrote them (1, 1.0 and 1e0 are
// three different arguments; nothing passes through a float), strings with the fewest escapes. It is its own canonical form.
//
// Arguments that two readers could understand differently have no canonical form: no JSON object, a repeated name, invalid
// UTF-8, a surrogate without its pair, nesting beyond [MaxDepth]. The error wraps [ErrUnreadable]. Empty text is no JSON object
// here; the caller decides what it stands for.
func Canonical(args string) ([]byte, error) {
	canonical, err := jsonscan.AppendCanonical(make([]byte, 0, len(args)), args, MaxDepth)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if canonical[0] != '{' {
		return nil, fmt.Errorf("%w: want a JSON object", ErrUnreadable)
	}
	return canonical, nil
}

// A Digest is the SHA-256 of tool arguments. The zero Digest is of nothing.
type Digest [sha256.Size]byte

// DigestArguments returns the digest of the canonical form of args and that form. If args are unreadable the error wraps
// [ErrUnreadable], canonical is "" and the digest is of the bytes of args as they are, which is the digest of no readable
// arguments: such a call can still be told apart, shown and decided.
func DigestArguments(args string) (d Digest, canonical string, err error) {
	buf, err := Canonical(args)
	if err != nil {
		return sha256.Sum256([]byte(args)), "", err
	}
	if string(buf) == args {
		return sha256.Sum256(buf), args, nil
	}
	return sha256.Sum256(buf), string(buf), nil
}

var digestEncoding = base64.RawURLEncoding.Strict()

// String returns the digest in base64url without padding, 43 characters (RFC 4648, section 5).
func (d Digest) String() string { return digestEncoding.EncodeToString(d[:]) }

// IsZero reports whether d is the zero Digest.
func (d Digest) IsZero() bool { return d == Digest{} }

// ParseDigest is the inverse of [Digest.String]. It accepts exactly what String returns.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != digestEncoding.EncodedLen(len(d)) {
		return Digest{}, fmt.Errorf("pawl: digest of %d characters, want %d", len(s), digestEncoding.EncodedLen(len(d)))
	}
	n, err := digestEncoding.Decode(d[:], []byte(s))
	if err != nil {
		return Digest{}, fmt.Errorf("pawl: digest: %w", err)
	}
	if n != len(d) { // the decoder skips line breaks
		return Digest{}, fmt.Errorf("pawl: digest of %d bytes, want %d", n, len(d))
	}
	return d, nil
}

// MarshalText returns what [Digest.String] returns.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText sets the digest as [ParseDigest] does.
func (d *Digest) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDigest(string(text))
	return err
}
