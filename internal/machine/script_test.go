package machine

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// script drives a machine by commands of a line or more, in place of a driver. Each
// command steps a fact, or tells what the machine says; then Ready is asked, and what it
// hands out is the command's output. The facts it hands out are durable when it says that
// they must be, and lost by a crash when it does not.
type script struct {
	t       testing.TB
	m       *Machine
	now     int64
	facts   []journal.Fact
	durable int
	gates   map[string]journal.Gate
	status  Status
	held    bool // facts are stepped, Ready is not asked
	frame   string
	f       *Frame // of the command: the one it names, or the run's own
}

func newScript(t testing.TB) *script {
	return &script{t: t, m: New(), now: 1000, gates: make(map[string]journal.Gate)}
}

// given runs commands that must be accepted.
func (s *script) given(commands ...string) *script {
	s.t.Helper()
	for _, c := range commands {
		if out := s.do(c); strings.HasPrefix(out, "refused") {
			s.t.Fatalf("%s\n%s", c, out)
		}
	}
	return s
}

// then runs a command and compares what it says.
func (s *script) then(command, want string) *script {
	s.t.Helper()
	got := strings.TrimSpace(s.do(command))
	if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
		s.t.Errorf("%s\n(-want +got)\n%s", command, diff)
	}
	return s
}

// refused runs commands that must be refused with an error that begins with want.
func (s *script) refused(want string, commands ...string) *script {
	s.t.Helper()
	for _, c := range commands {
		if got := s.do(c); !strings.HasPrefix(got, "refused: pawl: "+want) {
			s.t.Errorf("%s\nwant refused: pawl: %s\ngot %s", c, want, got)
		}
	}
	return s
}

// The beginnings of the errors with which facts are refused.
const (
	notDueText  = "nothing open waits for this"
	sameText    = "the same decision was taken before"
	digestText  = "the decision is for other arguments"
	verdictText = "this verdict does not fit"
	flightText  = "the call may still be running"
	decidedText = "call "
)

// command is a command, taken apart: words, name=value options, lines of input.
type command struct {
	words   []string
	options map[string]string
	input   []string
}

func parseCommand(text string) command {
	c := command{options: make(map[string]string)}
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line, inline, ok := strings.Cut(line, " | ")
	if ok {
		rest = inline
	}
	for w := range strings.FieldsSeq(line) {
		if name, value, ok := strings.Cut(w, "="); ok {
			c.options[name] = value
		} else {
			c.words = append(c.words, w)
		}
	}
	for l := range strings.SplitSeq(rest, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			c.input = append(c.input, l)
		}
	}
	return c
}

func (c command) word(i int) string {
	if i < len(c.words) {
		return c.words[i]
	}
	return ""
}

func (c command) has(word string) bool {
	for _, w := range c.words[1:] {
		if w == word {
			return true
		}
	}
	return false
}

func (c command) text() string { return strings.Join(c.input, "\n") }

