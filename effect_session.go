package pawl

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
)

// load reads the session's history, once: a resume never reads it again. Calls that
// history leaves open are answered with: the outcome is unknown [M3.2]. Outputs that fit no
// call are not sent [S13.4].
func (f *frame) load() (journal.Body, error) {
	items, err := f.session.Items(f.d.ctx, -1)
	if err != nil {
		return nil, because(fmt.Errorf("pawl: session %q", f.session.ID()), err)
	}
	if err := checkItems(items); err != nil {
		return nil, because(fmt.Errorf("pawl: session %q", f.session.ID()), err)
	}
	b := &journal.Loaded{Items: items}
	for _, it := range openCalls(items) {
		if out, ok := heal(it); ok {
			b.Healed = append(b.Healed, out)
		}
	}
	history, input := slices.Concat(fitting(items), b.Healed), f.m.Started().Input
	all := slices.Concat(items, b.Healed, input)
	if f.opts.MergeInput == nil {
		b.View = viewOf(slices.Concat(history, input), all)
		return b, nil
	}
	list, err := f.merge(history, input)
	if err == nil {
		b.View = viewOf(list, all)
		err = unsendable(f.d.m.Check(journal.Fact{Frame: f.m.Name(), Body: b}))
	}
	if err != nil {
		return nil, &FilterError{Filter: "RunOptions.MergeInput", Err: err}
	}
	return b, nil
}

// merge asks what the model is to read instead of the session's history and the input.
func (f *frame) merge(history, input []Item) (list []Item, err error) {
	defer panicked("RunOptions.MergeInput", "", &err)
	list, err = f.opts.MergeInput(f.d.ctx, history, slices.Clone(input))
	if err == nil {
		err = checkItems(list)
	}
	if err == nil && len(list) == 0 {
		err = errors.New("pawl: it returned no items")
	}
	return list, err
}

// fitting returns the items without the outputs that have no call before them, or not one for
// each.
func fitting(items []Item) []Item {
	type pair struct {
		t  item.Type
		id string
	}
	open := make(map[pair]int)
	list := make([]Item, 0, len(items))
	for _, it := range items {
		h := it.Head()
		if item.IsCall(h.Type) {
			open[pair{item.OutputType(h.Type), h.CallID}]++
		}
		if item.IsOutput(h.Type) && h.CallID != "" {
			if open[pair{h.Type, h.CallID}] == 0 {
				continue
			}
			open[pair{h.Type, h.CallID}]--
		}
		list = append(list, it)
	}
	return list
}

const healedText = "The outcome of this tool call is unknown: it was found without an output. Do not assume that it failed."

const unansweredText = "The request was found without an answer: it is not approved."

// heal makes the output of a call that history left open. There is none for a call that
// cannot be read, or whose output has no place for words, as a screenshot has none.
func heal(call Item) (Item, bool) {
	id := call.Head().CallID
	var out any
	switch call.Type() {
	case item.TypeLocalShellCall:
		out = struct {
			Type   item.Type `json:"type"`
			ID     string    `json:"id"`
			Output string    `json:"output"`
		}{item.TypeLocalShellCallOutput, id, healedText}
	case item.TypeShellCall:
		type outcome struct {
			Type string `json:"type"`
		}
		type chunk struct {
			Stdout  string  `json:"stdout"`
			Stderr  string  `json:"stderr"`
			Outcome outcome `json:"outcome"`
		}
		out = struct {
			Type   item.Type `json:"type"`
			CallID string    `json:"call_id"`
			Output []chunk   `json:"output"`
		}{item.TypeShellCallOutput, id, []chunk{{Stderr: healedText, Outcome: outcome{"timeout"}}}}
	case item.TypeApplyPatchCall:
		out = struct {
			Type   item.Type `json:"type"`
			CallID string    `json:"call_id"`
			Status string    `json:"status"`
			Output string    `json:"output"`
		}{item.TypeApplyPatchCallOutput, id, "failed", healedText}
	case item.TypeMCPApprovalRequest:
		return item.ApprovalReply(id, false, unansweredText), true
	default:
		it, err := answer(call, healedText)
		return it, err == nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return Item{}, false
	}
	it, err := item.Parse(raw)
	return it, err == nil
}

// answer makes the output of a call item.
func answer(call Item, text string) (Item, error) {
	switch call.Type() {
	case item.TypeCustomToolCall:
		cc, err := call.CustomToolCall()
		return cc.Output(text), err
	case item.TypeFunctionCall:
		fc, err := call.FunctionCall()
		return fc.Output(text), err
	}
	return Item{}, fmt.Errorf("pawl: a call of type %s has no output, and cannot be given one", call.Type())
}

// appendSession appends a batch to a session outside the run store. That it failed
// does not prove that it is absent: the session is read back before a retry.
func (f *frame) appendSession(e machine.Effect) (journal.Body, error) {
	items := storedItems(f.m, e.From, e.Upto)
	var err error
	if b, ok := f.session.(session.BatchAppender); ok {
		err = b.AppendBatch(f.d.ctx, f.batchID(e.ID.N), items)
	} else {
		err = f.session.Append(f.d.ctx, items)
	}
	if err != nil {
		err = because(fmt.Errorf("pawl: session %q: append", f.session.ID()), err)
		return &journal.Failed{ID: e.ID, Code: "session_append", Error: errorText(err), Unknown: true}, err
	}
	return &journal.Confirmed{N: e.ID.N, Upto: e.Upto}, nil
}

// anchorItems is how many confirmed items before a batch are compared with the tail.
const anchorItems = 8

// reconcileSession finds out whether a batch is in a session that does not remember
// batches. It compares the session's tail with the batch and the confirmed items before
// it; what fits both ways, or neither, is ambiguous [M10].
func (f *frame) reconcileSession(e machine.Effect) (journal.Body, error) {
	before := storedItems(f.m, 0, e.From)
	batch := storedItems(f.m, e.From, e.Upto)
	anchor := before[max(0, len(before)-anchorItems):]
	tail, err := f.session.Items(f.d.ctx, len(anchor)+len(batch)+1)
	if err != nil {
		return nil, because(fmt.Errorf("pawl: session %q", f.session.ID()), err)
	}
	found := endsWith(tail, append(anchor[:len(anchor):len(anchor)], batch...))
	absent := endsWith(tail, anchor)
	if len(anchor) == len(before) {
		found = found && len(tail) == len(anchor)+len(batch)
		absent = absent && len(tail) == len(anchor)
	}
	switch {
	case found && !absent:
		return &journal.Confirmed{N: e.About.N, Upto: e.Upto, Found: true}, nil
	case absent && !found:
		return &journal.Absent{ID: e.About}, nil
	}
	return nil, &SessionAmbiguousError{Session: f.session.ID(), Batch: batch, Before: anchor, Tail: tail}
}

// endsWith compares canonical forms, because stores re-encode what they hold.
func endsWith(list, end []Item) bool {
	if len(list) < len(end) {
		return false
	}
	list = list[len(list)-len(end):]
	for i := range end {
		if list[i] != end[i] && canonical(list[i]) != canonical(end[i]) {
			return false
		}
	}
	return true
}

func canonical(it Item) string {
	c, err := item.Canonical(it.Raw())
	if err != nil {
		return it.Raw()
	}
	return string(c)
}
