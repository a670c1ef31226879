package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// callLimit bounds one call of the API. None may come near it [G5].
const callLimit = time.Minute

// world is where one cell is played: the model server, the place of the host, and what is known about the calls so far.
type world struct {
	*testing.T
	cell    cell
	host    Host
	setup   setup
	server  *pawltest.ResponsesServer
	log     *pawltest.EffectLog
	stay    *place // the live carrier's, which lasts
	workers []*worker

	stop      context.CancelFunc // of the call that is being made
	last      *outcome
	outcomes  []seen
	verdicts  []verdict
	withheld  bool                                  // what a guardrail tripped on is nowhere but in the answer that the model gave
	reused    bool                                  // the model uses ids of calls again
	unordered bool                                  // requests come in any order
	broken    int                                   // requests that are to be refused, cut off, or answered without an id
	foreign   int                                   // requests to the server, before all others, that are not of the run
	notOurs   func(*pawltest.ResponsesRequest) bool // says so of the others
	forked    bool                                  // the run has been forked, so there is no one conversation
	damaged   bool                                  // a fault has left the session with half a batch, on purpose
	cut       bool                                  // the model is, on purpose, not sent all that the session has
	continued []item.Item                           // what the server has before the run
	refused   []string                              // calls that an engine first gave to a worker which cannot begin them
	shared    bool                                  // somebody else writes to the session, so it holds more than the run knows
}

// verdict is a decision that was taken, for it to be repeated.
type verdict struct {
	interruption string
	decision     decision
}

// storeID is the name of a store, which no two cells share.
var storeID = regexp.MustCompile(`(sqlite|postgres)/[0-9a-f]{32}`)

func newWorld(t *testing.T, id string, c cell) *world {
	t.Helper()
	h, err := hostNamed(c.host)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, cell: c, host: h, log: pawltest.OpenEffectLog(filepath.Join(t.TempDir(), "effects.jsonl"))}
	w.setup = setup{Carrier: c.carrier, Run: id, Session: inStore, Host: c.host, Address: h.New(t), Log: w.log.Path()}
	return w
}

// model starts the server with its script.
func (w *world) model(steps ...pawltest.ResponsesStep) {
	w.Helper()
	w.serve(&pawltest.ResponsesOptions{Steps: steps})
}

// respond starts the server with a function that answers.
func (w *world) respond(f pawltest.Responder) {
	w.Helper()
	w.serve(&pawltest.ResponsesOptions{Respond: f})
}

func (w *world) serve(opts *pawltest.ResponsesOptions) {
	w.Helper()
	server, err := pawltest.StartResponses(opts)
	if err != nil {
		w.Fatal(err)
	}
	w.server = server
	w.setup.URL = server.URL()
}

// at calls f where the next call is made: where the last one was, or in a place that is opened for it and closed again.
func (w *world) at(f func(*place)) {
	w.Helper()
	if w.stay != nil {
		f(w.stay)
		return
	}
	p, err := open(w.setup)
	if err != nil {
		w.Fatal(err)
	}
	if w.cell.carrier == live {
		w.stay = p
		f(p)
		return
	}
	defer func() {
		if err := p.close(); err != nil {
			w.Error(err)
		}
	}()
	f(p)
}

