package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// asks is what the model's server asks before it calls a tool of a hosted MCP server.
func asks(id, server, tool, args string) pawl.Item {
	return item.FromTrusted(fmt.Sprintf(`{"type":"mcp_approval_request","id":%q,"server_label":%q,"name":%q,"arguments":%q}`, id, server, tool, args))
}

// approvals returns the answers in a list, in order.
func approvals(list []pawl.Item) (out []string) {
	for _, it := range list {
		if a, err := it.ApprovalResponse(); err == nil {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %v %s", a.RequestID, a.Approve, a.Reason)))
		}
	}
	return out
}

// answeringHosted is the option that answers each request with a gate.
func answeringHosted(gate pawl.Gate, reason string) *pawl.RunOptions {
	return &pawl.RunOptions{OnApprovalRequest: func(context.Context, pawl.ApprovalRequest) (pawl.Gate, string, error) { return gate, reason, nil }}
}

// A request of the model's server waits like a call, and its answer goes to the server and to the
// session once, whatever the run went through meanwhile [S21.3].
func TestHostedApprovals(t *testing.T) {
	first := []pawl.Item{asks("m1", "crm", "drop", `{"id":7}`), asks("m2", "crm", "drop", `{"id":8}`), fc("c1", "look", `{"cents":1}`)}
	for _, through := range []string{"live", "json", "store"} {
		t.Run(through, func(t *testing.T) {
			eachMode(t, func(t *testing.T, md mode) {
				var e effects
				m := newScript(items(first...), items(item.FromTrusted(`{"type":"mcp_call","id":"call_1","server_label":"crm","name":"drop"}`), item.MessageItem("", "done")))
				agent, sess := agentWith(m, charging("look", &e, nil)), session.NewMemory("s")
				r, opts := pawl.Runner{Store: journal.NewMemory()}, &pawl.RunOptions{ID: "r", Session: sess}
				res := must(t)(md.run(&r, t.Context(), agent, pawl.UserText("drop 7 and 8"), opts))
				e.want(t, "look 1")
				if n := len(res.Interruptions); n != 2 {
					t.Fatalf("%d interruptions", n)
				}
				in := res.Interruptions[0]
				want := pawl.Interruption{ID: "1.0#0", Kind: pawl.ApprovalNeeded, Run: "r", Agent: "support", Tool: "drop", Server: "crm", CallID: "m1", Arguments: `{"id":7}`, Digest: in.Digest}
				if diff := cmp.Diff(want, in); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				decisions := []pawl.Decision{pawl.Approve("1.0#0", "ann"), pawl.Reject("1.1#0", "ann", "keep it")}
				var from pawl.Resumable = pawl.RunID("r")
				switch through {
				case "store":
					if err := r.Decide(t.Context(), "r", decisions...); err != nil {
						t.Fatal(err)
					}
				default:
					state := staged(t, res.State(), decisions...)
					if from = state; through == "json" {
						from = viaJSON(t, state)
					}
				}
				res = must(t)(md.resume(&r, t.Context(), agent, from, &pawl.RunOptions{Session: sess}))
				if res.FinalOutput != "done" {
					t.Errorf("output %q", res.FinalOutput)
				}
				sent := m.calls()[1].Input
				if diff := cmp.Diff([]string{"m1 true", "m2 false keep it"}, approvals(sent)); diff != "" || sent[len(sent)-1].Head().CallID != "c1" {
					t.Errorf("%s (-want +got):\n%s", sent, diff)
				}
				sameViews(t, res, m, sess)
				replays(t, &r, "r")
			})
		})
	}
}

