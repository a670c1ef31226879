package jsonscan

// The skip functions check the grammar of one production that starts at i and return the offset after it.

func skipSpace[T Text](s T, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

func atEnd[T Text](s T, i int) error {
	if i = skipSpace(s, i); i < len(s) {
		return syntaxError(i, "text after the value")
	}
	return nil
}

// skipValue recurses at most depth times, one level for each array or object.
func skipValue[T Text](s T, i, depth int) (int, error) {
	if i >= len(s) {
		return i, syntaxError(i, "unexpected end")
	}
	switch s[i] {
	case '"':
		end, _, err := skipString(s, i)
		return end, err
	case '{':
		return skipObject(s, i, depth-1)
	case '[':
		return skipArray(s, i, depth-1)
	case 't':
		return skipLiteral(s, i, "true")
	case 'f':
		return skipLiteral(s, i, "false")
	case 'n':
		return skipLiteral(s, i, "null")
	}
	return skipNumber(s, i)
}

func skipObject[T Text](s T, i, depth int) (int, error) {
	if depth < 0 {
		return i, syntaxError(i, "nested too deeply")
	}
	i = skipSpace(s, i+1)
	if i < len(s) && s[i] == '}' {
		return i + 1, nil
	}
	for {
		_, _, start, err := skipKey(s, i)
		if err != nil {
			return i, err
		}
		end, err := skipValue(s, start, depth)
		if err != nil {
			return end, err
		}
		next, more, err := skipSeparator(s, end, '}')
		if err != nil || !more {
			return next, err
		}
		i = next
	}
}

func skipArray[T Text](s T, i, depth int) (int, error) {
	if depth < 0 {
		return i, syntaxError(i, "nested too deeply")
	}
	i = skipSpace(s, i+1)
	if i < len(s) && s[i] == ']' {
		return i + 1, nil
	}
	for {
		end, err := skipValue(s, i, depth)
		if err != nil {
			return end, err
		}
		next, more, err := skipSeparator(s, end, ']')
		if err != nil || !more {
			return next, err
		}
		i = next
	}
}

// skipKey reads a member's name, quotes included, and colon; value is where its value starts.
func skipKey[T Text](s T, i int) (key T, escaped bool, value int, err error) {
	end, escaped, err := skipString(s, i)
	if err != nil {
		return key, false, end, err
	}
	colon := skipSpace(s, end)
	if colon >= len(s) || s[colon] != ':' {
		return key, false, colon, syntaxError(colon, "want ':'")
	}
	return s[i:end], escaped, skipSpace(s, colon+1), nil
}

// skipSeparator reads what follows a member or an element: a comma (more follow, the next one starts at next) or closing.
func skipSeparator[T Text](s T, i int, closing byte) (next int, more bool, err error) {
	i = skipSpace(s, i)
	switch {
	case i < len(s) && s[i] == ',':
		return skipSpace(s, i+1), true, nil
	case i < len(s) && s[i] == closing:
		return i + 1, false, nil
	}
	return i, false, syntaxError(i, "want ',' or '"+string(closing)+"'")
}

func skipLiteral[T Text](s T, i int, literal string) (int, error) {
	if len(s)-i < len(literal) || string(s[i:i+len(literal)]) != literal {
		return i, syntaxError(i, "want "+literal)
	}
	return i + len(literal), nil
}

func skipNumber[T Text](s T, i int) (int, error) {
	start := i
	if i < len(s) && s[i] == '-' {
		i++
	}
	digits := i
	i = skipDigits(s, i)
	if i == digits {
		if i == start {
			return i, syntaxError(i, "want a value")
		}
		return i, syntaxError(i, "want a digit")
	}
	if s[digits] == '0' && i > digits+1 {
		return i, syntaxError(digits, "number with a leading zero")
	}
	if i < len(s) && s[i] == '.' {
		fraction := i + 1
		if i = skipDigits(s, fraction); i == fraction {
			return i, syntaxError(i, "want a digit")
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		exponent := i
		if i = skipDigits(s, i); i == exponent {
			return i, syntaxError(i, "want a digit")
		}
	}
	return i, nil
}

func skipDigits[T Text](s T, i int) int {
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}
