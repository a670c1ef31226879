package temporal

import (
	"encoding/base64"

	"github.com/pawl-agents/pawl/internal/steps"
	"github.com/pawl-agents/pawl/journal"
)

// What stands in the history of a workflow. A member never changes its meaning: histories are
// replayed for as long as runs are open.

// The names of what a workflow has and calls.
const (
	workflowName = "pawl-run"

	performName = "pawl-perform"
	openName    = "pawl-open"
	factsName   = "pawl-facts"
	closeName   = "pawl-close"

	messageName = "pawl-message" // signal and update
	resumeName  = "pawl-resume"  // signal
	stateName   = "pawl-state"   // query
)

// fact is a fact without its salt, which stands in the run's store only.
type fact struct {
	Kind    journal.Kind `json:"k"`
	Version int          `json:"v"`
	Frame   string       `json:"f,omitempty"`
	Time    int64        `json:"t,omitempty"`
	Payload string       `json:"p,omitempty"`
	// Bytes is the payload where a text would take more room: JSON in JSON may take six times as much.
	Bytes []byte `json:"b,omitempty"`
}

func encode(f journal.Fact) fact { return encode1(journal.Encode(f, [16]byte{})) }

// encode1 is encode of a fact that is a record.
func encode1(rec journal.Record) fact {
	f := fact{Kind: rec.Kind, Version: rec.Version, Frame: rec.Frame, Time: rec.Time, Payload: rec.Payload}
	if n := len(rec.Payload); n > smallPayload && quoted(rec.Payload) > base64.StdEncoding.EncodedLen(n) {
		f.Payload, f.Bytes = "", []byte(rec.Payload)
	}
	return f
}

// smallPayload is a size, in bytes, up to which a text is more readable than short.
const smallPayload = 4 << 10

// quoted is about how long a text is in JSON.
func quoted(s string) int {
	n := len(s)
	for i := range len(s) {
		switch s[i] {
		case '"', '\\':
			n++
		case '<', '>', '&':
			n += 5
		}
	}
	return n
}

// size is about how many bytes a fact has in a history.
func (f fact) size() int {
	return quoted(f.Payload) + base64.StdEncoding.EncodedLen(len(f.Bytes)) + len(f.Frame) + 100
}

func encodeAll(facts []journal.Fact) []fact {
	list := make([]fact, len(facts))
	for i, f := range facts {
		list[i] = encode(f)
	}
	return list
}

func (f fact) record() journal.Record {
	return journal.Record{Kind: f.Kind, Version: f.Version, Frame: f.Frame, Time: f.Time, Payload: f.Payload + string(f.Bytes)}
}

func (f fact) decode() (journal.Fact, error) { return journal.Decode(f.record()) }

func decodeAll(list []fact) ([]journal.Fact, error) {
	facts := make([]journal.Fact, len(list))
	for i, f := range list {
		var err error
		if facts[i], err = f.decode(); err != nil {
			return nil, err
		}
	}
	return facts, nil
}

// message is an entry of a run's inbox.
type message struct {
	Key  string `json:"key"`
	Fact fact   `json:"fact"`
}

func encodeMessage(e journal.Entry) message {
	return message{e.Key, encode1(e.Body)}
}

func (m message) entry() journal.Entry { return journal.Entry{Key: m.Key, Body: m.Fact.record()} }

func encodeMessages(entries []journal.Entry) []message {
	var list []message
	for _, e := range entries {
		list = append(list, encodeMessage(e))
	}
	return list
}

func entries(list []message) []journal.Entry {
	var all []journal.Entry
	for _, m := range list {
		all = append(all, m.entry())
	}
	return all
}

// runInput starts a workflow, or goes on with one.
type runInput struct {
	Run string `json:"run"`
	// Epoch and Saved are what the workflow before left.
	Epoch  uint64   `json:"epoch,omitempty"`
	Saved  *saved   `json:"saved,omitempty"`
	Tokens []string `json:"tokens,omitempty"`
}