// What a hosted MCP server asks is answered in the loop, or by a person; each answer goes to the
// model's server and to the session once.
func TestHostedMCP(t *testing.T) {
	m := newScript(items(asks("m1", "crm", "read", `{}`), asks("m2", "crm", "drop", `{}`)), says("done"))
	sess := session.NewMemory("s")
	opts := &pawl.RunOptions{Session: sess, OnApprovalRequest: func(_ context.Context, r pawl.ApprovalRequest) (pawl.Gate, string, error) {
		if r.Server == "crm" && r.Tool == "read" {
			return pawl.Allow, "", nil
		}
		return pawl.Ask, "", nil
	}}
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agentWith(m), pawl.UserText("go"), opts))
	if len(res.Interruptions) != 1 || res.Interruptions[0].CallID != "m2" {
		t.Fatalf("%+v", res.Interruptions)
	}
	state := staged(t, res.State(), pawl.Reject(res.Interruptions[0].ID, "ann", "keep it"))
	res = must(t)(r.Resume(t.Context(), agentWith(m), viaJSON(t, state), opts))
	if diff := cmp.Diff([]string{"m1 true", "m2 false keep it"}, approvals(res.ToInputList())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	sameViews(t, res, m, sess)
}

// The strict server takes what a run answers.
func TestHostedOverTheWire(t *testing.T) {
	srv := pawltest.NewResponsesServer(t, &pawltest.ResponsesOptions{Respond: func(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
		if strings.Contains(string(r.Body), "mcp_approval_response") {
			return pawltest.ReplyText("dropped")
		}
		return pawltest.ReplyItems(asks("", "crm", "drop", `{"id":7}`), asks("", "crm", "drop", `{"id":8}`))
	}})
	client := openai.New(openai.Options{BaseURL: srv.URL(), HTTPClient: srv.Client()})
	for _, chained := range []bool{false, true} {
		opts := answeringHosted(pawl.Allow, "")
		opts.AutoPreviousResponseID = chained
		res := must(t)(new(pawl.Runner).Run(t.Context(), &pawl.Agent{Name: "Desk", Model: client.Responses("gpt-test")}, pawl.UserText("go"), opts))
		if res.FinalOutput != "dropped" || len(approvals(res.NewItems())) != 2 {
			t.Errorf("%q, %s", res.FinalOutput, res.NewItems())
		}
	}
}

