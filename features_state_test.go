package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// moreRunFeatures are rows about what comes of items, sessions and resumes.
var moreRunFeatures = []feature{
	{"R2.10", func(t *testing.T) { // items of every type are carried as they came, and have views
		raw := `{"type":"hologram","id":"h_1","n":1.0,"new":{"b":1,"a":2}}`
		strange, err := item.ParseString(raw)
		if err != nil {
			t.Fatal(err)
		}
		s := newScript(items(strange, call("c1", "look")), says("done"))
		res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s, namedTools("look")...), pawl.UserText("go"), nil))
		if got := viaJSON(t, res.State()).Result().NewItems()[0].Raw(); got != raw || s.calls()[1].Input[1].Raw() != raw {
			t.Errorf("item %s", got)
		}
		if fc, err := res.NewItems()[1].FunctionCall(); err != nil || fc.Name != "look" || fc.CallID != "c1" {
			t.Errorf("call %+v, %v", fc, err)
		}
	}},
	{"R2.11", func(t *testing.T) { // the text of a message, its refusal, the text of an output
		msg, err := item.MessageItem("", "hello").Message()
		if err != nil || msg.Text() != "hello" || msg.Refusal() != "" {
			t.Errorf("message %q, refusal %q, %v", msg.Text(), msg.Refusal(), err)
		}
		if out, err := item.FunctionOutput("c1", "paid").FunctionCallOutput(); err != nil || out.Text != "paid" {
			t.Errorf("output %q, %v", out.Text, err)
		}
	}},
	{"R2.35", func(t *testing.T) { // nothing counts as sent before a response accepted it: the next attempt sends the same
		s := newScript(response("resp_1", call("c1", "look")), failing(&model.Error{Err: model.ErrStreamCut, Retryable: true}), response("resp_2", item.MessageItem("", "done")))
		s.info.ServerState = true
		agent := agentWith(s, namedTools("look")...)
		agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 1, InitialDelay: time.Millisecond}}
		must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{AutoPreviousResponseID: true}))
		for i, a := range s.calls()[1:] {
			if diff := cmp.Diff([]pawl.Item{item.FunctionOutput("c1", "output of look")}, a.Input); diff != "" || a.Previous != "resp_1" {
				t.Errorf("attempt %d continues %s (-want +got):\n%s", i+1, a.Previous, diff)
			}
		}
	}},
	{"L3.13", func(t *testing.T) { // the session has a turn before the next one is asked for, and nothing of a turn that waits
		var e effects
		sess := session.NewMemory("s")
		var had []int
		count := func(next step) step {
			return func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
				list, err := sess.Items(ctx, -1)
				had = append(had, len(list))
				if err != nil {
					return nil, err
				}
				return next(ctx, req, emit)
			}
		}
		s := newScript(count(calling(fc("c1", "look", `{"cents":1}`))), count(calling(fc("c2", "pay", `{"cents":2}`))))
		agent := agentWith(s, charging("look", &e, nil), charging("pay", &e, asking))
		res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Session: sess}))
		list, err := sess.Items(t.Context(), -1)
		if diff := cmp.Diff([]int{1, 3}, had); diff != "" || err != nil || len(list) != 3 || !res.Waiting() {
			t.Errorf("%v, at the pause %d items (-want +got):\n%s", err, len(list), diff)
		}
	}},
	{"L3.30", func(t *testing.T) { // a resumed turn costs no model call and no turn, and outputs stand in call order
		var e effects
		r, agent, state, s := paused(t, &e)
		for _, in := range state.Interruptions() {
			if err := state.Approve(in, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		res := must(t)(r.Resume(t.Context(), agent, viaJSON(t, state), nil))
		if res.Turns != 2 || len(s.calls()) != 2 {
			t.Errorf("%d turns, %d model calls", res.Turns, len(s.calls()))
		}
		if diff := cmp.Diff([]string{"c1: receipt 1", "c2: receipt 2", "c3: receipt 3"}, outputs(s.calls()[1].Input)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}},
	{"L3.43", func(t *testing.T) { // a tool that gives up by itself stops nobody else; what it did is unknown
		var e effects
		s := newScript(calling(fc("c1", "quits", `{"cents":1}`), fc("c2", "pay", `{"cents":2}`)), says("done"))
		quits := charging("quits", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return "", context.Canceled }
		})
		res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s, quits, charging("pay", &e, nil)), pawl.UserText("go"), nil))
		got := outputs(res.NewItems())
		if len(got) != 2 || !strings.HasPrefix(got[0], "c1: The outcome of this tool call is unknown") || got[1] != "c2: receipt 2" || res.FinalOutput != "done" {
			t.Errorf("outputs %q, %q", got, res.FinalOutput)
		}
	}},
}

