package pawl

import (
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// StateSchema names the version of the RunState document.
const StateSchema = "pawl.run/1"

// StateJSONSchema is the JSON Schema of the RunState document.
//
//go:embed docs/runstate.schema.json
var StateJSONSchema string

// Bounds of a RunState document: what is larger or deeper is refused before
// anything of it is read.
const (
	MaxStateBytes = 1 << 30
	maxStateDepth = 64
)

func newSalt() (salt [16]byte) {
	rand.Read(salt[:])
	return salt
}

// MarshalJSON writes the state as a document of schema pawl.run/1: the ledger, and the
// decisions and input staged on this copy. The document may pass through any JSON tool: what
// must keep its bytes is held in strings.
//
// The document has what the model and the tools said, no credentials, and
// RunOptions.Context only as a ContextCodec wrote it. It is as trustworthy as whoever held it; Seal is for documents that
// leave trusted hands.
func (s *RunState) MarshalJSON() ([]byte, error) {
	if s.records.size == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrState)
	}
	size := 256
	records := s.records.list()
	for i := range records {
		size += len(records[i].Payload)*9/8 + 160
	}
	dst := make([]byte, 0, size)
	m := s.fold()
	dst = append(dst, `{"schema":"`+StateSchema+`","run":`...)
	dst = jsonscan.AppendString(dst, m.Run())
	dst = append(dst, `,"status":"`+string(s.Status())+`","epoch":`...)
	dst = strconv.AppendUint(dst, m.Epoch(), 10)
	dst = append(dst, `,"head":`...)
	dst = strconv.AppendInt(dst, int64(s.records.size), 10)
	dst = appendRecords(dst, `,"facts":[`, records)
	if len(s.unsaved) > 0 {
		dst = appendRecords(dst, `,"unsaved":[`, s.unsaved)
	}
	if len(s.staged) > 0 {
		dst = append(dst, `,"staged":[`...)
		for i, d := range s.staged {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = d.appendJSON(dst)
		}
		dst = append(dst, ']')
	}
	if len(s.input) > 0 {
		dst = appendRecords(dst, `,"input":[`, s.input)
	}
	return append(dst, '}'), nil
}

func appendRecords(dst []byte, open string, records []journal.Record) []byte {
	dst = append(dst, open...)
	for i := range records {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = journal.AppendRecordJSON(dst, &records[i])
	}
	return append(dst, ']')
}

// UnmarshalJSON reads a document. ErrNewerState for one of a newer schema,
// ErrState for one that is cut short, damaged or edited, or whose facts do not follow
// from each other; the state is unchanged then.
func (s *RunState) UnmarshalJSON(data []byte) error {
	read, err := ParseRunState(data)
	if err != nil {
		return err
	}
	*s = *read
	return nil
}

// ParseRunState reads a document that MarshalJSON wrote; see UnmarshalJSON for its
// errors.
func ParseRunState(data []byte) (*RunState, error) {
	if len(data) > MaxStateBytes {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrState, MaxStateBytes)
	}
	if err := jsonscan.Valid(data, maxStateDepth); err != nil {
		return nil, because(ErrState, err)
	}
	if err := checkSchema(data); err != nil {
		return nil, err
	}
	s, err := readState(data)
	switch {
	case errors.Is(err, journal.ErrNewerJournal), errors.Is(err, ErrNewerState):
		return nil, because(ErrNewerState, err)
	case err != nil:
		return nil, because(ErrState, err)
	}
	return s, nil
}

// checkSchema reads the schema's name before anything else is interpreted.
func checkSchema(data []byte) error {
	schema := ""
	err := jsonscan.Object(data, func(key, value []byte) (err error) {
		if string(key) == "schema" {
			schema, err = jsonscan.String(value)
		}
		return err
	})
	switch {
	case err != nil:
		return because(ErrState, err)
	case schema == StateSchema:
		return nil
	case len(schema) > 9 && schema[:9] == StateSchema[:9]:
		return fmt.Errorf("%w: its schema is %q, this version reads %s", ErrNewerState, schema, StateSchema)
	}
	return fmt.Errorf("%w: its schema is %q", ErrState, schema)
}

