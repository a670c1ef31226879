package steps

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// played is a host that hands out what a test wrote down, and writes down what it is asked.
type played struct {
	t      *testing.T
	now    int64
	script [][]Event // one line for each Wait
	log    []string
	full   bool
	opened uint64
	facts  []journal.Fact // what the projection has
	commit *journal.Fact  // what a step that is lost has committed behind them
}

// play drives a run of the tools through a script to its end, or to where its loop is full.
func play(t *testing.T, h *played, facts ...journal.Fact) *Driver {
	t.Helper()
	h.t, h.now, h.facts = t, 1000, facts
	l, err := Open(facts)
	if err == nil {
		err = l.Step(&journal.Claimed{Epoch: 1}, h.now)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := NewDriver(l, h, 1)
	over, err := d.Run()
	if err != nil || over == h.full {
		t.Fatalf("over: %v, %v", over, err)
	}
	return d
}

func (h *played) says(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

// did compares what the host was asked to do.
func (h *played) did(want string) {
	h.t.Helper()
	if diff := cmp.Diff(strings.Fields(strings.ReplaceAll(strings.TrimSpace(want), " ", "_")), strings.Fields(strings.ReplaceAll(strings.Join(h.log, "\n"), " ", "_"))); diff != "" {
		h.t.Errorf("(-want +got)\n%s", diff)
	}
}

func (h *played) Now() int64 { return h.now }

// Start writes down what the projection will have with the step.
func (h *played) Start(r Request) {
	h.facts = append(h.facts[:min(int(r.Delta.After), len(h.facts))], r.Delta.Facts...)
	of := "nothing"
	if r.Of != (Ref{}) {
		of = r.Of.ID.String()
	}
	line := fmt.Sprintf("start %s %d+%d", of, r.Delta.After, len(r.Delta.Facts))
	if r.Once {
		line += " once"
	}
	if r.Epoch != 1 {
		line += fmt.Sprintf(" epoch %d", r.Epoch)
	}
	if len(r.Delta.Consume) > 0 {
		line += fmt.Sprintf(" consume %v", r.Delta.Consume)
	}
	h.log = append(h.log, line)
}

func (h *played) Cancel(of Ref) { h.says("cancel %s", of.ID) }

func (h *played) Wait(until int64) []Event {
	if until > 0 && until <= h.now { // a look at what is there already
		return nil
	}
	if len(h.script) == 0 {
		h.t.Fatalf("it waits for ever, after\n%s", strings.Join(h.log, "\n"))
	}
	events := h.script[0]
	h.script = h.script[1:]
	if until > 0 {
		h.says("wait %d", until)
	}
	if len(events) == 0 {
		h.now = until
	}
	return events
}

func (h *played) Open(lost []string, after uint64) (*journal.Claimed, []journal.Fact) {
	h.opened++
	h.says("open, lost %q", lost)
	if h.commit != nil {
		h.facts = append(h.facts, *h.commit)
		h.commit = nil
	}
	return &journal.Claimed{Epoch: 1 + h.opened}, h.facts[min(int(after), len(h.facts)):]
}

func (h *played) Close(epoch uint64) { h.says("close %d", epoch) }

func (h *played) Full() bool { return h.full && len(h.script) == 0 }

func ref(t *testing.T, of string) Ref {
	t.Helper()
	id, err := journal.ParseEffectID(of)
	if err != nil {
		t.Fatal(err)
	}
	return Ref{ID: id}
}

// begun is the ledger of a run before its first claim.
func begun() journal.Fact {
	return journal.Fact{Time: 1000, Body: &journal.Started{Run: "r", Agent: "clerk", Input: []item.Item{item.UserText("go")}}}
}

func came(events ...Event) []Event { return events }

func ended(t *testing.T, of string, outcome journal.Body) Event {
	t.Helper()
	return Event{End: &End{Of: ref(t, of), Outcome: outcome}}
}

func failed(t *testing.T, of string, f Failure) Event {
	t.Helper()
	return Event{End: &End{Of: ref(t, of), Failure: &f}}
}

// recorded is the end of a step without an effect.
func recorded(inbox ...journal.Entry) []Event { return came(Event{End: &End{Inbox: inbox}}) }

func message(key string, b journal.Body) journal.Entry {
	return journal.Entry{Key: key, Body: journal.Encode(journal.Fact{Body: b}, [16]byte{})}
}

// turn is a turn in which the model calls every tool once, up to the plan.
func turn(t *testing.T, tools ...journal.ToolSpec) [][]Event {
	t.Helper()
	var calls []item.Item
	plan := &journal.Planned{N: 1}
	for i, tool := range tools {
		digest, _, err := item.DigestArguments("{}")
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, item.FunctionCallItem("", fmt.Sprint("c", i), tool.Name, "{}"))
		plan.Calls = append(plan.Calls, journal.PlannedCall{P: i, Tool: i, Digest: digest})
	}
	return [][]Event{
		came(ended(t, "p1.0.1", &journal.Prepared{N: 1, Upto: 1, Same: 1, Manifest: &journal.Manifest{Agent: "clerk", Tools: tools}})),
		came(ended(t, "m1.0.1", &journal.Responded{ID: ref(t, "m1.0.1").ID, Items: calls})),
		came(ended(t, "c1.0.1", plan)),
	}
}

// last is the turn in which the model has done, behind so many items.
func last(t *testing.T, upto int) [][]Event {
	t.Helper()
	return [][]Event{
		came(ended(t, "p2.0.1", &journal.Prepared{N: 2, Upto: upto, Same: 1})),
		came(ended(t, "m2.0.1", &journal.Responded{ID: ref(t, "m2.0.1").ID, Items: []item.Item{item.AssistantText("done")}})),
		came(ended(t, "c2.0.1", &journal.Planned{N: 2, Final: journal.FinalMessage})),
		recorded(),
	}
}

func settled(t *testing.T, of, callID string) *journal.Settled {
	t.Helper()
	return &journal.Settled{ID: ref(t, of).ID, Output: item.FunctionOutput(callID, "paid")}
}

func spec(name string, class journal.Class) journal.ToolSpec {
	return journal.ToolSpec{Name: name, Identity: "local/" + name, Class: class}
}
