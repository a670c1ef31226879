package schema

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// A reader is a node that stores a value which passed check. It stores what encoding/json would; every value of a node that is
// no reader, or is not of the usual kind of Go type, is left to encoding/json.
type reader interface {
	// read reports whether it knows how to store a value in dst, which is zero.
	read(value string, dst reflect.Value) (known bool, err error)
}

// read stores a value that passed check in dst, which is zero.
func (s slot) read(value string, dst reflect.Value) error {
	if jsonscan.IsNull(value) {
		return nil
	}
	for dst.Kind() == reflect.Pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		dst = dst.Elem()
	}
	if r, ok := s.node.(reader); ok {
		if known, err := r.read(value, dst); known {
			return err
		}
	}
	return json.Unmarshal([]byte(value), dst.Addr().Interface())
}

func (n *structNode) read(value string, dst reflect.Value) (bool, error) {
	next := 0
	err := jsonscan.Object(value, func(key, value string) error {
		i, _ := n.find(key, next)
		next = i + 1
		return n.fields[i].slot.read(value, fieldAt(dst, n.fields[i].path))
	})
	return true, err
}

// fieldAt returns the field at the end of a path through embedded structs, and makes those that are embedded by pointer.
func fieldAt(v reflect.Value, path []int) reflect.Value {
	for i, at := range path {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(at)
	}
	return v
}

func (n *listNode) read(value string, dst reflect.Value) (bool, error) {
	if n.slice {
		length := 0
		err := jsonscan.Array(value, func(string) error {
			length++
			return nil
		})
		if err != nil {
			return true, err
		}
		dst.Set(reflect.MakeSlice(dst.Type(), length, length))
	}
	i := 0
	err := jsonscan.Array(value, func(value string) error {
		i++
		return n.element.read(value, dst.Index(i-1))
	})
	return true, err
}

func (n *stringNode) read(value string, dst reflect.Value) (bool, error) {
	if n.goType != nil || dst.Kind() != reflect.String {
		return false, nil
	}
	text, err := jsonscan.String(value)
	dst.SetString(text)
	return true, err
}

func (n *integerNode[T]) read(value string, dst reflect.Value) (bool, error) {
	i, err := n.parse(value, 10, n.bits)
	if dst.CanUint() {
		dst.SetUint(uint64(i))
	} else {
		dst.SetInt(int64(i))
	}
	return true, err
}

func (n *numberNode) read(value string, dst reflect.Value) (bool, error) {
	if !dst.CanFloat() {
		return false, nil
	}
	x, err := strconv.ParseFloat(value, n.bits)
	dst.SetFloat(x)
	return true, err
}

func (booleanNode) read(value string, dst reflect.Value) (bool, error) {
	dst.SetBool(value == "true")
	return true, nil
}