// What the callback answers, or fails to answer, decides who decides [S21.1].
func TestOnApprovalRequest(t *testing.T) {
	type callback = func(context.Context, pawl.ApprovalRequest) (pawl.Gate, string, error)
	says1 := func(gate pawl.Gate, reason string, err error) callback {
		return func(context.Context, pawl.ApprovalRequest) (pawl.Gate, string, error) { return gate, reason, err }
	}
	for name, tt := range map[string]struct {
		ask  callback
		args string
		want string // the answer; empty if a person decides
	}{
		"allow":                      {ask: says1(pawl.Allow, "", nil), want: "m1 true"},
		"allow with a reason":        {ask: says1(pawl.Allow, "fine", nil), want: "m1 true"},
		"deny":                       {ask: says1(pawl.Deny, "", nil), want: "m1 false Tool execution was not approved."},
		"deny with a reason":         {ask: says1(pawl.Deny, "never \xff", nil), want: "m1 false never \uFFFD"},
		"ask":                        {ask: says1(pawl.Ask, "", nil)},
		"an unknown word":            {ask: says1("yes", "", nil)},
		"allow and error":            {ask: says1(pawl.Allow, "", errors.New("down"))},
		"deny and error":             {ask: says1(pawl.Deny, "", errors.New("down"))},
		"panic":                      {ask: func(context.Context, pawl.ApprovalRequest) (pawl.Gate, string, error) { panic("bug") }},
		"arguments of no object":     {ask: says1(pawl.Allow, "", nil), args: `[7]`},
		"arguments with a key twice": {ask: says1(pawl.Allow, "", nil), args: `{"id":7,"id":8}`},
		"no arguments":               {ask: says1(pawl.Allow, "", nil), args: " ", want: "m1 true"},
		"too slow": {ask: func(ctx context.Context, _ pawl.ApprovalRequest) (pawl.Gate, string, error) {
			<-ctx.Done()
			return pawl.Allow, "", nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				args := strings.TrimSpace(tt.args)
				if tt.args == "" {
					args = `{"id":7}`
				}
				m := newScript(items(asks("m1", "crm", "drop", args)), says("done"))
				res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(m), pawl.UserText("go"), &pawl.RunOptions{OnApprovalRequest: tt.ask}))
				if res.Waiting() != (tt.want == "") {
					t.Fatalf("status %s", res.Status)
				}
				if tt.want == "" {
					if in := res.Interruptions[0]; in.Unreadable || in.Arguments != args {
						t.Errorf("%+v", in)
					}
					return
				}
				if diff := cmp.Diff([]string{tt.want}, approvals(m.calls()[1].Input)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// The callback sees what the server is going to do, and is asked once: its answer is recorded.
func TestOnApprovalRequestIsAskedOnce(t *testing.T) {
	var seen []pawl.ApprovalRequest
	m := newScript(items(asks("m1", "crm", "drop", `{ "id": 7 }`)), failing(&model.Error{Delivery: model.DeliveryRefused, Err: errors.New("busy")}), says("done"))
	opts := &pawl.RunOptions{ID: "r", Context: "ctx", OnApprovalRequest: func(_ context.Context, r pawl.ApprovalRequest) (pawl.Gate, string, error) {
		seen = append(seen, r)
		return pawl.Allow, "", nil
	}}
	agent, store := agentWith(m), journal.NewMemory()
	_, err := (&pawl.Runner{Store: store}).Run(t.Context(), agent, pawl.UserText("go"), opts)
	opts.ID = ""
	res := must(t)((&pawl.Runner{Store: store}).Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), opts))
	if diff := cmp.Diff([]string{"m1 true"}, approvals(res.ToInputList())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(seen) != 1 {
		t.Fatalf("asked %d times", len(seen))
	}
	r := seen[0]
	if r.ID != "m1" || r.Server != "crm" || r.Tool != "drop" || r.Arguments != `{ "id": 7 }` || r.Run != "r" || r.Agent != agent || r.Value != "ctx" || r.Turn != 1 {
		t.Errorf("%+v", r)
	}
}

// A decision for all calls is about a tool of a server, and needs the names of both [S21.2].
func TestHostedSticky(t *testing.T) {
	m := newScript(
		items(asks("m1", "crm", "drop", `{}`), asks("m2", "", "drop", `{}`)),
		items(asks("m3", "crm", "drop", `{}`), asks("m4", "erp", "drop", `{}`), fc("c1", "drop", `{"cents":1}`)),
		says("done"))
	var e effects
	agent := agentWith(m, charging("drop", &e, asking))
	r := pawl.Runner{Store: journal.NewMemory()}
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
	always := pawl.Decision{Interruption: "1.1#0", Verdict: journal.Approve, Always: true}
	if err := r.Decide(t.Context(), "r", always); !errors.Is(err, pawl.ErrDecision) {
		t.Errorf("a server without a label: %v", err)
	}
	if err := r.Decide(t.Context(), "r", pawl.Edit("1.0#0", "ann", `{"id":1}`)); !errors.Is(err, pawl.ErrDecision) {
		t.Errorf("an edit: %v", err)
	}
	always.Interruption = "1.0#0"
	state := staged(t, res.State(), always, pawl.Reject("1.1#0", "ann", ""))
	res = must(t)(r.Resume(t.Context(), agent, viaJSON(t, state), nil))
	var open []string
	for _, in := range res.Interruptions {
		open = append(open, in.CallID+" "+in.Server)
	}
	if diff := cmp.Diff([]string{"m4 erp", "c1 "}, open); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	res = must(t)(r.Resume(t.Context(), agent, staged(t, res.State(), pawl.Approve("2.1#0", "ann"), pawl.Approve("2.2#0", "ann")), nil))
	if diff := cmp.Diff([]string{"m1 true", "m2 false Tool execution was not approved.", "m3 true", "m4 true"}, approvals(res.ToInputList())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	sameViews(t, res, m, nil)
}

// staged stages decisions on a state.
func staged(t *testing.T, s *pawl.RunState, decisions ...pawl.Decision) *pawl.RunState {
	t.Helper()
	for _, d := range decisions {
		if err := s.Decide(d); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A cancelled run answers with no, so that its session can be gone on with; and so does a run that
// finds a request without an answer in its session.
func TestHostedCancelled(t *testing.T) {
	sess := session.NewMemory("s")
	m := newScript(items(asks("m1", "crm", "drop", `{}`)), says("hello"))
	agent, r := agentWith(m), pawl.Runner{Store: journal.NewMemory()}
	must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", Session: sess}))
	if err := r.Cancel(t.Context(), "r", "ann", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{Session: sess}); !errors.Is(err, pawl.ErrCancelled) {
		t.Fatal(err)
	}
	open := asks("m2", "crm", "drop", `{}`)
	if err := sess.Append(t.Context(), []pawl.Item{open}); err != nil {
		t.Fatal(err)
	}
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{Session: sess}))
	want := []string{"m1 false The tool was not executed: the run was cancelled.", "m2 false The request was found without an answer: it is not approved."}
	if diff := cmp.Diff(want, approvals(m.calls()[1].Input)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	held, err := sess.Items(t.Context(), -1)
	if err != nil || !slices.Equal(held, []pawl.Item(res.ToInputList())) {
		t.Errorf("error %v, session %s", err, held)
	}
	paired(t, "session", held)
}

// Where the server keeps the conversation it gets the answers alone.
func TestHostedChain(t *testing.T) {
	m := newScript(response("r1", asks("m1", "crm", "drop", `{}`), asks("m1", "crm", "drop", `{}`)), response("r2", item.MessageItem("", "done")))
	m.info.ServerState = true
	opts := answeringHosted(pawl.Allow, "")
	opts.AutoPreviousResponseID = true
	must(t)(new(pawl.Runner).Run(t.Context(), agentWith(m), pawl.UserText("go"), opts))
	if diff := cmp.Diff([]pawl.Item{item.ApprovalReply("m1", true, "")}, m.calls()[1].Input); diff != "" || m.calls()[1].Previous != "r1" {
		t.Errorf("after %q (-want +got):\n%s", m.calls()[1].Previous, diff)
	}
}

// The server may act on an approval when it gets it. So a request with one is not made again
// while nobody knows what became of it, neither at once nor after a crash; with a rejection it is [S21.4].
func TestApprovalIsNotSentTwice(t *testing.T) {
	again := &model.Retry{MaxRetries: 3, InitialDelay: time.Millisecond}
	replay := *again
	replay.Policy = func(model.RetryContext) model.RetryDecision {
		return model.RetryDecision{Retry: true, ApproveReplay: true}
	}
	lost := &model.Error{Err: errors.New("connection reset"), Retryable: true}
	refused := &model.Error{Err: errors.New("busy"), Delivery: model.DeliveryRefused, Retryable: true}
	for name, tt := range map[string]struct {
		gate  pawl.Gate
		err   error
		retry *model.Retry
		sent  int
		ends  bool
	}{
		"approved, lost":               {gate: pawl.Allow, err: lost, retry: again, sent: 2},
		"approved, refused":            {gate: pawl.Allow, err: refused, retry: again, sent: 3, ends: true},
		"denied, lost":                 {gate: pawl.Deny, err: lost, retry: again, sent: 3, ends: true},
		"approved, lost, and a replay": {gate: pawl.Allow, err: lost, retry: &replay, sent: 3, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newScript(items(asks("m1", "crm", "drop", `{}`)), failing(tt.err), says("done"))
				opts := answeringHosted(tt.gate, "")
				opts.ID, opts.Settings = "r", &model.Settings{Retry: tt.retry}
				agent, r := agentWith(m), pawl.Runner{Store: journal.NewMemory()}
				res, err := r.Run(t.Context(), agent, pawl.UserText("go"), opts)
				if n := len(m.calls()); n != tt.sent || (err == nil) != tt.ends {
					t.Fatalf("%d requests, error %v", n, err)
				}
				if tt.ends {
					sameViews(t, res, newScript(), nil)
					return
				}
				stays(t, &r, agent, m, 2)
			})
		})
	}
}

// stays checks that a run sends nothing any more, but can be cancelled.
func stays(t *testing.T, r *pawl.Runner, agent *pawl.Agent, m *script, sent int) {
	t.Helper()
	for range 2 {
		if _, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrDeliveryAmbiguous) || !strings.Contains(err.Error(), "approves a call of a hosted tool") {
			t.Fatal(err)
		}
	}
	if n := len(m.calls()); n != sent {
		t.Errorf("%d requests", n)
	}
	replays(t, r, "r")
	if err := r.Cancel(t.Context(), "r", "ann", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrCancelled) {
		t.Error(err)
	}
}

