package jsonscan

import (
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// skipString checks the string that starts with the quote at i; escaped says whether it has escapes.
func skipString[T Text](s T, i int) (end int, escaped bool, err error) {
	if i >= len(s) || s[i] != '"' {
		return i, false, syntaxError(i, "want a string")
	}
	i++
	for {
		i = skipPlain(s, i)
		if i >= len(s) {
			return i, false, syntaxError(i, "unterminated string")
		}
		switch c := s[i]; {
		case c == '"':
			return i + 1, escaped, nil
		case c == '\\':
			n := escapeLen(s, i)
			if n == 0 {
				return i, false, syntaxError(i, "invalid escape")
			}
			escaped = true
			i += n
		case c < ' ':
			return i, false, syntaxError(i, "control character in a string")
		default:
			for i < len(s) && s[i] >= utf8.RuneSelf { // such runes come in rows
				n := runeLen(s, i)
				if n == 0 {
					return i, false, syntaxError(i, "invalid UTF-8")
				}
				i += n
			}
		}
	}
}

// skipPlain returns the offset of the first byte at or after i that is not plain: a quote, a backslash, a control character or
// not ASCII. It looks at eight bytes at a time, because almost all bytes of a conversation are plain.
func skipPlain[T Text](s T, i int) int {
	for i+8 <= len(s) {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		if m := notPlain(w); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
		i += 8
	}
	for i < len(s) && isPlain(s[i]) {
		i++
	}
	return i
}

func isPlain(c byte) bool {
	return ' ' <= c && c < utf8.RuneSelf && c != '"' && c != '\\'
}

// notPlain returns a mask whose lowest bit lies in the lowest byte of w that is not plain; it is 0 if all are. Each term sets the
// high bit of such bytes: of one that is not ASCII as it is, of b < 0x20 because b - 0x20 borrows, of b == c because (b^c) - 1
// borrows. A borrow spills only upwards, so what it makes of the next byte lies above a byte that is not plain.
func notPlain(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote := w ^ ones*'"'
	backslash := w ^ ones*'\\'
	return (w | (w - ones*' ') | (quote - ones) | (backslash - ones)) & highs
}

// escapeLen returns the length of the escape sequence at i, 0 if it is not one.
func escapeLen[T Text](s T, i int) int {
	if i+1 >= len(s) {
		return 0
	}
	switch s[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if hex4(s, i+2) >= 0 {
			return 6
		}
	}
	return 0
}

// hex4 decodes the four hexadecimal digits at i, -1 if they are not there.
func hex4[T Text](s T, i int) rune {
	if i+4 > len(s) {
		return -1
	}
	var r rune
	for _, c := range []byte(s[i : i+4]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// runeLen returns the length of the UTF-8 sequence at i, which is not ASCII, 0 if it is invalid (Unicode 16, table 3-7).
func runeLen[T Text](s T, i int) int {
	c := s[i]
	low, high := byte(0x80), byte(0xBF) // of the second byte
	var n int
	switch {
	case c < 0xC2 || c > 0xF4:
		return 0
	case c < 0xE0:
		n = 2
	case c < 0xF0:
		n = 3
	default:
		n = 4
	}
	switch c {
	case 0xE0:
		low = 0xA0
	case 0xED:
		high = 0x9F
	case 0xF0:
		low = 0x90
	case 0xF4:
		high = 0x8F
	}
	if i+n > len(s) || s[i+1] < low || s[i+1] > high {
		return 0
	}
	for _, c := range []byte(s[i+2 : i+n]) {
		if c&0xC0 != 0x80 {
			return 0
		}
	}
	return n
}

// unescape returns the text of a checked string body. A surrogate without its pair becomes U+FFFD and makes whole false.
func unescape[T Text](body T) (text string, whole bool) {
	var onStack [256]byte // most keys and arguments fit, so that the string is the only allocation
	buf := onStack[:0]
	if len(body) > len(onStack) {
		buf = make([]byte, 0, len(body))
	}
	whole = true
	for i := 0; i < len(body); {
		run := i
		for i < len(body) && body[i] != '\\' {
			if i = skipPlain(body, i); i < len(body) && body[i] >= utf8.RuneSelf {
				i++
			}
		}
		buf = append(buf, body[run:i]...)
		if i == len(body) {
			break
		}
		if c := body[i+1]; c != 'u' {
			buf = append(buf, unescapeByte(c))
			i += 2
			continue
		}
		r, n := unescapeRune(body, i)
		if n == 0 {
			whole = false
			n = 6
		}
		buf = utf8.AppendRune(buf, r)
		i += n
	}
	return string(buf), whole
}

// unescapeRune returns what the \u escape at i stands for, together with the second one if it needs a pair, and the length
// read. For a surrogate without its pair it returns U+FFFD and 0.
func unescapeRune[T Text](body T, i int) (r rune, n int) {
	r = hex4(body, i+2)
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if next := i + 6; next+6 <= len(body) && body[next] == '\\' && body[next+1] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(body, next+2)); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 0
}

// unescapeByte returns what the two-byte escape \c stands for.
func unescapeByte(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// AppendString appends s as a JSON string with the fewest escapes the grammar allows: quote, backslash and control characters,
// the latter in their two-byte form where there is one and as \u00xx, lower case, where there is none (the form of RFC 8785,
// section 3.2.2.2). It does not escape '<', '>', '&', U+2028 or U+2029. Each byte of s that is not valid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for {
		n := skipPlain(s, 0)
		dst = append(dst, s[:n]...)
		s = s[n:]
		if s == "" {
			return append(dst, '"')
		}
		if c := s[0]; c < utf8.RuneSelf {
			dst = appendEscaped(dst, c)
			s = s[1:]
			continue
		}
		if n = runeLen(s, 0); n == 0 {
			dst = append(dst, "\uFFFD"...)
			s = s[1:]
			continue
		}
		dst = append(dst, s[:n]...)
		s = s[n:]
	}
}

func appendEscaped(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
