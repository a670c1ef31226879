package timeline

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// ledger has a fact of every kind, in an order a run could have them, more or less.
func ledger() []journal.Body {
	id := func(kind journal.EffectKind, n, p, a int) journal.EffectID {
		return journal.EffectID{Kind: kind, N: n, P: p, A: a}
	}
	tool := func(p, a int) journal.EffectID { return id(journal.EffectTool, 1, p, a) }
	fc := func(callID, name string) item.Item { return item.FunctionCallItem("", callID, name, `{"x":1}`) }
	out := func(callID, text string) item.Item { return item.FunctionOutput(callID, text) }
	return []journal.Body{
		&journal.Started{Run: "r", Agent: "a", Input: []item.Item{item.UserText("hello")}, Session: &journal.SessionRef{ID: "s", Backend: "memory"}},
		&journal.Forked{Run: "f"},
		&journal.Claimed{Epoch: 3, Owner: journal.Owner{Host: "h", PID: 7}},
		&journal.Loaded{Items: []item.Item{item.UserText("old")}, Healed: []item.Item{out("c0", "unknown")}},
		&journal.Prepared{N: 1, Same: 1, Manifest: &journal.Manifest{Tools: []journal.ToolSpec{{Name: "pay"}, {Name: "read"}}}},
		&journal.Intended{ID: id(journal.EffectModel, 1, 0, 2)},
		&journal.Responded{ID: id(journal.EffectModel, 1, 0, 2), Items: []item.Item{item.MessageItem("", "I will."), fc("c1", "pay"), fc("c2", "read"), fc("c3", "fly"), fc("c1", "pay")}},
		&journal.Planned{N: 1, Calls: []journal.PlannedCall{{P: 1, Gate: journal.Ask}, {P: 2, Tool: 1, Unreadable: true, Output: out("c2", "bad")}, {P: 3, Tool: -1, Output: out("c3", "none")}, {P: 4, Twin: true}}},
		&journal.Planned{N: 1, Calls: []journal.PlannedCall{{P: 1, Gate: journal.Deny}, {P: 2, Tool: 1, Output: out("c2", "again")}}},
		&journal.Decided{Call: tool(1, 0), Verdict: journal.Approve, By: "ada", Arguments: `{"x":2}`, Sticky: true, Why: "fine"},
		&journal.Decided{Call: tool(1, 0), Verdict: journal.Reject, Text: "no"},
		&journal.Intended{ID: tool(1, 1)},
		&journal.Intended{ID: tool(1, 2)},
		&journal.Settled{ID: tool(1, 2), Outcome: journal.Done, Output: out("c1", "paid")},
		&journal.Settled{ID: tool(1, 1), Outcome: journal.Unknown, Output: out("c1", "who knows"), Late: true},
		&journal.Settled{ID: tool(2, 1), Outcome: journal.NotExecuted},
		&journal.Settled{ID: tool(2, 2), Outcome: journal.AsksAgain, Error: "All of it?"},
		&journal.Settled{ID: tool(2, 3), Outcome: journal.Pending},
		&journal.Settled{ID: tool(2, 4), Outcome: journal.Unknown, Output: out("c2", "who knows"), Running: true},
		&journal.Expired{Call: tool(2, 0), Stage: 1},
		&journal.Judged{N: 1, Final: true, Text: "done"},
		&journal.Intended{ID: id(journal.EffectSession, 2, 0, 1), Upto: 4},
		&journal.Absent{ID: id(journal.EffectSession, 2, 0, 1)},
		&journal.Confirmed{N: 2, Upto: 4, Found: true},
		&journal.Failed{ID: id(journal.EffectModel, 2, 0, 1), Code: "model", Error: "pawl: it broke"},
		&journal.Fired{ID: id(journal.EffectWait, 2, 0, 1)},
		&journal.Resumed{MaxTurns: 40},
		&journal.Cancelled{By: "bob", Why: "enough"},
		&journal.Finished{Cancelled: true, At: -1},
		&journal.Finished{At: -1, Text: "bye"},
	}
}