func readState(data []byte) (*RunState, error) {
	s := &RunState{}
	head, run := int64(-1), ""
	var records []journal.Record
	err := jsonscan.UniqueObject(data, func(key, value []byte) (err error) {
		switch string(key) {
		case "schema", "status", "epoch":
		case "run":
			run, err = jsonscan.String(value)
		case "head":
			head, err = jsonscan.Int(value)
		case "facts":
			records, err = readRecords(value)
		case "unsaved":
			s.unsaved, err = readRecords(value)
		case "input":
			s.input, err = readRecords(value)
		case "staged":
			err = jsonscan.Array(value, func(v []byte) error {
				d, err := readDecision(v)
				s.staged = append(s.staged, d)
				return err
			})
		default:
			return fmt.Errorf("%w: member %q", ErrNewerState, key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if head != int64(len(records)) {
		return nil, fmt.Errorf("the document has %d facts and says %d", len(records), head)
	}
	s.records = ledgerOf(records)
	if s.machine, err = replay(records); err != nil {
		return nil, err
	}
	if run != s.machine.Run() {
		return nil, fmt.Errorf("the document says run %q, its facts %q", run, s.machine.Run())
	}
	for i := range s.unsaved {
		if _, err := journal.Decode(s.unsaved[i]); err != nil {
			return nil, err
		}
	}
	if err := s.checkInput(); err != nil {
		return nil, err
	}
	return s, s.checkStaged()
}

// checkStaged stages the decisions of a document anew: one that Decide would refuse was
// put there by somebody else.
func (s *RunState) checkStaged() error {
	staged := s.staged
	s.staged = nil
	for _, d := range staged {
		var refused *RunError
		switch err := s.Decide(d); {
		case errors.Is(err, ErrCallInFlight): // by a clock that is ahead of ours
			s.staged = append(s.staged, d)
		case errors.As(err, &refused):
			return refused.Err
		}
	}
	return nil
}

func readRecords(value []byte) (records []journal.Record, err error) {
	err = jsonscan.Array(value, func(v []byte) error {
		r, err := journal.ReadRecordJSON(v)
		records = append(records, r)
		return err
	})
	return records, err
}

// decisionMembers lists the text members of a staged decision.
func (d *Decision) decisionMembers() []struct {
	name string
	text *string
} {
	return []struct {
		name string
		text *string
	}{
		{"interruption", &d.Interruption}, {"verdict", (*string)(&d.Verdict)}, {"by", &d.By}, {"why", &d.Why},
		{"arguments", &d.Arguments}, {"message", &d.Message}, {"output", &d.Output},
	}
}

func (d Decision) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"always":`...)
	dst = strconv.AppendBool(dst, d.Always)
	for _, m := range d.decisionMembers() {
		if *m.text != "" {
			dst = append(dst, `,"`+m.name+`":`...)
			dst = jsonscan.AppendString(dst, *m.text)
		}
	}
	if !d.Digest.IsZero() {
		dst = append(dst, `,"digest":"`+d.Digest.String()+`"`...)
	}
	return append(dst, '}')
}

// UnmarshalJSON reads a decision by the exact names of its members. The error wraps
// ErrDecision for a member that is unknown or there twice, and for an unknown verdict;
// the decision is unchanged then.
func (d *Decision) UnmarshalJSON(data []byte) error {
	if jsonscan.IsNull(data) {
		return nil
	}
	read, err := readDecision(data)
	if err != nil {
		return because(ErrDecision, err)
	}
	*d = read
	return nil
}

func readDecision(value []byte) (d Decision, err error) {
	members := d.decisionMembers()
	err = jsonscan.UniqueObject(value, func(key, v []byte) (err error) {
		switch string(key) {
		case "always":
			d.Always, err = jsonscan.Bool(v)
			return err
		case "digest":
			text, err := jsonscan.String(v)
			if err == nil {
				d.Digest, err = item.ParseDigest(text)
			}
			return err
		}
		for _, m := range members {
			if m.name == string(key) {
				*m.text, err = jsonscan.String(v)
				return err
			}
		}
		return fmt.Errorf("%w: member %q of a decision", ErrNewerState, key)
	})
	if err != nil {
		return Decision{}, err
	}
	switch d.Verdict {
	case journal.Approve, journal.Reject, journal.Settle, journal.Retry, journal.GiveUp:
		return d, nil
	}
	return Decision{}, fmt.Errorf("%w: verdict %q", ErrNewerState, d.Verdict)
}
