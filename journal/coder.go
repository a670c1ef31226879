package journal

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
)

// coder writes or reads the members of JSON objects. Each type lists its members
// once, in payload.go, and the list serves both directions: a member is written
// unless its value is zero, and read if it is the next one.
type coder struct {
	reading bool

	// dst is what was written.
	dst []byte

	// members are the ones of the object being read and, before it, of the
	// objects around it; levels say which of them are still to be read.
	members []member
	levels  []level
	err     error // the first problem found in reading
}

// member is a name and its raw value; an element of an array has no name.
type member struct{ name, value string }

type level struct{ next, end int }

// key writes the name of the next member, or just the comma between elements.
func (c *coder) key(name string) {
	if last := c.dst[len(c.dst)-1]; last != '{' && last != '[' {
		c.dst = append(c.dst, ',')
	}
	if name != "" {
		c.dst = append(c.dst, '"')
		c.dst = append(c.dst, name...)
		c.dst = append(c.dst, '"', ':')
	}
}

// take returns the raw value of the next member if it has that name.
func (c *coder) take(name string) (value string, ok bool) {
	top := &c.levels[len(c.levels)-1]
	if c.err != nil || top.next == top.end || c.members[top.next].name != name {
		return "", false
	}
	top.next++
	return c.members[top.next-1].value, true
}

func (c *coder) fail(name string, err error) {
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("%w: member %q: %w", ErrCorrupt, name, err)
	}
}

// begin opens the object that is the value of a member, or an element of a list.
// In writing, present says whether there is one; in reading, begin says it.
func (c *coder) begin(name string, present bool) bool {
	if !c.reading {
		if present {
			c.key(name)
			c.dst = append(c.dst, '{')
		}
		return present
	}
	value, ok := c.take(name)
	return ok && c.enter(name, value)
}

// enter starts to read the members of the object in value.
func (c *coder) enter(name, value string) bool {
	start := len(c.members)
	err := jsonscan.Object(value, func(key, value string) error {
		c.members = append(c.members, member{key, value})
		return nil
	})
	if err != nil {
		c.fail(name, err)
		return false
	}
	c.levels = append(c.levels, level{start, len(c.members)})
	return true
}

// end closes what begin opened.
func (c *coder) end() {
	if !c.reading {
		c.dst = append(c.dst, '}')
		return
	}
	top := c.levels[len(c.levels)-1]
	if c.err == nil && top.next < top.end {
		c.err = fmt.Errorf("%w: unexpected member %q", ErrNewerJournal, c.members[top.next].name)
	}
	c.leave()
}

func (c *coder) leave() {
	last := len(c.levels) - 1
	c.members = c.members[:c.levels[last].end]
	c.levels = c.levels[:last]
	if last > 0 {
		c.members = c.members[:c.levels[last-1].end]
	}
}

// beginList opens a list of objects, each of which is opened with begin(""). It
// returns the number of elements; 0 means that there is no list to close.
func (c *coder) beginList(name string, n int) int {
	if !c.reading {
		if n > 0 {
			c.key(name)
			c.dst = append(c.dst, '[')
		}
		return n
	}
	value, ok := c.take(name)
	if !ok {
		return 0
	}
	start := len(c.members)
	err := jsonscan.Array(value, func(value string) error {
		c.members = append(c.members, member{value: value})
		return nil
	})
	if err != nil {
		c.fail(name, err)
		return 0
	}
	if start == len(c.members) {
		return 0
	}
	c.levels = append(c.levels, level{start, len(c.members)})
	return len(c.members) - start
}

func (c *coder) endList() {
	if !c.reading {
		c.dst = append(c.dst, ']')
		return
	}
	c.leave()
}

func (c *coder) text(name string, v *string) {
	if !c.reading {
		if *v != "" {
			c.key(name)
			c.dst = jsonscan.AppendString(c.dst, *v)
		}
		return
	}
	if value, ok := c.take(name); ok {
		s, err := jsonscan.String(value)
		c.fail(name, err)
		*v = s
	}
}

