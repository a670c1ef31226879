package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// line is what an export says of a fact: what people look for, and the record.
type line struct {
	Fact  int          `json:"fact"` // from 1
	Time  string       `json:"time"`
	Kind  journal.Kind `json:"kind"`
	Frame string       `json:"frame,omitempty"`

	Run    string `json:"run,omitempty"`
	Agent  string `json:"agent,omitempty"`
	Epoch  uint64 `json:"epoch,omitempty"`
	Driver string `json:"driver,omitempty"`

	Effect  string     `json:"effect,omitempty"`
	Call    string     `json:"call,omitempty"`
	Attempt int        `json:"attempt,omitempty"`
	Stage   int        `json:"stage,omitempty"`
	Tool    string     `json:"tool,omitempty"`
	CallID  string     `json:"call_id,omitempty"`
	Key     string     `json:"key,omitempty"`
	Calls   []lineCall `json:"calls,omitempty"`

	Verdict   journal.Verdict `json:"verdict,omitempty"`
	By        string          `json:"by,omitempty"`
	At        string          `json:"at,omitempty"`
	Why       string          `json:"why,omitempty"`
	Always    bool            `json:"always,omitempty"`
	Arguments string          `json:"arguments,omitempty"`
	Message   string          `json:"message,omitempty"`

	Outcome journal.Outcome `json:"outcome,omitempty"`
	Late    bool            `json:"late,omitempty"`
	Output  string          `json:"output,omitempty"`
	Code    string          `json:"code,omitempty"`
	Error   string          `json:"error,omitempty"`

	Record json.RawMessage `json:"record"`
}

// lineCall is a call in the line of its plan.
type lineCall struct {
	Call      string       `json:"call"`
	Tool      string       `json:"tool"`
	CallID    string       `json:"call_id"`
	Key       string       `json:"key"`
	Arguments string       `json:"arguments"`
	Digest    string       `json:"digest"`
	Gate      journal.Gate `json:"gate"`
}

// Export returns the ledger as lines of JSON: one for each fact, and the head as the last. Each line
// of a fact has its record in the form of journal.AppendRecordJSON, and what people look for beside it.
// The errors are those of HeadOf; nothing is returned unless the whole ledger is sound.
func Export(run string, records []journal.Record) (lines []json.RawMessage, head Head, err error) {
	l, err := read(run, records)
	if err != nil {
		return nil, Head{}, err
	}
	if lines, err = l.lines(); err != nil {
		return nil, Head{}, err
	}
	head = l.head(len(l.leaves))
	last, err := head.MarshalJSON()
	return append(lines, last), head, err
}

