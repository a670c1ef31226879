package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
)

// screen prints text for people. Texts that come from a model, a tool or a store go through printable, so that
// they cannot steer the terminal or pass for the command's own words. It is used from one goroutine.
type screen struct {
	w     io.Writer
	color bool
	width int // of a line; 0 means that nobody knows

	tools  map[string]string // call id -> tool, for outputs
	said   map[string]bool   // message items that were shown while they were written
	inLine bool              // the line is not ended
}

func newScreen(w io.Writer, color bool) *screen {
	return &screen{w: w, color: color, tools: map[string]string{}, said: map[string]bool{}}
}

// quiet makes the screen print nothing.
func (s *screen) quiet() { s.w = io.Discard }

type style string

const (
	plain  style = ""
	bold   style = "1"
	faint  style = "2"
	green  style = "32"
	yellow style = "33"
)

func (s *screen) styled(st style, text string) string {
	if !s.color || st == plain || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

func (s *screen) line(format string, args ...any) {
	s.endLine()
	fmt.Fprintf(s.w, format+"\n", args...)
}

func (s *screen) head(format string, args ...any) {
	s.line("%s", s.styled(bold, fmt.Sprintf(format, args...)))
}

const (
	labelWidth = 10
	textWidth  = 88 // at most
	narrow     = 20 // a text gets no narrower
)

// room is how wide a text behind a label may be.
func (s *screen) room(label int) int {
	if s.width == 0 {
		return textWidth
	}
	return min(textWidth, max(narrow, s.width-label-2))
}

// entry prints a labelled line of the progress. Further lines of the text are indented.
func (s *screen) entry(st style, label, text string) {
	s.endLine()
	s.start(st, label)
	fmt.Fprintln(s.w, indent(wrap(text, s.room(labelWidth)), labelWidth+2))
}

func (s *screen) start(st style, label string) {
	fmt.Fprintf(s.w, "  %s", s.styled(st, fmt.Sprintf("%-*s", labelWidth, label)))
}

// indent puts the further lines of a text under the first.
func indent(text string, by int) string {
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", by))
}

// wrap breaks lines between words. A word that is too long stays whole.
func wrap(text string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		for utf8.RuneCountInString(line) > width {
			fits := len(string([]rune(line)[:width+1]))
			cut := strings.LastIndex(line[:fits], " ")
			if cut <= 0 {
				if cut = strings.Index(line[fits:], " "); cut < 0 {
					break
				}
				cut += fits
			}
			lines = append(lines, line[:cut])
			line = line[cut+1:]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// endLine ends the line of a message that is being written.
func (s *screen) endLine() {
	if s.inLine {
		fmt.Fprintln(s.w)
		s.inLine = false
	}
}

// command prints a command that a person may want to copy.
func (s *screen) command(what, line string) {
	s.line("  %-*s%s", labelWidth, what, s.styled(bold, line))
}

// event shows an event of a run.
func (s *screen) event(ev pawl.Event) {
	switch ev := ev.(type) {
	case *pawl.Delta:
		if ev.Kind == pawl.DeltaText {
			s.delta(ev)
		}
	case *pawl.Reset:
		s.entry(yellow, "again", fmt.Sprintf("the model is asked again, attempt %d", ev.Attempt))
	case *pawl.ItemCreated:
		s.item(ev)
	case *pawl.ToolStarted:
		s.tools[ev.CallID] = ev.Tool
		if ev.Attempt > 1 {
			s.entry(yellow, "again", fmt.Sprintf("%s, attempt %d with the same key %s", printable(ev.Tool), ev.Attempt, ev.Key))
		}
	}
}

// learn takes note of calls that were made before, for the names of their outputs.
func (s *screen) learn(items []pawl.Item) {
	for _, it := range items {
		if h := it.Head(); h.Type == item.TypeFunctionCall {
			s.tools[h.CallID] = h.Name
		}
	}
}

// delta shows a piece of a message that is being written.
func (s *screen) delta(d *pawl.Delta) {
	if !s.inLine {
		s.start(plain, "model")
		s.inLine = true
	}
	fmt.Fprint(s.w, indent(printable(d.Text), labelWidth+2))
	s.said[d.ItemID] = true
}

func (s *screen) item(ev *pawl.ItemCreated) {
	switch ev.Name {
	case pawl.MessageCreated:
		m, err := ev.Item.Message()
		if err == nil && !s.said[m.ID] {
			s.entry(plain, "model", printable(m.Text()+m.Refusal()))
		}
	case pawl.ToolCalled:
		s.learn([]pawl.Item{ev.Item})
		h := ev.Item.Head()
		text := cmp.Or(h.Name, string(h.Type))
		if fc, err := ev.Item.FunctionCall(); err == nil {
			text = callText(fc.Name, fc.Arguments)
		}
		s.entry(faint, "call", text)
	case pawl.ToolOutput:
		h := ev.Item.Head()
		text := ""
		if out, err := ev.Item.FunctionCallOutput(); err == nil {
			text = out.Text
		}
		tool := printable(s.tools[h.CallID])
		s.entry(faint, "output", tool+": "+oneLine(text, max(narrow, s.room(labelWidth)-len(tool)-2)))
	}
}

// callText writes a call as people write one.
func callText(tool, arguments string) string {
	fields, ok := fieldsOf(arguments)
	if !ok {
		return printable(tool) + "(" + oneLine(arguments, 110) + ")"
	}
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = printable(f.name) + "=" + oneLine(f.value, 60)
	}
	return printable(tool) + "(" + strings.Join(list, ", ") + ")"
}

// field is a member of an object, its value as JSON.
type field struct{ name, value string }

// fieldsOf reads the members of a JSON object in their order.
func fieldsOf(object string) (fields []field, ok bool) {
	dec := json.NewDecoder(bytes.NewReader([]byte(object)))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, false
		}
		fields = append(fields, field{name.(string), string(value)})
	}
	_, err := dec.Token()
	return fields, err == nil
}

// oneLine cuts a text for one line.
func oneLine(text string, limit int) string {
	text = printable(strings.Join(strings.Fields(text), " "))
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-3]) + "..."
}

// printable makes control characters visible, those that change the direction of writing included. Line feeds and
// tabs stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			return '\ufffd'
		}
		return r
	}, text)
}

// columns prints rows under their heads, each as wide as needed; where the lines are too short for that, each cell on
// its own.
func (s *screen) columns(heads []string, rows [][]string) {
	widths := make([]int, len(heads))
	for _, row := range append(rows, heads) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	total := 0
	for _, w := range widths {
		total += 2 + w
	}
	if s.width > 0 && total > s.width {
		s.blocks(heads, rows)
		return
	}
	write := func(st style, row []string) {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2)
		}
		s.line("  %s", s.styled(st, strings.TrimRight(line, " ")))
	}
	write(faint, heads)
	for _, row := range rows {
		write(plain, row)
	}
}

// blocks prints rows one below the other, with the head before each cell that is not empty.
func (s *screen) blocks(heads []string, rows [][]string) {
	label := 0
	for _, h := range heads {
		label = max(label, utf8.RuneCountInString(h)+2)
	}
	for n, row := range rows {
		if n > 0 {
			s.line("")
		}
		for i, cell := range row {
			if cell != "" {
				s.line("  %s%s", s.styled(faint, fmt.Sprintf("%-*s", label, heads[i])), indent(wrap(cell, s.room(label)), label+2))
			}
		}
	}
}
