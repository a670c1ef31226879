package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

var (
	goodName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	badRune  = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
)

// maxName is how long the name of a function may be.
const maxName = 64

// name is what the model calls a tool. Where a name would not be its own any more, because it was
// cut or has what a model server refuses, a digest of what it was follows.
func (s *Server) name(of string) string {
	if !s.opts.Prefix && goodName.MatchString(of) {
		return of
	}
	name := badRune.ReplaceAllString(of, "_")
	changed := name != of || of == ""
	if s.opts.Prefix {
		name = "mcp_" + badRune.ReplaceAllString(s.label, "_") + "__" + name
	}
	if !changed && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(s.label + "\x00" + of))
	digest := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(digest))] + digest
}