func (l *ledger) lines() ([]json.RawMessage, error) {
	lines := make([]json.RawMessage, len(l.facts), len(l.facts)+1)
	b := newBook()
	for i, f := range l.facts {
		b.note(f)
		var err error
		if lines[i], err = marshal(b.in(f.Frame).line(f, &l.recs[i]), ""); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// line describes the fact that was noted last.
func (b *book) line(f journal.Fact, rec *journal.Record) *line {
	n := &line{Fact: b.facts, Time: stamp(f.Time), Kind: rec.Kind, Frame: f.Frame, Record: journal.AppendRecordJSON(nil, rec)}
	b.effect(n, effectOf(f.Body))
	switch d := f.Body.(type) {
	case *journal.Started:
		n.Run, n.Agent = d.Run, d.Agent
	case *journal.Forked:
		n.Run = d.Run
	case *journal.Claimed:
		n.Epoch = d.Epoch
		if d.Owner != (journal.Owner{}) {
			n.Driver = strconv.Itoa(d.Owner.PID) + "@" + d.Owner.Host
		}
	case *journal.Planned:
		for _, c := range b.calls {
			if c.ID.N == d.N {
				n.Calls = append(n.Calls, lineCall{machine.FrameName(b.frame, c.ID), c.Tool, c.CallID, c.Key, c.Arguments, c.plan.Digest.String(), cmp.Or(c.plan.Gate, "allow")})
			}
		}
	case *journal.Decided:
		n.Stage, n.Verdict, n.By, n.Why, n.Always = d.Stage, d.Verdict, d.By, d.Why, d.Sticky
		n.Arguments, n.Message = d.Arguments, d.Text
		if d.At != 0 {
			n.At = stamp(d.At)
		}
	case *journal.Expired:
		n.Stage = d.Stage
	case *journal.Settled:
		n.Outcome, n.Late, n.Error, n.Output = cmp.Or(d.Outcome, "done"), d.Late, d.Error, outputOf(d.Output)
	case *journal.Failed:
		n.Code, n.Error = d.Code, d.Error
	case *journal.Cancelled:
		n.By, n.Why = d.By, d.Why
	}
	return n
}

// effect says what effect a line is about, and names its call.
func (b *book) effect(n *line, id journal.EffectID) {
	if id == (journal.EffectID{}) {
		return
	}
	n.Effect = id.String()
	if id.Kind != journal.EffectTool {
		return
	}
	n.Call, n.Attempt = machine.FrameName(b.frame, id), id.A
	if c := b.find(id); c != nil {
		n.Tool, n.CallID, n.Key = c.Tool, c.CallID, machine.Key(b.run, b.frame, id)
	}
}

// approvalText is what the answer to an approval request says.
func approvalText(a item.ApprovalResponse) string {
	if a.Approve {
		return "approved"
	}
	return "not approved: " + a.Reason
}

func outputOf(it item.Item) string {
	if o, err := it.FunctionCallOutput(); err == nil {
		return o.Text
	}
	if a, err := it.ApprovalResponse(); err == nil {
		return approvalText(a)
	}
	o, _ := it.CustomToolCallOutput()
	return o.Text
}

// stamp writes a time for people and programs, in UTC.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// WriteExport writes the lines that Export returns, each with a line feed.
func WriteExport(w io.Writer, lines []json.RawMessage) error {
	for _, l := range lines {
		if _, err := w.Write(append(bytes.Clone(l), '\n')); err != nil {
			return err
		}
	}
	return nil
}

// ReadExport reads what WriteExport wrote. It trusts nothing in it: records are checked against their
// hashes, what stands beside them against the records, and the head against them all. The error wraps
// journal.ErrCorrupt, or journal.ErrNewerJournal if there is something that is not known here.
func ReadExport(export []byte) (run string, records []journal.Record, err error) {
	texts := bytes.Split(bytes.TrimSpace(export), []byte("\n"))
	texts, last := texts[:len(texts)-1], texts[len(texts)-1]
	var head Head
	if err := head.UnmarshalJSON(last); err != nil {
		return "", nil, fmt.Errorf("%w: the last line is not its head; it was cut short, or is no export: %w", journal.ErrCorrupt, err)
	}
	records = make([]journal.Record, len(texts))
	members := make([]map[string]string, len(texts))
	for i, text := range texts {
		if members[i], err = membersOf(text); err == nil {
			records[i], err = journal.ReadRecordJSON([]byte(members[i]["record"]))
		}
		if err != nil {
			return "", nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	l, err := read(head.Run, records)
	if err != nil {
		return "", nil, err
	}
	lines, err := l.lines()
	if err != nil {
		return "", nil, err
	}
	for i, text := range lines {
		if err := checkLine(members[i], text); err != nil {
			return "", nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if l.head(len(records)) != head {
		return "", nil, fmt.Errorf("%w: the last line is the head of another ledger", journal.ErrCorrupt)
	}
	return head.Run, records, nil
}

// membersOf returns the members of a JSON object, each in its canonical form.
func membersOf(text []byte) (map[string]string, error) {
	members := map[string]string{}
	err := jsonscan.UniqueObject(text, func(key, value []byte) error {
		canonical, err := jsonscan.AppendCanonical(nil, value, jsonscan.MaxDepth)
		members[string(key)] = string(canonical)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", journal.ErrCorrupt, err)
	}
	return members, nil
}

// checkLine compares the members of a line with those that its record gives. One that is not there is
// from a version that did not write it.
func checkLine(have map[string]string, want []byte) error {
	wants, err := membersOf(want)
	if err != nil {
		return err
	}
	if have["fact"] != wants["fact"] {
		return fmt.Errorf("%w: it says that it is fact %s", journal.ErrCorrupt, cmp.Or(have["fact"], "(none)"))
	}
	for key, value := range have {
		switch w, known := wants[key]; {
		case key == "record" || known && w == value:
		case known || slices.Contains(memberNames(), key):
			return fmt.Errorf("%w: its member %q is not what its record says", journal.ErrCorrupt, key)
		default:
			return fmt.Errorf("%w: member %q of a line", journal.ErrNewerJournal, key)
		}
	}
	return nil
}

// memberNames are the names of a line's members.
func memberNames() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[line]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
