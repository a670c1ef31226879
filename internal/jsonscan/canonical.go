package jsonscan

import (
	"slices"
	"strings"
)

// AppendCanonical appends the one canonical form of the JSON value in data: no white space, object members sorted by the bytes
// of their unescaped keys in UTF-8, strings as [AppendString] writes them, and numbers exactly as they stand in data, since
// passing them through a float would make different numbers equal.
//
// It refuses, with a [*SyntaxError], what two readers could understand differently: duplicate keys and surrogates without their
// pair, besides all that [Valid] refuses. On error the result is nil.
func AppendCanonical[T Text](dst []byte, data T, maxDepth int) ([]byte, error) {
	dst, end, err := appendCanonicalValue(dst, data, skipSpace(data, 0), maxDepth)
	if err != nil {
		return nil, err
	}
	if err := atEnd(data, end); err != nil {
		return nil, err
	}
	return dst, nil
}

func appendCanonicalValue[T Text](dst []byte, s T, i, depth int) (out []byte, end int, err error) {
	if i < len(s) {
		switch s[i] {
		case '{':
			return appendCanonicalObject(dst, s, i, depth-1)
		case '[':
			return appendCanonicalArray(dst, s, i, depth-1)
		case '"':
			return appendCanonicalString(dst, s, i)
		}
	}
	end, err = skipValue(s, i, 0)
	if err != nil {
		return nil, i, err
	}
	return append(dst, s[i:end]...), end, nil
}

func appendCanonicalArray[T Text](dst []byte, s T, i, depth int) (out []byte, end int, err error) {
	if depth < 0 {
		return nil, i, syntaxError(i, "nested too deeply")
	}
	dst = append(dst, '[')
	i = skipSpace(s, i+1)
	if i < len(s) && s[i] == ']' {
		return append(dst, ']'), i + 1, nil
	}
	for {
		dst, end, err = appendCanonicalValue(dst, s, i, depth)
		if err != nil {
			return nil, end, err
		}
		next, more, err := skipSeparator(s, end, ']')
		if err != nil {
			return nil, next, err
		}
		if !more {
			return append(dst, ']'), next, nil
		}
		dst = append(dst, ',')
		i = next
	}
}

// canonicalMember is a member already written to the output: where, and under which key.
type canonicalMember struct {
	key        string
	start, end int // of key, colon and value in the output
	offset     int // of the key in the input
}

func appendCanonicalObject[T Text](dst []byte, s T, i, depth int) (out []byte, end int, err error) {
	if depth < 0 {
		return nil, i, syntaxError(i, "nested too deeply")
	}
	dst = append(dst, '{')
	open := len(dst)
	i = skipSpace(s, i+1)
	if i < len(s) && s[i] == '}' {
		return append(dst, '}'), i + 1, nil
	}
	var onStack [8]canonicalMember
	members := onStack[:0]
	for {
		m := canonicalMember{start: len(dst), offset: i}
		quoted, escaped, value, err := skipKey(s, i)
		if err != nil {
			return nil, value, err
		}
		if dst, _, err = appendCanonicalString(dst, s, i); err != nil {
			return nil, i, err
		}
		if m.key = string(quoted[1 : len(quoted)-1]); escaped {
			m.key, _ = unescape(quoted[1 : len(quoted)-1])
		}
		if dst, end, err = appendCanonicalValue(append(dst, ':'), s, value, depth); err != nil {
			return nil, end, err
		}
		m.end = len(dst)
		members = append(members, m)
		next, more, err := skipSeparator(s, end, '}')
		if err != nil {
			return nil, next, err
		}
		if !more {
			dst, err = closeObject(dst, open, members)
			return dst, next, err
		}
		dst = append(dst, ',')
		i = next
	}
}

// closeObject puts the members, written to dst from open on as they came, into the order of their keys and closes the object.
func closeObject(dst []byte, open int, members []canonicalMember) ([]byte, error) {
	byKey := func(a, b canonicalMember) int { return strings.Compare(a.key, b.key) }
	sorted := slices.IsSortedFunc(members, byKey)
	if !sorted {
		slices.SortStableFunc(members, byKey)
	}
	for i := 1; i < len(members); i++ {
		if members[i].key == members[i-1].key {
			return nil, syntaxError(members[i].offset, "duplicate key")
		}
	}
	if !sorted {
		written := slices.Clone(dst[open:])
		dst = dst[:open]
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, written[m.start-open:m.end-open]...)
		}
	}
	return append(dst, '}'), nil
}

// appendCanonicalString appends the string at i as AppendString writes it; one without escapes is that already.
func appendCanonicalString[T Text](dst []byte, s T, i int) (out []byte, end int, err error) {
	end, escaped, err := skipString(s, i)
	if err != nil {
		return nil, end, err
	}
	if !escaped {
		return append(dst, s[i:end]...), end, nil
	}
	text, whole := unescape(s[i+1 : end-1])
	if !whole {
		return nil, i, syntaxError(i, "surrogate without its pair")
	}
	return AppendString(dst, text), end, nil
}