// saved is a steps.Saved.
type saved struct {
	Delta   delta     `json:"delta"`
	Consume []string  `json:"consume,omitempty"`
	Seen    []string  `json:"seen,omitempty"`
	Early   []message `json:"early,omitempty"`
}

func encodeSaved(s steps.Saved) *saved {
	return &saved{Delta: encodeDelta(s.Delta), Consume: s.Delta.Consume, Seen: s.Seen, Early: encodeMessages(s.Early)}
}

func (s *saved) decode() (steps.Saved, error) {
	facts, err := decodeAll(s.Delta.Facts)
	return steps.Saved{Delta: steps.Delta{After: s.Delta.After, Facts: facts, Consume: s.Consume}, Seen: s.Seen, Early: entries(s.Early)}, err
}

// delta is what the projection lacks. It is an argument of its own: steps that begin together
// share its bytes, where large ones are stored by their content.
type delta struct {
	After uint64 `json:"after"`
	Facts []fact `json:"facts,omitempty"`
}

func encodeDelta(d steps.Delta) delta { return delta{d.After, encodeAll(d.Facts)} }

// maxPayload is how many bytes of facts stand in one payload where nothing keeps larger ones. The
// server takes 2 MB.
const maxPayload = 1900 << 10

// fits returns how many of the facts, from the first on, have a place in one payload.
func fits(facts []fact) int {
	size := 0
	for i, f := range facts {
		if size += f.size(); size > maxPayload {
			return i
		}
	}
	return len(facts)
}

// whole says that a delta has a place in a payload, or has to find one elsewhere.
func (d delta) whole() bool { return len(d.parts()) == 1 }

// parts are a delta in pieces that each have a place in a payload. A fact that has none by itself is kept elsewhere as it
// is, and so is the delta then.
func (d delta) parts() []delta {
	var list []delta
	for rest := d; ; {
		n := fits(rest.Facts)
		switch {
		case n == len(rest.Facts):
			return append(list, rest)
		case n == 0:
			return []delta{d}
		}
		list = append(list, delta{rest.After, rest.Facts[:n]})
		rest = delta{rest.After + uint64(n), rest.Facts[n:]}
	}
}

// stepInput is a step of a run.
type stepInput struct {
	Run     string   `json:"run"`
	Epoch   uint64   `json:"epoch"`
	Frame   string   `json:"frame,omitempty"`
	Effect  string   `json:"effect,omitempty"`
	Consume []string `json:"consume,omitempty"`
	// Once says that there is no second attempt.
	Once bool `json:"once,omitempty"`
}

// stepResult is what came of it.
type stepResult struct {
	Outcome *fact     `json:"outcome,omitempty"`
	Stored  *fact     `json:"stored,omitempty"`
	Inbox   []message `json:"inbox,omitempty"`
}

// openInput claims a run.
type openInput struct {
	Run string `json:"run"`
	// Lost are the events with which the activities began that are lost.
	Lost []int64 `json:"lost,omitempty"`
	// Facts asks for what the projection has behind After facts.
	Facts bool   `json:"facts,omitempty"`
	After uint64 `json:"after,omitempty"`
}

// openResult is a claimed run.
type openResult struct {
	Claimed fact   `json:"claimed"`
	Facts   []fact `json:"facts,omitempty"`
	// Upto is how many facts the projection has, if these are not all.
	Upto uint64 `json:"upto,omitempty"`
}

// closeInput ends a claim.
type closeInput struct {
	Run   string `json:"run"`
	Epoch uint64 `json:"epoch"`
}

// resumeInput asks a run to go on.
type resumeInput struct {
	Token string `json:"token"`
	Fact  fact   `json:"fact"`
}

// runState answers the query.
type runState struct {
	Status string `json:"status"`
	// Facts is how many facts the run has.
	Facts uint64 `json:"facts"`
	// Code and Text say why the run is not driven on before somebody resumes it.
	Code   string   `json:"code,omitempty"`
	Text   string   `json:"text,omitempty"`
	Tokens []string `json:"tokens,omitempty"`
}
