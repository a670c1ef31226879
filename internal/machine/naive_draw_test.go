package machine_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// draw makes the values of a run. rapid prefers the first of several values, so the plainest stand first.
type draw struct {
	t      *rapid.T
	serial int
	tools  []journal.ToolSpec
}

func pick[T any](d *draw, what string, values ...T) T {
	return rapid.SampledFrom(values).Draw(d.t, what)
}

func (d *draw) maybe(what string) bool { return rapid.Bool().Draw(d.t, what) }

// seldom is true once in 2^n times.
func (d *draw) seldom(n int, what string) bool {
	for range n {
		if !d.maybe(what) {
			return false
		}
	}
	return true
}

func (d *draw) next(prefix string) string {
	d.serial++
	return fmt.Sprint(prefix, d.serial)
}

func (d *draw) message() item.Item { return item.MessageItem("", d.next("message ")) }

func (d *draw) session() *journal.SessionRef {
	return &journal.SessionRef{ID: d.next("s"), Backend: "b", Own: d.maybe("own"), Batches: d.maybe("batches")}
}

func (d *draw) started() *journal.Started {
	b := &journal.Started{Run: "r", Agent: "a", Machine: machine.Version, Input: []item.Item{item.UserText(d.next("input "))},
		MaxTurns: pick(d, "max turns", 0, 0, 0, 1, 3), Parallel: pick(d, "parallel", 0, 1, 2), UniqueCallIDs: d.maybe("unique"), Guards: d.guards(), Context: pick(d, "context", "", "one")}
	switch pick(d, "mode", "plain", "session", "session", "session", "conversation", "conversation", "previous", "auto") {
	case "session":
		b.Session = d.session()
	case "conversation":
		b.Conversation = "conv"
	case "previous":
		b.Previous = "p0"
		b.Auto = d.maybe("auto")
	case "auto":
		b.Auto = true
	}
	for _, name := range []string{"read", "put", "boss", "pay", "mail"} {
		d.tools = append(d.tools, d.tool(name))
	}
	d.tools[2].Agent, d.tools[2].Handoff = "b", ""
	return b
}

func (d *draw) tool(name string) journal.ToolSpec {
	return journal.ToolSpec{
		Name:      name,
		Identity:  pick(d, "identity", name, name, "shared", ""),
		Class:     pick(d, "class", journal.AtMostOnce, journal.Idempotent, journal.AtMostOnce, journal.Transactional, journal.ReadOnly, journal.Class("new")),
		Timeout:   pick(d, "timeout", int64(0), 1000, -1),
		OnUnknown: pick(d, "on unknown", journal.UnknownWait, journal.UnknownTell, journal.UnknownDefault),
		Guarded:   d.seldom(2, "guarded tool"),
		Handoff:   pick(d, "handoff", "", "", "", "", "", "b", "a"),
		Recover:   d.maybe("recover"), Expires: pick(d, "expires", int64(0), 0, 1500, 400_000, -1), ExpiryFails: d.maybe("expiry fails"), TellFailure: d.maybe("tell failure"),
	}
}

func (d *draw) loaded(w *world) *journal.Loaded {
	b := &journal.Loaded{}
	if d.maybe("has history") {
		id := d.next("old")
		b.Items = []item.Item{item.UserText(id), item.FunctionCallItem("", id, "read", "{}")}
		b.Healed = []item.Item{item.FunctionOutput(id, "healed")}
	}
	b.View = d.view(slices.Concat(b.Items, b.Healed, w.start.Input), nil)
	return b
}