// moreApprovalFeatures are rows about rules, rejections and what is never approved.
var moreApprovalFeatures = []feature{
	{"H4.02", func(t *testing.T) { // a rule sees the arguments; one that fails, or cannot be asked, means that a person decides
		for name, tt := range map[string]struct {
			args  string
			rule  func(context.Context, *pawl.Call, charge) (pawl.Gate, error)
			waits bool
		}{
			"allows":     {`{"cents":1}`, func(_ context.Context, _ *pawl.Call, in charge) (pawl.Gate, error) { return pawl.Allow, nil }, false},
			"asks":       {`{"cents":9}`, func(_ context.Context, _ *pawl.Call, in charge) (pawl.Gate, error) { return pawl.Ask, nil }, true},
			"errs":       {`{"cents":1}`, func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { return pawl.Allow, errors.New("no") }, true},
			"panics":     {`{"cents":1}`, func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { panic("no") }, true},
			"unreadable": {`{"cents":`, func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { return pawl.Allow, nil }, true},
			"NaN":        {`{"cents":NaN}`, func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { return pawl.Allow, nil }, true},
		} {
			var e effects
			agent := agentWith(newScript(calling(fc("c1", "pay", tt.args)), says("done")), charging("pay", &e, func(f *pawl.Func[charge, string]) { f.Approve = tt.rule }))
			if res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil)); res.Waiting() != tt.waits {
				t.Errorf("%s: waits %v", name, res.Waiting())
			}
		}
	}},
	{"H4.03", func(t *testing.T) { // a rule may decide by itself
		var e effects
		s := newScript(calling(fc("c1", "pay", `{"cents":1}`), fc("c2", "pay", `{"cents":9}`)), says("done"))
		pay := charging("pay", &e, func(f *pawl.Func[charge, string]) {
			f.Approve = func(_ context.Context, _ *pawl.Call, in charge) (pawl.Gate, error) {
				if in.Cents > 5 {
					return pawl.Deny, nil
				}
				return pawl.Allow, nil
			}
		})
		res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s, pay), pawl.UserText("go"), nil))
		e.want(t, "pay 1")
		if got := outputs(res.NewItems()); len(got) != 2 || got[0] != "c1: receipt 1" || res.FinalOutput != "done" {
			t.Errorf("outputs %q", got)
		}
	}},
	{"H4.09", func(t *testing.T) { // the model reads a rejection, in the reviewer's words if there are any
		var e effects
		r, agent, state, _ := paused(t, &e)
		list := state.Interruptions()
		if err := errors.Join(state.Reject(list[0], "ann", "too much"), state.Reject(list[1], "ann", "")); err != nil {
			t.Fatal(err)
		}
		res := must(t)(r.Resume(t.Context(), agent, state, nil))
		got := outputs(res.NewItems())
		if got[0] != "c1: too much" || got[2] == "c3: " || !strings.HasPrefix(got[2], "c3: ") {
			t.Errorf("outputs %q", got)
		}
		e.want(t, "look 2")
	}},
	{"H4.11", func(t *testing.T) { // a call that a response repeats runs once; one id for two calls is refused before anything runs
		var e effects
		s := newScript(calling(fc("c1", "pay", `{"cents":1}`), fc("c1", "pay", `{"cents":1}`)), says("done"))
		must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s, charging("pay", &e, nil)), pawl.UserText("go"), nil))
		e.want(t, "pay 1")
		s = newScript(calling(fc("c1", "pay", `{"cents":1}`), fc("c1", "pay", `{"cents":2}`)))
		_, err := new(pawl.Runner).Run(t.Context(), agentWith(s, charging("pay", &e, nil)), pawl.UserText("go"), nil)
		if reused, ok := errors.AsType[*pawl.CallIDError](err); !ok || reused.CallID != "c1" {
			t.Errorf("error %v", err)
		}
		e.want(t, "pay 1")
	}},
	{"H4.13", func(t *testing.T) { // another context on a resume leaves the decisions as they are
		var seen []any
		s := newScript(calling(fc("c1", "pay", `{"cents":1}`)), says("done"))
		agent := agentWith(s, charging("pay", nil, func(f *pawl.Func[charge, string]) {
			asking(f)
			f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
				seen = append(seen, c.Value, c.ApprovedBy)
				return "", nil
			}
		}))
		var r pawl.Runner
		state := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Context: "first"})).State()
		if err := state.Approve(state.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		must(t)(r.Resume(t.Context(), agent, state, &pawl.RunOptions{Context: "second"}))
		if diff := cmp.Diff([]any{"second", "ann"}, seen); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}},
	{"H4.14", func(t *testing.T) { // a stream that pauses ends so, and an approval is no item
		var e effects
		var r pawl.Runner
		agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":1}`))), charging("pay", &e, asking))
		got, err := trail(r.Stream(t.Context(), agent, pawl.UserText("go"), nil))
		if diff := cmp.Diff([]string{"started resumed=false", "agent support", "tool_called c1", "paused 1"}, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}},
}

