package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// tell writes what the facts say of the call. They are in the ledger, but whoever made the proof chose them: each
// must be about this call, and each decision about the arguments that the call had then.
func tell(w io.Writer, p *proof, head hash) error {
	var n, pos uint32
	if _, err := fmt.Sscanf(p.Call, "%d.%d", &n, &pos); err != nil || fmt.Sprintf("%d.%d", n, pos) != p.Call {
		return fmt.Errorf("%q is no call", p.Call)
	}
	key := sha256.Sum256(fmt.Appendf(nil, "pawl-key/1\x00%s\x00\x00t%s.0", p.Run, p.Call)) // [M16.3]
	fmt.Fprintf(w, "The proof holds against the head %x.\n\nrun        %q, its first %d facts\ncall       %s\narguments  %s\nkey        pawl_%x\n\n",
		head, p.Run, p.Size, p.Call, visible(p.Arguments), key[:16])
	c := call{name: p.Call, n: int64(n), pos: int64(pos), digest: digestOf(p.Arguments)}
	for _, f := range p.Facts {
		var o object
		if err := json.Unmarshal([]byte(f.Record.Payload), &o); err != nil || f.Record.Frame != "" || f.Record.Version != 1 {
			return fmt.Errorf("fact %d cannot be read by this program", f.Fact)
		}
		said, ok := c.read(f.Record.Kind, o)
		if !ok {
			return fmt.Errorf("fact %d (%s) does not belong to the call", f.Fact, f.Record.Kind)
		}
		fmt.Fprintf(w, "%s  fact %d: %s\n", stamp(f.Record.Time), f.Fact, said)
	}
	if !c.planned {
		return errors.New("it does not show that the call was made")
	}
	return nil
}

// call is what the facts have said of it so far.
type call struct {
	name               string
	n, pos             int64  // response, and position among its items
	digest             string // of the arguments in force
	responded, planned bool
}

// read takes the next fact and says what it means; false if it is not one of the call's.
func (c *call) read(kind string, o object) (said string, ok bool) {
	id := o.text("id")
	attempt, mine := strings.CutPrefix(id, "t"+c.name+".")
	switch {
	case kind == "responded":
		items := o.list("items")
		ok = !c.responded && strings.HasPrefix(id, fmt.Sprintf("m%d.0.", c.n)) && c.pos < int64(len(items))
		if c.responded = true; ok {
			said = fmt.Sprintf("the model calls %q, call id %q", items[c.pos].text("name"), items[c.pos].text("call_id"))
		}
	case kind == "planned":
		ok = c.responded && !c.planned && o.number("n") == c.n
		calls := o.list("calls")
		i := slices.IndexFunc(calls, func(pc object) bool { return pc.number("p") == c.pos })
		if c.planned = true; ok && i >= 0 {
			ok = calls[i].text("digest") == c.digest && !calls[i].flag("twin")
			said = "its rule says " + cmp.Or(calls[i].text("gate"), "allow")
		}
		ok = ok && i >= 0
	case kind == "decided" && !mine: // only a standing decision is about other calls too
		ok = o.flag("sticky")
		said = fmt.Sprintf("a standing decision on %q, a call of the same tool: ", id) + decision(o)
	case kind == "decided":
		ok = c.planned && o.text("digest") == c.digest
		if args := o.text("args"); args != "" {
			c.digest = digestOf(args)
		}
		said = decision(o)
	case kind == "intended":
		ok, said = c.planned && mine, "attempt "+attempt+" begins"
	case kind == "settled":
		ok, said = c.planned && mine, outcome(attempt, o)
	default:
		ok, said = c.planned && mine, kind
	}
	return said, ok
}

func decision(o object) string {
	said := fmt.Sprintf("%q, by %q, at %s", o.text("verdict"), o.text("by"), stamp(o.number("at")))
	for _, name := range []string{"why", "args", "text"} {
		if text := o.text(name); text != "" {
			said += fmt.Sprintf(", %s %s", name, visible(text))
		}
	}
	return said
}

func outcome(attempt string, o object) string {
	said := "attempt " + attempt + " ends: "
	if attempt == "0" {
		said = "settled without an attempt: "
	}
	said += cmp.Or(o.text("outcome"), "done")
	if o.flag("late") {
		said += ", too late to count"
	}
	var output object
	if json.Unmarshal(o["output"], &output) == nil {
		said += ", output " + visible(string(output["output"]))
	}
	if text := o.text("error"); text != "" {
		said += ", error " + visible(text)
	}
	return said
}

// object is a JSON object. Its members are found by their exact names, as Pawl finds them; one that is left out is
// zero [S8.1].
type object map[string]json.RawMessage

func member[T any](o object, name string) (v T) {
	_ = json.Unmarshal(o[name], &v) // zero if it is of another type
	return v
}

func (o object) text(name string) string   { return member[string](o, name) }
func (o object) number(name string) int64  { return member[int64](o, name) }
func (o object) flag(name string) bool     { return member[bool](o, name) }
func (o object) list(name string) []object { return member[[]object](o, name) }

func digestOf(arguments string) string {
	d := sha256.Sum256([]byte(arguments))
	return base64.RawURLEncoding.EncodeToString(d[:])
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// visible replaces what could steer a terminal.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\ufffd'
		}
		return r
	}, text)
}