func (d *draw) prepared(w *world) *journal.Prepared {
	b := &journal.Prepared{N: len(w.turns) + 1, Upto: w.mark(), Same: 1}
	delivered := w.delivered
	if !w.managed() {
		delivered = nil
	}
	b.View = d.view(w.shown()[:b.Upto], delivered)
	if b.N > 1 && w.turns[0].manifest.Agent == w.agent && d.maybe("same manifest") {
		return b
	}
	b.Same = b.N
	b.Manifest = &journal.Manifest{Agent: w.agent, Tools: d.tools[:pick(d, "tools", 5, 4, 3, 2)], ToolUse: pick(d, "tool use",
		machine.ToolUseAgain, machine.ToolUseAgain, machine.ToolUseCustom, machine.ToolUseCustom, machine.ToolUseNames, machine.ToolUseFirst)}
	d.guarded(w, b.Manifest)
	if b.Manifest.ToolUse == machine.ToolUseNames {
		b.Manifest.StopAt = []string{pick(d, "stop at", "pay", "read")}
	}
	return b
}

// call draws a call, perhaps one that was made before.
func (d *draw) call(w *world, sofar []item.Item) item.Item {
	if d.seldom(2, "again") {
		for _, r := range w.responses {
			sofar = append(sofar[:len(sofar):len(sofar)], r.items...)
		}
		if len(sofar) > 0 {
			return pick(d, "which", sofar...)
		}
	}
	name := pick(d, "tool", "pay", "read", "put", "boss", "mail", "boss", "other")
	if d.seldom(3, "custom") {
		it, _ := item.ParseString(fmt.Sprintf(`{"type":"custom_tool_call","call_id":%q,"name":%q,"input":"text","caller":{"type":"program"}}`, d.next("c"), name))
		return it
	}
	if d.seldom(3, "hosted") {
		it, _ := item.ParseString(fmt.Sprintf(`{"type":"mcp_approval_request","id":%q,"server_label":"crm","name":%q,"arguments":%q}`, d.next("m"), name,
			pick(d, "arguments", `{"a":1}`, `{"a"`)))
		return it
	}
	return item.FunctionCallItem("", d.next("c"), name, pick(d, "arguments", `{"a":1}`, `{"a": 2}`, `{"a":1}`, `{"a"`))
}

func hosted(kind string) item.Item {
	it, _ := item.ParseString(fmt.Sprintf(`{"type":%q,"id":"h","call_id":"h","environment":{"type":"container_reference"}}`, kind))
	return it
}

func (d *draw) responded(w *world, id journal.EffectID) *journal.Responded {
	b := &journal.Responded{ID: id, RequestID: d.next("req")}
	if d.maybe("usage") {
		b.Usage = &journal.Usage{Input: 5, Cached: 4, Output: 3, Reasoning: 2, Total: 8}
	}
	if d.maybe("response id") {
		b.ResponseID = d.next("p")
	}
	for range pick(d, "calls", 2, 1, 1, 3, 0) {
		b.Items = append(b.Items, d.call(w, b.Items))
	}
	if d.seldom(3, "other items") { // the server ran the last two
		b.Items = append([]item.Item{item.ReasoningItem("", "hm"), hosted("web_search_call"), hosted("shell_call")}, b.Items...)
	}
	if len(b.Items) == 0 || d.seldom(2, "message") {
		b.Items = append(b.Items, d.message())
	}
	return b
}

func (d *draw) planned(w *world) *journal.Planned {
	r := w.response()
	b := &journal.Planned{N: r.n}
	for i, it := range r.items {
		if it.NeedsOutput() {
			b.Calls = append(b.Calls, d.plannedCall(w, b, i))
		}
	}
	tools, handoffs := slices.Concat(r.manifest.Tools, b.Tools), 0
	for i := range b.Calls {
		p := &b.Calls[i]
		if p.Tool < 0 || p.Twin || tools[p.Tool].Handoff == "" || !p.Output.IsZero() && p.Gate == journal.Allow {
			continue
		}
		if handoffs++; handoffs > 1 && !d.seldom(4, "two handoffs") {
			p.Output, p.Gate = (&call{item: r.items[p.P]}).answer("ignored"), journal.Allow
		}
	}
	if len(b.Calls) == 0 {
		b.Final = pick(d, "final", journal.FinalNone, journal.FinalNone, journal.FinalMessage, journal.FinalEmpty)
		if len(r.manifest.Handles) > 1 && d.maybe("in trouble") {
			b.Final = pick(d, "trouble", journal.FinalRefusal, journal.FinalInvalid)
		}
		if b.Final != journal.FinalNone && b.Final != journal.FinalEmpty {
			b.FinalAt = len(r.items) - 1
		}
	}
	return b
}

