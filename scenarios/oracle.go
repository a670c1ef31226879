package scenarios

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// The oracle reads the bodies that the server captured, the rows of the session table, and the log of effects. What it
// takes from Pawl is only what a caller of the API sees, to be compared with those.

// record is what a cell leaves behind. Cells of one variant leave the same.
type record struct {
	Requests []string // bodies, without whether to stream
	Session  []string
	Effects  []string
	Outcomes []seen
}

// checkAlways checks what holds after every call: the session is valid input for a model, and so is what the caller could
// replay [G2]; nothing ran twice or without a decision [G1, G7].
func (w *world) checkAlways(o *outcome) {
	w.Helper()
	if !w.damaged {
		for _, problem := range w.unpaired(w.rows(sessionID)) {
			w.Errorf("G2: session: %s", problem)
		}
	}
	if !w.damaged {
		for _, problem := range w.unpaired(raws(slices.Concat(w.continued, o.Replay))) {
			w.Errorf("G2: replay: %s", problem)
		}
	}
	for _, problem := range unauthorised(w.recorded(), w.setup.tools()) {
		w.Error(problem)
	}
}

// finish repeats the last call, which must change nothing [G6], compares the views of the conversation [G2], and returns
// what is left behind.
func (w *world) finish() *record {
	w.Helper()
	first := w.snapshot()
	if w.last.Document != nil && !w.forked {
		again := w.do(request{})
		w.outcomes = w.outcomes[:len(w.outcomes)-1]
		if diff := cmp.Diff(w.outcomes[len(w.outcomes)-1], again.seen); diff != "" {
			w.Errorf("G6: resuming again (-before +after):\n%s", diff)
		}
		w.decideAgain()
		if diff := cmp.Diff(first, w.snapshot()); diff != "" {
			w.Errorf("G6: resuming and deciding again (-before +after):\n%s", diff)
		}
	}
	if !w.forked && len(w.sent()) > 0 {
		w.compareViews()
	}
	refused := 0
	for _, r := range w.sent() {
		if r.Status == http.StatusOK && r.Stored {
			continue
		}
		if refused++; refused > w.broken {
			w.Errorf("the server refused request %d: %v", r.Number, r.Refusal)
		}
	}
	w.server.AssertComplete(w)
	return first
}

func (w *world) snapshot() *record {
	w.Helper()
	rec := &record{Session: canonical(w.rows(sessionID)), Outcomes: slices.Clone(w.outcomes)}
	for _, r := range w.sent() {
		var body map[string]any
		if err := json.Unmarshal(r.Body, &body); err != nil {
			w.Fatal(err)
		}
		delete(body, "stream")
		rec.Requests = append(rec.Requests, encode(body))
	}
	if w.unordered {
		slices.Sort(rec.Requests)
	}
	for _, e := range w.recorded() {
		if e.Tool != reviewer {
			rec.Effects = append(rec.Effects, fmt.Sprintf("%+v", e))
		}
	}
	slices.Sort(rec.Effects)
	return rec
}

// decideAgain takes every decision a second time, and then the other way round: the first is nothing new, the second is
// refused [G6].
func (w *world) decideAgain() {
	w.Helper()
	w.at(func(p *place) {
		runner, _ := p.options(request{})
		for _, v := range w.verdicts {
			if err := w.decideOn(runner, v.interruption, v.decision); err != nil {
				w.Errorf("G6: the same decision again: %v", err)
			}
			other := map[string]string{"approve": "reject", "reject": "approve", "settle": "approve", "retry": "settle",
				"approve always": "reject", "reject always": "approve"}[v.decision.Verdict]
			err := w.decideOn(runner, v.interruption, decideAs(other, v.decision.CallID, ""))
			if names := newOutcome(nil, err).Errors; v.decision.Verdict != "settle" && v.decision.Verdict != "retry" && !slices.Equal(names, []string{"decided"}) {
				w.Errorf("G6: another decision on %s: %v, want that it is decided", v.interruption, err)
			}
		}
	})
}

// decideOn decides on the run, or on the last document if nothing else of the run is left.
func (w *world) decideOn(runner *pawl.Runner, interruption string, d decision) error {
	w.Helper()
	verdict, err := d.on([]pawl.Interruption{{ID: interruption, CallID: d.CallID}})
	if err != nil {
		w.Fatal(err)
	}
	if w.cell.carrier == live || w.cell.carrier == store {
		return runner.Decide(w.Context(), w.setup.Run, verdict)
	}
	state, err := w.last.document()
	if err != nil {
		w.Fatal(err)
	}
	return state.Decide(verdict)
}

// compareViews compares the conversation as the session, the model and the caller know it [G2].
func (w *world) compareViews() {
	w.Helper()
	wire, whole := w.wire()
	for _, problem := range w.unpaired(slices.Concat(raws(w.continued), wire)) {
		w.Errorf("G2: what the model has got: %s", problem)
	}
	model, replay := canonical(wire), canonical(raws(w.last.Replay))
	if !whole && len(replay) > len(model) {
		model = append(model, replay[len(model):]...)
	}
	if diff := cmp.Diff(model, replay); diff != "" && !w.cut && !w.withheld {
		w.Errorf("G2: the model and the replay differ (-model +replay):\n%s", diff)
	}
	if w.setup.Session == noSession || w.shared {
		return
	}
	if diff := cmp.Diff(replay, canonical(w.rows(sessionID))); diff != "" {
		w.Errorf("G2: the replay and the session differ (-replay +session):\n%s", diff)
	}
}