func (s *script) number(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (c command) option(s *script, name string, otherwise int) int {
	if v, ok := c.options[name]; ok {
		return s.number(v)
	}
	return otherwise
}

// fact returns the fact a command would step.
func (s *script) fact(text string) journal.Fact {
	c := parseCommand(text)
	s.enter(c.options["frame"])
	body := bodies[c.word(0)](s, c)
	return journal.Fact{Time: s.now, Body: body, Frame: s.frame}
}

// enter makes a frame that of the command.
func (s *script) enter(frame string) {
	s.frame, s.f = frame, s.m.Frame(frame)
	if s.f == nil {
		s.f = s.m.root
	}
}

// do runs a command and returns what came of it.
func (s *script) do(text string) string {
	s.t.Helper()
	c := parseCommand(text)
	s.enter(c.options["frame"])
	if view, ok := views[c.word(0)]; ok {
		return view(s, c)
	}
	switch c.word(0) {
	case "batch":
		s.held = true
		for _, line := range c.input {
			if out := s.do(line); out != "" {
				return out
			}
		}
		s.held = false
	case "wait":
		d, err := time.ParseDuration(c.word(1))
		if err != nil {
			s.t.Fatal(err)
		}
		s.now += d.Milliseconds()
		return ""
	case "ready":
	case "ended":
		s.f.Ended(s.effect(c.word(1)))
	case "flush":
		return s.show(s.m.Flush())
	case "crash":
		s.facts = s.facts[:s.durable]
		s.m = s.replay()
		s.status = s.m.Status()
		return "status " + s.status.String()
	default:
		if bodies[c.word(0)] == nil {
			s.t.Fatalf("no command %q", c.word(0))
		}
		f := s.fact(text)
		if err := s.m.Check(f); err != nil {
			s.held = false
			return "refused: " + err.Error()
		}
		s.m.Step(f)
	}
	if s.held {
		return ""
	}
	return s.show(s.m.Ready(s.now))
}

// show takes what the machine hands out and says it.
func (s *script) show(rd Ready) string {
	s.t.Helper()
	var b strings.Builder
	for _, f := range rd.Facts {
		fmt.Fprintf(&b, "append %s\n", s.factText(f))
	}
	s.facts = append(s.facts, rd.Facts...)
	for _, r := range rd.Batches {
		fmt.Fprintf(&b, "batch %s%d [%d,%d)\n", inFrame(r.Frame), r.N, r.From, r.Upto)
	}
	if rd.MustSync {
		fmt.Fprintln(&b, "sync")
		s.durable = len(s.facts)
		s.m.Advance(uint64(len(s.facts)))
	}
	for _, e := range rd.Effects {
		fmt.Fprintf(&b, "start %s\n", effectText(e))
	}
	if rd.Status != s.status {
		s.status = rd.Status
		fmt.Fprintf(&b, "status %s\n", rd.Status)
	}
	s.same(rd.Effects...)
	return b.String()
}

// replay returns the machine of the facts, as read from a store.
func (s *script) replay() *Machine {
	s.t.Helper()
	m := New()
	for i, f := range s.facts {
		read, err := journal.Decode(journal.Encode(f, [16]byte{}))
		if err != nil {
			s.t.Fatalf("fact %d: %v", i, err)
		}
		if err := m.Replay(read); err != nil {
			s.t.Fatal(err)
		}
	}
	return m
}

// same checks that replaying the facts gives the state the machine is in [M16.5].
func (s *script) same(handed ...Effect) {
	s.t.Helper()
	m := s.replay()
	for _, e := range handed { // [M2.6]
		if diff := cmp.Diff(e, m.Frame(e.Frame).Effect(e.ID), cmpopts.EquateEmpty(), cmp.Comparer(func(a, b item.Item) bool { return a == b })); diff != "" {
			s.t.Fatalf("another machine does not know %s of %q (-handed +known)\n%s", e.ID, e.Frame, diff)
		}
	}
	if diff := stateDiff(s.m, m); diff != "" {
		s.t.Fatalf("replay is not live (-live +replay)\n%s", diff)
	}
}

// stateDiff compares what machines folded; how a difference reads costs more than to find it.
func stateDiff(a, b *Machine) string {
	x, y := folded(a), folded(b)
	if reflect.DeepEqual(x, y) {
		return ""
	}
	return cmp.Diff(x, y, cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty())
}

// fold is all that a machine folded: the run, and its frames by name.
type fold struct {
	Run    run
	Frames map[string]state
}

func folded(m *Machine) fold {
	f := fold{Run: m.run, Frames: make(map[string]state)}
	for _, frame := range m.frames {
		f.Frames[frame.name] = frame.state
	}
	return f
}

func (s *script) effect(text string) journal.EffectID {
	s.t.Helper()
	id, err := journal.ParseEffectID(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// items reads one item a line.
func (s *script) items(lines []string) []item.Item {
	s.t.Helper()
	var list []item.Item
	for _, l := range lines {
		kind, rest, _ := strings.Cut(l, " ")
		id, more, _ := strings.Cut(rest, " ")
		name, args, _ := strings.Cut(more, " ")
		switch kind {
		case "user":
			list = append(list, item.UserText(rest))
		case "message":
			list = append(list, item.MessageItem("", rest))
		case "reasoning":
			list = append(list, item.ReasoningItem("", rest))
		case "call":
			list = append(list, item.FunctionCallItem("", id, name, args))
		case "output":
			list = append(list, item.FunctionOutput(id, more))
		case "asks": // of a hosted server: asks ID SERVER TOOL ARGUMENTS
			server, args, _ := strings.Cut(args, " ")
			list = append(list, asks(id, name, server, args))
		case "yes":
			list = append(list, item.ApprovalReply(id, true, more))
		case "no":
			list = append(list, item.ApprovalReply(id, false, more))
		case "raw":
			it, err := item.ParseString(rest)
			if err != nil {
				s.t.Fatal(err)
			}
			list = append(list, it)
		default:
			s.t.Fatalf("no item %q", l)
		}
	}
	return list
}
