package schema

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// digestVersion changes when equal schemas could get another digest than before.
const digestVersion = "v1"

// digest identifies what a schema accepts: annotations removed, sets sorted, canonical form, SHA-256.
func digest(doc value) string {
	canonical, err := jsonscan.AppendCanonical(nil, essence(doc).String(), jsonscan.MaxDepth)
	if err != nil {
		canonical = essence(doc).append(nil) // text that two readers read differently is identified as it is written
	}
	sum := sha256.Sum256(canonical)
	return digestVersion + ":" + base64.RawURLEncoding.EncodeToString(sum[:])
}

func essence(v value) value {
	if v.kind != objectValue {
		return v
	}
	v = v.without("title", "description", "examples", "$comment")
	for _, set := range []string{"type", "required", "enum"} {
		if s, ok := v.get(set); ok && s.kind == arrayValue {
			v = v.with(set, sorted(s))
		}
	}
	v, _ = mapSchemas(v, func(_ string, sub value) (value, error) { return essence(sub), nil })
	return v
}

func sorted(set value) value {
	set.elements = slices.SortedFunc(slices.Values(set.elements), func(a, b value) int {
		return strings.Compare(a.String(), b.String())
	})
	return set
}