// state is what the carrier brings to the next call, nil if that is the run's id alone.
func (w *world) state(r request) *pawl.RunState {
	w.Helper()
	if w.cell.carrier == live || r.Input != nil || w.cell.carrier == store && !r.FromState {
		if w.cell.carrier == live && w.last != nil {
			return w.last.state
		}
		return nil
	}
	s, err := w.last.document()
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// do makes the next call.
func (w *world) do(r request) *outcome {
	w.Helper()
	r.Mode = w.cell.mode(len(w.outcomes))
	if r.LeaveAt != "" {
		r.Mode = stream
	}
	w.note(r.Decide)
	ctx, cancel := context.WithTimeout(w.Context(), callLimit)
	defer cancel()
	w.stop = cancel
	var o *outcome
	if w.cell.carrier == process && r.Input == nil {
		o = elsewhere(ctx, w.T, job{Setup: w.setup, Request: r, Document: w.last.Document})
	} else {
		w.at(func(p *place) { o = p.call(ctx, r, w.state(r)) })
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		w.Fatalf("G5: call %d took longer than %s", len(w.outcomes)+1, callLimit)
	}
	w.last = o
	if onEngine(w.cell) {
		o.readErrors()
	}
	o.Error = storeID.ReplaceAllString(o.Error, "store/ID")
	if slices.Contains(o.Errors, "cut") {
		o.Error = "the answer broke off" // which is another error for a stream
	}
	w.outcomes = append(w.outcomes, o.seen)
	w.checkAlways(o)
	return o
}

// note records decisions before they are made, so that the log of effects says what was allowed when.
func (w *world) note(decisions []decision) {
	w.Helper()
	for _, d := range decisions {
		i := slices.IndexFunc(w.last.Interruptions, func(a asked) bool { return a.CallID == d.CallID })
		if i < 0 {
			w.Fatalf("no interruption of call %s was shown: %v", d.CallID, w.last.Interruptions)
		}
		in := w.last.Interruptions[i]
		about := pawltest.Effect{Tool: reviewer, Key: strings.TrimPrefix(in.Server+"/"+in.Tool, "/"), CallID: d.CallID, Arguments: d.Verdict}
		if err := w.log.Record(about); err != nil {
			w.Fatal(err)
		}
		w.verdicts = append(w.verdicts, verdict{in.ID, d})
	}
}

// start starts the run with a message of the user's.
func (w *world) start(text string) *outcome {
	w.Helper()
	return w.do(request{Input: []item.Item{item.UserText(text)}})
}

// anotherRun makes the next calls those of another run.
func (w *world) anotherRun(id string) {
	w.setup.Run, w.verdicts = id, nil
	if w.stay != nil {
		w.stay.Run = id
	}
}

// resume goes on after some decisions, or none.
func (w *world) resume(decisions ...decision) *outcome {
	w.Helper()
	return w.do(request{Decide: decisions})
}

// waits checks that the caller was asked about these calls, in this order, each under an id of its own.
func (w *world) waits(callIDs ...string) {
	w.Helper()
	var got []string
	ids := map[string]bool{}
	for _, in := range w.last.Interruptions {
		got = append(got, in.CallID)
		ids[in.ID] = true
	}
	if w.last.Error != "" || w.last.Status != pawl.StatusWaiting || !slices.Equal(got, callIDs) || len(ids) != len(callIDs) {
		w.Fatalf("the run is %s (error %q) and asks about %v, want waiting and %v", w.last.Status, w.last.Error, w.last.Interruptions, callIDs)
	}
}

// fails checks which errors reached the caller.
func (w *world) fails(names ...string) {
	w.Helper()
	if !slices.Equal(w.last.Errors, names) {
		w.Fatalf("the error is %q, which is %q, want %q", w.last.Error, w.last.Errors, names)
	}
}

// ends checks that the run has its final output.
func (w *world) ends(output string) {
	w.Helper()
	if w.last.Error != "" || w.last.Status != pawl.StatusFinished || w.last.Final != output {
		w.Fatalf("the run is %s with output %q (error %q), want finished with %q", w.last.Status, w.last.Final, w.last.Error, output)
	}
}

// effects checks what the tools did so far, each "TOOL CALL", in any order.
func (w *world) effects(want ...string) {
	w.Helper()
	got := []string{}
	for _, e := range w.recorded() {
		if e.Tool != reviewer {
			got = append(got, e.Tool+" "+e.CallID)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.Fatalf("G1: effects %q, want %q", got, want)
	}
}

func (w *world) recorded() []pawltest.Effect {
	w.Helper()
	effects, err := w.log.Effects()
	if err != nil {
		w.Fatal(err)
	}
	for i := range effects { // the attempt before was not executed
		if e := &effects[i]; e.Attempt == 2 && slices.Contains(w.refused, e.CallID) {
			e.Attempt = 1
		}
	}
	return effects
}

// requests checks how many requests the model has got.
func (w *world) requests(want int) {
	w.Helper()
	if got := len(w.sent()); got != want {
		w.Fatalf("the model has got %d requests, want %d", got, want)
	}
}

// sent returns the run's requests as the server captured them.
func (w *world) sent() []pawltest.ResponsesRequest {
	return slices.DeleteFunc(w.server.Requests()[w.foreign:], func(r pawltest.ResponsesRequest) bool { return w.notOurs != nil && w.notOurs(&r) })
}

// sentBy returns those of agents whose instructions are so, and that were answered to the end.
func (w *world) sentBy(is func(instructions string) bool) (list []pawltest.ResponsesRequest) {
	for _, r := range w.sent() {
		if r.Stored && is(r.Instructions) {
			list = append(list, r)
		}
	}
	return list
}

// sentOnce checks how often the server was sent an output of these calls.
func (w *world) sentOnce(callIDs ...string) {
	w.Helper()
	for _, id := range callIDs {
		if n := w.server.OutputsSent(id); n != 1 {
			w.Errorf("the output of %s was sent %d times", id, n)
		}
	}
}

// holds checks what the session holds.
func (w *world) holds(want string) {
	w.Helper()
	if diff := cmp.Diff(split(want), shapes(w.rows(sessionID))); diff != "" {
		w.Fatalf("session (-want +got):\n%s", diff)
	}
}

// conversation makes a conversation on the server.
func (w *world) conversation() string {
	w.Helper()
	return w.post("/conversations", `{}`)
}

// earlierResponse has the server make a response that is not the run's, by the first step of the script.
func (w *world) earlierResponse() string {
	w.Helper()
	w.foreign = 1
	return w.post("/responses", `{"model":"gpt-test","input":"earlier"}`)
}

// post sends a request that is not the run's and returns the id of what it made.
func (w *world) post(path, body string) string {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.server.URL()+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	var made struct{ ID string }
	if err := w.fetch(req, &made); err != nil || made.ID == "" {
		w.Fatalf("POST %s made %q: %v", path, made.ID, err)
	}
	return made.ID
}

// fetch reads the JSON of an answer.
func (w *world) fetch(req *http.Request, into any) error {
	resp, err := w.server.Client().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// unsettled checks which calls of all the store's runs nobody knows the effect of, their times aside.
func (w *world) unsettled(want ...pawl.Unsettled) {
	w.Helper()
	w.at(func(p *place) {
		runner, _ := p.options(request{})
		var got []pawl.Unsettled
		for u, err := range runner.Unsettled(w.Context(), nil) {
			if err != nil {
				w.Fatal(err)
			}
			u.Since, u.Why = time.Time{}, ""
			got = append(got, u)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Fatalf("unsettled (-want +got):\n%s", diff)
		}
	})
}

func (w *world) close() {
	w.Helper()
	for _, k := range w.workers {
		k.end()
	}
	if w.stay != nil {
		if err := w.stay.close(); err != nil {
			w.Error(err)
		}
	}
	if w.server == nil {
		return
	}
	if err := w.server.Close(); err != nil {
		w.Error(err)
	}
}

// stays makes the calls from here on in one place.
func (w *world) stays() {
	w.Helper()
	p, err := open(w.setup)
	if err != nil {
		w.Fatal(err)
	}
	w.stay = p
}

// leaves ends what stays began, unless the carrier stays anyway.
func (w *world) leaves() {
	w.Helper()
	if w.cell.carrier == live {
		return
	}
	if err := w.stay.close(); err != nil {
		w.Error(err)
	}
	w.stay = nil
}

// eventually waits for what happens by itself.
func (w *world) eventually(what string, is func() bool) {
	w.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(callLimit); !is(); {
		select {
		case <-tick.C:
		case <-limit:
			w.Fatalf("G5: not in %s: %s", callLimit, what)
		}
	}
}