// wire is the conversation as it went over the wire. It is not whole if the last response has calls: what became of those
// the model has not been told.
func (w *world) wire() (list []json.RawMessage, whole bool) {
	w.Helper()
	sent := w.sentBy(func(instructions string) bool { return !slices.Contains(w.setup.nested(), instructions) })
	for i, r := range sent {
		var body struct {
			Input        []json.RawMessage
			Previous     string `json:"previous_response_id"`
			Conversation any
		}
		if err := json.Unmarshal(r.Body, &body); err != nil {
			w.Fatal(err)
		}
		if body.Previous == "" && body.Conversation == nil {
			list = nil // the request carries everything
		}
		list = append(list, body.Input...)
		output := w.output(r.ResponseID)
		if i == len(sent)-1 && slices.ContainsFunc(output, isCall) {
			return list, false
		}
		list = append(list, output...)
	}
	return list, true
}

func isCall(raw json.RawMessage) bool { return read(raw).Type == "function_call" }

// output asks the server for the output of a response.
func (w *world) output(response string) []json.RawMessage {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodGet, w.server.URL()+"/responses/"+response, nil)
	if err != nil {
		w.Fatal(err)
	}
	var body struct{ Output []json.RawMessage }
	if err := w.fetch(req, &body); err != nil {
		w.Fatal(err)
	}
	return body.Output
}

// rows reads a session's rows, nil if there is no session.
func (w *world) rows(session string) []json.RawMessage {
	w.Helper()
	list, err := w.host.Rows(w.Context(), w.setup.Address, session)
	if err != nil {
		w.Fatal(err)
	}
	return list
}

func raws(items []item.Item) []json.RawMessage {
	var list []json.RawMessage
	for _, it := range items {
		list = append(list, json.RawMessage(it.Raw()))
	}
	return list
}

// canonical writes items in one form, so that they can be compared.
func canonical(items []json.RawMessage) []string {
	var list []string
	for _, raw := range items {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			v = err.Error()
		}
		list = append(list, encode(v))
	}
	return list
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// unpaired says what is wrong with a conversation of the cell. Where ids of calls come again on purpose, an output is that of
// the newest call of its id.
func (w *world) unpaired(items []json.RawMessage) []string {
	w.Helper()
	if !w.reused {
		return unpaired(items)
	}
	made := map[string]int{}
	var list []json.RawMessage
	for _, raw := range items {
		var e map[string]any
		if err := json.Unmarshal(raw, &e); err != nil {
			w.Fatal(err)
		}
		if id, is := e["call_id"].(string); is {
			if isCall(raw) {
				made[id]++
			}
			e["call_id"] = fmt.Sprint(id, " ", made[id])
		}
		list = append(list, json.RawMessage(encode(e)))
	}
	return unpaired(list)
}

// unpaired says what is wrong with a conversation, see pawltest.Unpaired.
func unpaired(items []json.RawMessage) []string {
	list := make([]item.Item, len(items))
	for i, raw := range items {
		list[i] = item.FromTrusted(string(raw))
	}
	return pawltest.Unpaired(list)
}

// unauthorised says what a log has that nobody allowed, or twice. An approval of every call of a tool allows those that are
// not rejected themselves.
func unauthorised(log []pawltest.Effect, tools []tool) (problems []string) {
	allowed, rejected, retried := map[string]int{}, map[string]bool{}, map[string]bool{}
	done, sticky := map[string]bool{}, map[string]bool{}
	for _, e := range log {
		if e.Tool == reviewer {
			switch e.Arguments {
			case "approve":
				allowed[e.CallID]++
			case "reject", "reject always":
				rejected[e.CallID] = true
			case "retry":
				retried[e.CallID] = true
			case "approve always":
				sticky[e.Key] = true
			}
			continue
		}
		if done[e.Key] {
			problems = append(problems, fmt.Sprintf("G1: %s %s took effect twice", e.Tool, e.CallID))
		}
		done[e.Key] = true
		again := retried[e.CallID] || slices.ContainsFunc(tools, func(t tool) bool { return t.does() == e.Tool && (t.Lookup || t.Class == pawl.Idempotent) })
		if !strings.HasPrefix(e.Key, "pawl_") || e.Attempt < 1 || e.Attempt > 1 && !again {
			problems = append(problems, fmt.Sprintf("G1: %s %s has key %q and attempt %d", e.Tool, e.CallID, e.Key, e.Attempt))
		}
		if slices.ContainsFunc(tools, func(t tool) bool { return t.does() == e.Tool && t.asks(e.Arguments) }) {
			if sticky[e.Tool] && !rejected[e.CallID] {
				continue
			}
			if allowed[e.CallID] == 0 {
				problems = append(problems, fmt.Sprintf("G7: %s %s ran and nobody allowed it", e.Tool, e.CallID))
			}
			allowed[e.CallID]--
		}
	}
	return problems
}
