package pawl

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// ErrSeal: a sealed state is not one, was cut short or edited, or was sealed with a key that
// was not given.
var ErrSeal = errors.New("pawl: the seal of the run state does not hold")

// MinSealKey is the length of the shortest key that Seal and OpenRunState take, in bytes.
const MinSealKey = 32

// A sealed state is sealPrefix, the key's id, the document and the seal with a dot between
// them, the last three in base64url without padding. All of it is cookie-safe and URL-safe text.
const (
	sealPrefix = "pawlseal1."
	// sealKeyID is what a key's id is the seal of; no sealed state begins like that.
	sealKeyID  = "pawl-seal-key/1"
	keyIDBytes = 8
)

var sealEncoding = base64.RawURLEncoding.Strict()

// maxSealed is the length of the longest sealed state.
var maxSealed = len(sealPrefix) + sealEncoding.EncodedLen(keyIDBytes) + sealEncoding.EncodedLen(MaxStateBytes) +
	sealEncoding.EncodedLen(sha256.Size) + 2

// Seal writes the state for a way on which it must not be changed, for example a cookie, a
// browser or a queue of somebody else: the document that MarshalJSON writes, and an
// HMAC-SHA-256 over it (RFC 2104) with a secret key of at least MinSealKey random bytes. It is
// text of the characters A-Z a-z 0-9 - _ and the dot.
//
// A seal says that whoever has the key wrote the state. It hides nothing, it does not say for
// whom the state is, and an older sealed state stays good: with a store the ledger knows better
// (ErrConflict, ErrDecided), without one the same decisions could be taken twice.
//
// The error is a *ConfigError for a short key, else that of MarshalJSON.
func (s *RunState) Seal(key []byte) ([]byte, error) {
	if err := checkSealKey(key); err != nil {
		return nil, err
	}
	doc, err := s.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if len(doc) > MaxStateBytes {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrState, MaxStateBytes)
	}
	sealed := make([]byte, 0, len(sealPrefix)+sealEncoding.EncodedLen(len(doc))+64)
	sealed = append(sealed, sealPrefix+keyID(key)+"."...)
	sealed = sealEncoding.AppendEncode(sealed, doc)
	seal := sealOf(key, sealed)
	return append(append(sealed, '.'), seal...), nil
}

// OpenRunState reads what Seal wrote with one of the keys. Several keys let a key be replaced:
// seal with the new one, and open with both until no state with the old one is under way.
//
// ErrSeal for anything else, an edited, shortened or unsealed document among it, and nothing of it
// has been read then; *ConfigError for a short key or none; the errors of ParseRunState for a
// document that was sealed and cannot be read here.
func OpenRunState(sealed []byte, keys ...[]byte) (*RunState, error) {
	if len(keys) == 0 {
		return nil, &ConfigError{Field: "OpenRunState", Problem: "there is no key"}
	}
	for _, key := range keys {
		if err := checkSealKey(key); err != nil {
			return nil, err
		}
	}
	if len(sealed) > maxSealed {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrSeal, maxSealed)
	}
	doc, err := unseal(sealed, keys)
	if err != nil {
		return nil, err
	}
	return ParseRunState(doc)
}

// unseal returns the document of a sealed state. The seal covers the text as it stands, so that
// nothing is decoded before it holds.
func unseal(sealed []byte, keys [][]byte) ([]byte, error) {
	if !bytes.HasPrefix(sealed, []byte(sealPrefix)) {
		return nil, fmt.Errorf("%w: it is not a sealed state of this version", ErrSeal)
	}
	end := bytes.LastIndexByte(sealed, '.')
	covered, seal := sealed[:end], sealed[end+1:]
	id, text, ok := bytes.Cut(sealed[len(sealPrefix):max(end, len(sealPrefix))], []byte("."))
	if !ok {
		return nil, fmt.Errorf("%w: it is cut short", ErrSeal)
	}
	for _, key := range keys {
		if keyID(key) != string(id) {
			continue
		}
		if !hmac.Equal(seal, []byte(sealOf(key, covered))) {
			return nil, fmt.Errorf("%w: it was edited or cut short", ErrSeal)
		}
		doc, err := sealEncoding.AppendDecode(nil, text)
		if err != nil {
			return nil, because(ErrSeal, err)
		}
		return doc, nil
	}
	return nil, fmt.Errorf("%w: it was sealed with another key", ErrSeal)
}

func checkSealKey(key []byte) error {
	if len(key) < MinSealKey {
		return &ConfigError{Field: "Seal", Problem: fmt.Sprintf("the key has %d bytes, %d random ones are the least", len(key), MinSealKey)}
	}
	return nil
}

// keyID names a key without telling it.
func keyID(key []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(sealKeyID))
	return sealEncoding.EncodeToString(h.Sum(nil)[:keyIDBytes])
}

func sealOf(key, covered []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write(covered)
	return sealEncoding.EncodeToString(h.Sum(nil))
}
