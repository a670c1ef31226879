package pawltest

import (
	"strconv"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// object is a JSON object under construction, one member appended at a time. Values that are JSON already go in as they
// are, so an item leaves the server with the bytes it was scripted with.
type object []byte

func (o object) key(name string) object {
	if len(o) == 0 {
		o = append(o, '{')
	} else {
		o = append(o, ',')
	}
	o = jsonscan.AppendString(o, name)
	return append(o, ':')
}

func (o object) raw(name, value string) object { return append(o.key(name), value...) }

func (o object) str(name, value string) object { return jsonscan.AppendString(o.key(name), value) }

// strOrNull writes null for the empty string.
func (o object) strOrNull(name, value string) object {
	if value == "" {
		return o.raw(name, "null")
	}
	return o.str(name, value)
}

func (o object) num(name string, value int64) object {
	return strconv.AppendInt(o.key(name), value, 10)
}

func (o object) bool(name string, value bool) object {
	return strconv.AppendBool(o.key(name), value)
}

// members appends the members of another object under construction.
func (o object) members(other object) object {
	if len(o) == 0 || len(other) == 0 {
		return append(o, other...)
	}
	return append(append(o, ','), other[1:]...)
}

// end closes the object.
func (o object) end() string {
	if len(o) == 0 {
		return "{}"
	}
	return string(append(o, '}'))
}

// array encodes values that are JSON already.
func array[T any](values []T, raw func(T) string) string {
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw(v)...)
	}
	return string(append(out, ']'))
}