// word is a text that is one of a few known words. Another word was written by a
// version that knows more.
func word[T ~string](c *coder, name string, v *T, known ...T) {
	s := string(*v)
	c.text(name, &s)
	if !c.reading {
		return
	}
	*v = T(s)
	if s != "" && c.err == nil && !slices.Contains(known, *v) {
		c.err = fmt.Errorf("%w: member %q is %q", ErrNewerJournal, name, s)
	}
}

func (c *coder) texts(name string, v *[]string) {
	if !c.reading {
		if len(*v) > 0 {
			c.key(name)
			c.dst = append(c.dst, '[')
			for _, s := range *v {
				c.key("")
				c.dst = jsonscan.AppendString(c.dst, s)
			}
			c.dst = append(c.dst, ']')
		}
		return
	}
	if value, ok := c.take(name); ok {
		c.fail(name, jsonscan.Array(value, func(value string) error {
			s, err := jsonscan.String(value)
			*v = append(*v, s)
			return err
		}))
	}
}

func (c *coder) int64(name string, v *int64) {
	if !c.reading {
		if *v != 0 {
			c.key(name)
			c.dst = strconv.AppendInt(c.dst, *v, 10)
		}
		return
	}
	if value, ok := c.take(name); ok {
		n, err := jsonscan.Int(value)
		c.fail(name, err)
		*v = n
	}
}

func (c *coder) int(name string, v *int) {
	n := int64(*v)
	c.int64(name, &n)
	if c.reading {
		if *v = int(n); int64(*v) != n {
			c.fail(name, strconv.ErrRange)
		}
	}
}

func (c *coder) uint64(name string, v *uint64) {
	if !c.reading {
		if *v != 0 {
			c.key(name)
			c.dst = strconv.AppendUint(c.dst, *v, 10)
		}
		return
	}
	if value, ok := c.take(name); ok {
		n, err := strconv.ParseUint(value, 10, 64)
		c.fail(name, err)
		*v = n
	}
}

func (c *coder) flag(name string, v *bool) {
	if !c.reading {
		if *v {
			c.key(name)
			c.dst = append(c.dst, "true"...)
		}
		return
	}
	if value, ok := c.take(name); ok {
		b, err := jsonscan.Bool(value)
		c.fail(name, err)
		*v = b
	}
}

func (c *coder) digest(name string, v *item.Digest) {
	if !c.reading {
		if !v.IsZero() {
			c.key(name)
			c.dst = append(c.dst, '"')
			c.dst = base64.RawURLEncoding.AppendEncode(c.dst, v[:])
			c.dst = append(c.dst, '"')
		}
		return
	}
	if value, ok := c.take(name); ok {
		s, err := jsonscan.String(value)
		if err == nil {
			*v, err = item.ParseDigest(s)
		}
		c.fail(name, err)
	}
}

func (c *coder) effect(name string, v *EffectID) {
	if !c.reading {
		if *v != (EffectID{}) {
			c.key(name)
			c.dst = append(c.dst, '"')
			c.dst = v.appendTo(c.dst)
			c.dst = append(c.dst, '"')
		}
		return
	}
	if value, ok := c.take(name); ok {
		s, err := jsonscan.String(value)
		if err == nil {
			*v, err = ParseEffectID(s)
		}
		c.fail(name, err)
	}
}

func (c *coder) item(name string, v *item.Item) {
	if !c.reading {
		if !v.IsZero() {
			c.key(name)
			c.dst = v.AppendRaw(c.dst)
		}
		return
	}
	if value, ok := c.take(name); ok {
		it, err := item.ParseString(value)
		c.fail(name, err)
		*v = it
	}
}

func (c *coder) items(name string, v *[]item.Item) {
	if !c.reading {
		if len(*v) > 0 {
			c.key(name)
			c.dst = append(c.dst, '[')
			for _, it := range *v {
				c.key("")
				c.dst = it.AppendRaw(c.dst)
			}
			c.dst = append(c.dst, ']')
		}
		return
	}
	if value, ok := c.take(name); ok {
		c.fail(name, jsonscan.Array(value, func(value string) error {
			it, err := item.ParseString(value)
			*v = append(*v, it)
			return err
		}))
	}
}
