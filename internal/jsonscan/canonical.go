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
			text, end, err := wholeString(s, i)
			if err != nil {
				return nil, i, err
			}
			return AppendString(dst, text), end, nil
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
		_, value, err := skipKey(s, i)
		if err != nil {
			return nil, i, err
		}
		if m.key, _, err = wholeString(s, i); err != nil {
			return nil, i, err
		}
		dst = append(AppendString(dst, m.key), ':')
		if dst, end, err = appendCanonicalValue(dst, s, value, depth); err != nil {
			return nil, end, err
		}
		m.end = len(dst)
		members = append(members, m)
		next, more, err := skipSeparator(s, end, '}')
		if err != nil {
			return nil, next, err
		}
		if !more {
			dst, err = sortMembers(dst, open, members)
			return append(dst, '}'), next, err
		}
		dst = append(dst, ',')
		i = next
	}
}

// sortMembers puts the members that were written to dst from open on in the order of their keys.
func sortMembers(dst []byte, open int, members []canonicalMember) ([]byte, error) {
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
	if sorted {
		return dst, nil
	}
	written := slices.Clone(dst[open:])
	dst = dst[:open]
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, written[m.start-open:m.end-open]...)
	}
	return dst, nil
}

// wholeString decodes the string at i and refuses one whose text UTF-8 cannot hold.
func wholeString[T Text](s T, i int) (text string, end int, err error) {
	end, err = skipString(s, i)
	if err != nil {
		return "", i, err
	}
	body := s[i+1 : end-1]
	if !hasEscape(body) {
		return string(body), end, nil
	}
	buf, whole := appendUnescaped(make([]byte, 0, len(body)), body)
	if !whole {
		return "", i, syntaxError(i, "surrogate without its pair")
	}
	return string(buf), end, nil
}