func records(bodies []journal.Body) []journal.Record {
	var recs []journal.Record
	for i, b := range bodies {
		recs = append(recs, journal.Encode(journal.Fact{Time: int64(1000 * i), Body: b}, [16]byte{}))
	}
	return recs
}

func TestOf(t *testing.T) {
	entries, err := Of(records(ledger()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.What+" | "+e.Text)
	}
	want := []string{
		"started | agent a, session s in memory",
		"input | hello",
		"forked | a run of its own from here, called f",
		"driver | process 7 on h takes the run, claim 3",
		"session | read: 1 items, and outputs made for 1 calls that had none",
		"turn | 1: the model is asked, with 2 tools",
		"model | is asked again, attempt 2 of turn 1",
		"model | I will.",
		`call | pay {"x":1} [1.1]`,
		`call | read {"x":1} [1.2]`,
		`call | fly {"x":1} [1.3]`,
		`call | pay {"x":1} [1.4]`,
		"plan | pay [1.1] needs approval",
		"plan | read [1.2] has arguments that the tool cannot read",
		"plan | fly [1.3] is no tool of the agent; the model is told so",
		"plan | pay [1.4] repeats a call and is dropped",
		"plan | pay [1.1] is denied by its rule",
		"plan | read [1.2] is answered from the record",
		`decision | pay [1.1] is approved by ada, like every call of the tool, with other arguments: {"x":2}: fine`,
		"decision | pay [1.1] is rejected by nobody named: no",
		"tool | pay [1.1] begins",
		"tool | pay [1.1] begins again, attempt 2, same key",
		"tool | pay [1.1] returns: paid",
		"tool | pay [1.1] has an unknown outcome (too late to count): who knows",
		"tool | read [1.2] was not begun after all",
		"tool | read [1.2] has done nothing yet and asks a person first: All of it?",
		"tool | read [1.2] has begun something; its result comes later",
		"tool | read [1.2] has an unknown outcome (its body had not returned): who knows",
		"expired | nobody decided read [1.2] in time",
		"verdict | the tool-use function says: final true: done",
		"session | batch 2 for the session begins",
		"read back | batch 2 for the session did not happen",
		"session | has the first 4 items of the history (batch 2, found when it was read back)",
		"failed | the model call of turn 2: it broke",
		"wait | is over",
		"resumed | what failed is tried again, with at most 40 turns",
		"cancel | asked for by bob: enough",
		"cancelled | the run is over",
		"finished | the run has its final output: bye",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
	if e := entries[3]; e.Fact != 3 || e.Kind != journal.KindClaimed || !e.Time.Equal(time.UnixMilli(2000)) {
		t.Errorf("entry %+v", e)
	}
}

// What a hosted MCP server asks is told as a call that is answered.
func TestOfHosted(t *testing.T) {
	ask := func(id string) item.Item {
		return item.FromTrusted(`{"type":"mcp_approval_request","id":"` + id + `","server_label":"crm","name":"drop","arguments":"{}"}`)
	}
	entries, err := Of(records([]journal.Body{
		&journal.Responded{ID: journal.EffectID{Kind: journal.EffectModel, N: 1, A: 1}, Items: []item.Item{ask("m1"), ask("m2")}},
		&journal.Settled{ID: journal.EffectID{Kind: journal.EffectTool, N: 1}, Outcome: journal.Decreed, Output: item.ApprovalReply("m1", true, "")},
		&journal.Settled{ID: journal.EffectID{Kind: journal.EffectTool, N: 1, P: 1}, Outcome: journal.Rejected, Output: item.ApprovalReply("m2", false, "no")},
	}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.What+" | "+e.Text)
	}
	want := []string{"call | drop of crm {} [1.0]", "call | drop of crm {} [1.1]", "tool | drop [1.0] is answered: approved", "tool | drop [1.1] is answered: not approved: no"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOfDamaged(t *testing.T) {
	recs := records(ledger())
	recs[4].Payload = `{"n":`
	if _, err := Of(recs); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("damaged: %v", err)
	}
	recs = records(ledger())
	recs[4].Kind = "unheard-of"
	if _, err := Of(recs); !errors.Is(err, journal.ErrNewerJournal) {
		t.Errorf("newer: %v", err)
	}
}

// The story of a nested run stands in that of its caller, and says whose it is.
func TestNestedRun(t *testing.T) {
	call := func(id, name string) journal.Body {
		return &journal.Responded{ID: journal.EffectID{Kind: journal.EffectModel, N: 1, A: 1}, Items: []item.Item{item.FunctionCallItem("", id, name, `{}`)}}
	}
	tool := func(n, a int) journal.EffectID { return journal.EffectID{Kind: journal.EffectTool, N: n, A: a} }
	var recs []journal.Record
	for _, f := range []journal.Fact{
		{Body: call("c1", "clerk")},
		{Frame: "1.0", Body: &journal.Started{Agent: "Clerk"}},
		{Frame: "1.0", Body: call("c1", "pay")},
		{Frame: "1.0", Body: &journal.Intended{ID: tool(1, 1)}},
		{Frame: "1.0", Body: &journal.Finished{At: -1, Text: "paid"}},
		{Body: &journal.Settled{ID: tool(1, 1), Output: item.FunctionOutput("c1", "paid")}},
	} {
		recs = append(recs, journal.Encode(f, [16]byte{}))
	}
	entries, err := Of(recs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.What+" "+e.Text)
	}
	want := []string{
		"call clerk {} [1.0]",
		"started in 1.0: agent Clerk",
		"call in 1.0: pay {} [1.0/1.0]",
		"tool in 1.0: pay [1.0/1.0] begins",
		"finished in 1.0: the nested run has its final output: paid",
		"tool clerk [1.0] returns: paid",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOfGuardrails(t *testing.T) {
	call := journal.EffectID{Kind: journal.EffectTool, N: 1, P: 0}
	attempt := call
	attempt.A = 1
	check := journal.EffectID{Kind: journal.EffectCheck, N: 1, A: 1}
	out := item.FunctionOutput("c1", "no")
	entries, err := Of(records([]journal.Body{
		&journal.Checked{ID: journal.EffectID{Kind: journal.EffectGuard, A: 1}, Checks: []journal.Check{{Name: "polite", Info: `"ok"`}}},
		&journal.Responded{Items: []item.Item{item.FunctionCallItem("", "c1", "pay", "{}")}},
		&journal.Planned{N: 1, Calls: []journal.PlannedCall{{P: 0, Output: out, Checks: []journal.Check{{Name: "limit", Rejected: true}}}}},
		&journal.Checked{ID: check, Checks: []journal.Check{{Name: "limit", Rejected: true}}, Output: out},
		&journal.Checked{ID: check},
		&journal.Failed{ID: check, Error: "pawl: it broke"},
		&journal.Failed{ID: journal.EffectID{Kind: journal.EffectGuard, A: 1}, Error: "pawl: it broke"},
		&journal.Failed{ID: journal.EffectID{Kind: journal.EffectOutput, N: 2, A: 1}, Error: "pawl: it broke"},
		&journal.Settled{ID: attempt, Output: out, Checks: []journal.Check{{Name: "pii", Tripped: true}}},
		&journal.Checked{ID: journal.EffectID{Kind: journal.EffectOutput, N: 1, A: 1}, Checks: []journal.Check{{Name: "secrets", Tripped: true}}},
		&journal.Finished{Cancelled: true, Tripped: true, At: -1},
	}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.What+" | "+e.Text)
	}
	want := []string{
		`guardrail | polite lets the input pass: "ok"`,
		`call | pay {} [1.0]`,
		`guardrail | limit rejects pay [1.0]`,
		`plan | pay [1.0] is answered, not run: no`,
		`guardrail | limit rejects pay [1.0]`,
		`tool | pay [1.0] is answered, not run: no`,
		`guardrail | nobody is asked any more`,
		`failed | the guardrails on call 1.0: it broke`,
		`failed | the guardrails on the input: it broke`,
		`failed | the guardrails on the final output: it broke`,
		`guardrail | pii trips on the output of pay [1.0]`,
		`tool | pay [1.0] returns: no`,
		`guardrail | secrets trips on the final output`,
		`tripped | a guardrail has ended the run`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