// moreStateFeatures are rows about documents.
var moreStateFeatures = []feature{
	{"5.07", func(t *testing.T) { // a document has no secret that nobody put into it
		s := newScript(calling(call("c1", "look")), says("done"))
		agent := agentWith(s, namedTools("look")...)
		agent.Settings = &pawl.ModelSettings{ExtraHeaders: map[string]string{"X-Key": "sesame"}, Metadata: map[string]string{"user": "sesame"}}
		res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Context: "sesame"}))
		doc, err := json.Marshal(res.State())
		if err != nil || strings.Contains(string(doc), "sesame") {
			t.Errorf("%v, %s", err, doc)
		}
	}},
	{"5.08", func(t *testing.T) { // a document whose facts were edited, moved or left out is refused
		var e effects
		_, _, state, _ := paused(t, &e)
		doc, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		var parts struct {
			Schema, Run string
			Facts       []json.RawMessage
		}
		if err := json.Unmarshal(doc, &parts); err != nil {
			t.Fatal(err)
		}
		without := fmt.Sprintf(`{"schema":%q,"run":%q,"facts":[%s]}`, parts.Schema, parts.Run, strings.TrimSuffix(string(join(parts.Facts[:1]))+","+string(join(parts.Facts[3:])), ","))
		for name, text := range map[string]string{"edited": strings.Replace(string(doc), `cents`, `dents`, 1), "left out": without} {
			if _, err := pawl.ParseRunState([]byte(text)); !errors.Is(err, pawl.ErrState) {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}},
	{"5.09", func(t *testing.T) { // functions, models and sessions are not in a document: they are bound again by name
		var first, second effects
		_, _, state, _ := paused(t, &first)
		read := viaJSON(t, state)
		if err := read.Reject(read.Interruptions()[0], "ann", "no"); err != nil {
			t.Fatal(err)
		}
		if err := read.Approve(read.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		other := agentWith(newScript(says("done")), charging("pay", &second, asking), charging("look", &second, nil))
		must(t)(new(pawl.Runner).Resume(t.Context(), other, read, nil))
		first.want(t, "look 2")
		second.want(t, "pay 3")
	}},
}

// join puts raw values behind each other, with commas.
func join(list []json.RawMessage) (text []byte) {
	for i, raw := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, raw...)
	}
	return text
}

// moreStreamFeatures are rows about events and errors.
var moreStreamFeatures = []feature{
	{"E12.01", func(t *testing.T) { // a server's own events, items, and which agent has the conversation
		s := newScript(func(_ context.Context, _ *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
			if emit != nil {
				emit(&model.Event{Type: "response.created", Raw: []byte(`{}`)})
				emit(&model.Event{Kind: model.EventTextDelta, Delta: "hel"})
			}
			return &model.Response{Items: []pawl.Item{item.MessageItem("", "hello")}}, nil
		})
		var r pawl.Runner
		got, err := trail(r.Stream(t.Context(), agentWith(s), pawl.UserText("go"), nil))
		want := []string{"started resumed=false", "agent support", "raw response.created", `delta text 1.1 "hel"`, "message_output_created", "done hello"}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}},
	{"E12.06", func(t *testing.T) { // an error comes last, behind what was recorded before it
		s := newScript(calling(call("c1", "look")), failing(errors.New("no answer")))
		var r pawl.Runner
		got, err := trail(r.Stream(t.Context(), agentWith(s, namedTools("look")...), pawl.UserText("go"), nil))
		want := []string{"started resumed=false", "agent support", "tool_called c1", "tool started look c1 1", "tool_output c1"}
		if diff := cmp.Diff(want, got); diff != "" || err == nil || stateOf(t, err).Status() != pawl.StatusFailed {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}},
}
