package openai

import (
	"strconv"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// object is the text of a JSON object that is being written, member by member; objects within it open and close in between.
type object struct{ text []byte }

func (o *object) open()  { o.text = append(o.text, '{') }
func (o *object) close() { o.text = append(o.text, '}') }

// name starts a member. Its value is whatever is appended next.
func (o *object) name(name string) {
	if o.text[len(o.text)-1] != '{' {
		o.text = append(o.text, ',')
	}
	o.text = append(jsonscan.AppendString(o.text, name), ':')
}

func (o *object) raw(name, json string) {
	o.name(name)
	o.text = append(o.text, json...)
}

func (o *object) string(name, value string) {
	o.name(name)
	o.text = jsonscan.AppendString(o.text, value)
}

func (o *object) stringIfSet(name, value string) {
	if value != "" {
		o.string(name, value)
	}
}

func (o *object) bool(name string, value bool) {
	o.name(name)
	o.text = strconv.AppendBool(o.text, value)
}

func (o *object) boolIfSet(name string, value *bool) {
	if value != nil {
		o.bool(name, *value)
	}
}

func (o *object) intIfSet(name string, value *int64) {
	if value != nil {
		o.name(name)
		o.text = strconv.AppendInt(o.text, *value, 10)
	}
}

func (o *object) floatIfSet(name string, value *float64) {
	if value != nil {
		o.name(name)
		o.text = strconv.AppendFloat(o.text, *value, 'g', -1, 64)
	}
}

func (o *object) strings(name string, values []string) {
	o.name(name)
	o.text = append(o.text, '[')
	for i, value := range values {
		if i > 0 {
			o.text = append(o.text, ',')
		}
		o.text = jsonscan.AppendString(o.text, value)
	}
	o.text = append(o.text, ']')
}