func (d *draw) plannedCall(w *world, b *journal.Planned, i int) journal.PlannedCall {
	r := w.response()
	it := r.items[i]
	head := it.Head()
	p := journal.PlannedCall{P: i, Tool: -1}
	arguments := head.Name
	if call, err := it.FunctionCall(); err == nil {
		arguments = call.Arguments
	}
	request, notHosted := it.ApprovalRequest()
	if notHosted == nil {
		arguments = request.Arguments
	}
	var err error
	p.Digest, _, err = item.DigestArguments(arguments)
	p.Unreadable = err != nil && head.Type == item.TypeFunctionCall
	for j, tool := range r.manifest.Tools {
		if tool.Name == head.Name && notHosted != nil {
			p.Tool = j
		}
	}
	for _, earlier := range r.items[:i] {
		p.Twin = p.Twin || earlier == it
	}
	if notHosted == nil {
		p.Tool = len(r.manifest.Tools) + len(b.Tools)
		b.Tools = append(b.Tools, journal.ToolSpec{Name: head.Name, Identity: pick(d, "hosted identity", "hosted/"+head.Name, ""), Hosted: true,
			Expires: pick(d, "expires", int64(0), 0, 1500), ExpiryFails: d.maybe("expiry fails")})
	}
	if p.Tool < 0 && !p.Twin && d.maybe("planned tool") {
		p.Tool = len(r.manifest.Tools) + len(b.Tools)
		b.Tools = append(b.Tools, d.tool(head.Name))
	}
	answer := (&call{item: it}).answer
	c := w.earlier(r, head.CallID)
	switch {
	case p.Twin:
		return p
	case c != nil:
		p.Output = w.state(c).output
		return p
	case p.Tool < 0:
		p.Output = answer("no such tool")
		return p
	}
	p.Gate = pick(d, "gate", journal.Allow, journal.Ask, journal.Ask, journal.Allow, journal.Deny)
	if p.Unreadable || p.Gate == journal.Allow && notHosted != nil && d.seldom(4, "guarded") {
		p.Output = answer("planned")
	}
	if d.seldom(4, "guarded before") {
		p.Checks = d.checks()
	}
	if d.seldom(2, "reject text") {
		p.Reject = d.next("planned rejection ")
	}
	return p
}

// decision draws a decision on a call that can be decided.
func (d *draw) decision(w *world, c *call) *journal.Decided {
	s := w.state(c)
	b := &journal.Decided{Call: c.id, Digest: s.digest, By: d.next("person ")}
	if s.attempts > 0 {
		b.Stage = s.stage
	}
	switch s.phase {
	case doubt:
		b.Verdict = pick(d, "verdict", journal.Retry, journal.Settle, journal.GiveUp)
	case pending, settled:
		b.Verdict = journal.Settle
	default:
		b.Verdict = pick(d, "verdict", journal.Approve, journal.Approve, journal.Reject)
		if b.Stage > 0 {
			break
		}
		b.Sticky = c.spec.Identity != "" && d.seldom(1, "sticky")
		if b.Verdict == journal.Approve && d.seldom(2, "edit") {
			b.Arguments = `{"edited":true}`
		}
	}
	if b.Verdict == journal.Settle || b.Verdict == journal.Reject && d.maybe("text") {
		b.Text = d.next("text ")
	}
	return b
}

func (d *draw) guards() journal.Guards {
	return pick(d, "guards", journal.GuardsNone, journal.GuardsNone, journal.GuardsBlocking, journal.GuardsParallel, journal.GuardsBoth)
}