// A process that ends in such a request leaves a run that does not make it again.
func TestApprovalAndCrash(t *testing.T) {
	entered := make(chan struct{})
	ctx, crash := context.WithCancel(t.Context())
	m := newScript(items(asks("m1", "crm", "drop", `{}`)), hanging(entered), says("done"))
	agent, r := agentWith(m), pawl.Runner{Store: journal.NewMemory()}
	go func() {
		<-entered
		crash()
	}()
	opts := answeringHosted(pawl.Allow, "")
	opts.ID = "r"
	if _, err := r.Run(ctx, agent, pawl.UserText("go"), opts); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	stays(t, &r, agent, m, 2)
}

// A request in a nested run waits in the run around it, and the callback of the caller's options
// answers it.
func TestHostedNested(t *testing.T) {
	for _, gate := range []pawl.Gate{pawl.Ask, pawl.Allow} {
		t.Run(string(gate), func(t *testing.T) {
			inner := newScript(items(asks("m1", "crm", "drop", `{}`)), says("dropped"))
			outer := newScript(calling(fc("c1", "desk", `{"input":"drop it"}`)), says("done"))
			desk := agentWith(inner)
			desk.Name = "desk"
			agent := agentWith(outer, pawl.AgentTool(desk, &pawl.AgentToolOptions{Name: "desk"}))
			var r pawl.Runner
			res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), answeringHosted(gate, "")))
			if gate == pawl.Ask {
				in := res.Interruptions[0]
				if diff := cmp.Diff([]string{"support", "desk"}, in.AgentPath); diff != "" || in.Server != "crm" {
					t.Errorf("%+v", in)
				}
				res = must(t)(r.Resume(t.Context(), agent, staged(t, res.State(), pawl.Approve(in.ID, "ann")), nil))
			}
			if diff := cmp.Diff([]string{"m1 true"}, approvals(inner.calls()[1].Input)); diff != "" || res.FinalOutput != "done" {
				t.Errorf("%q: %s", res.FinalOutput, diff)
			}
		})
	}
}

// A stream shows the request and the answer by their names, and starts no tool.
func TestHostedStream(t *testing.T) {
	m := newScript(items(asks("m1", "crm", "drop", `{}`)), says("done"))
	got, err := trail(new(pawl.Runner).Stream(t.Context(), agentWith(m), pawl.UserText("go"), answeringHosted(pawl.Allow, "")))
	want := []string{"started resumed=false", "agent support", "mcp_approval_requested m1", "mcp_approval_response m1", `delta text 2.1 "done"`, "message_output_created", "done done"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, events (-want +got):\n%s", err, diff)
	}
}
