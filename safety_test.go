package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/session"
)

// A connection that breaks once there was one leaves open whether the far side acted.
// One that never came about does not.
func TestBrokenConnectionIsUnknown(t *testing.T) {
	booked := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer booked.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.Write([]byte("half"))
	}))
	defer cut.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + listener.Addr().String()
	listener.Close()
	for name, tt := range map[string]struct {
		url     string
		unknown bool
	}{
		"no answer":      {booked.URL, true},
		"half an answer": {cut.URL, true},
		"nobody there":   {nobody, false},
	} {
		t.Run(name, func(t *testing.T) {
			pay := charging("charge", new(effects), func(f *pawl.Func[charge, string]) {
				f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return "", get(tt.url) }
			})
			var r pawl.Runner
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			res := must(t)(r.Run(t.Context(), agentWith(m, pay), pawl.UserText("pay"), nil))
			out := outputs(res.NewItems())[0]
			if got := strings.Contains(out, "outcome of this tool call is unknown"); got != tt.unknown {
				t.Errorf("the model reads %q", out)
			}
		})
	}
}

// get returns the error of reading what the URL has.
func get(url string) error {
	res, err := http.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.ReadAll(res.Body)
	return err
}

// An empty form field is no approval of what the model asked for.
func TestEditWithEmptyArguments(t *testing.T) {
	var e effects
	var r pawl.Runner
	m := newScript(calling(fc("c1", "charge", `{"cents":9000}`)))
	agent := agentWith(m, charging("charge", &e, asking))
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "run-1"}))
	edit := pawl.Edit(res.Interruptions[0].ID, "ann", "")
	if err := r.Decide(t.Context(), "run-1", edit); !errors.Is(err, pawl.ErrDecision) {
		t.Errorf("Decide: %v, want ErrDecision", err)
	}
	if err := res.State().Decide(edit); !errors.Is(err, pawl.ErrDecision) {
		t.Errorf("RunState.Decide: %v, want ErrDecision", err)
	}
	if res = must(t)(r.Resume(t.Context(), agent, res.State(), nil)); !res.Waiting() {
		t.Errorf("the run is %s", res.Status)
	}
	e.want(t)
}

// Interruption ids are equal from run to run. What the decider was shown is not, also
// after it went to a browser and back.
func TestDecisionOnAnotherRun(t *testing.T) {
	var e effects
	start := func(id, args string) *pawl.Result {
		var r pawl.Runner
		m := newScript(calling(fc("c1", "charge", args)))
		return must(t)(r.Run(t.Context(), agentWith(m, charging("charge", &e, asking)), pawl.UserText("pay"), &pawl.RunOptions{ID: id}))
	}
	mine, equal, dear := start("a", `{"cents":5}`), start("b", `{"cents":5}`), start("a", `{"cents":999}`)
	doc, err := json.Marshal(mine.Interruptions[0])
	if err != nil {
		t.Fatal(err)
	}
	var seen pawl.Interruption
	if err := json.Unmarshal(doc, &seen); err != nil {
		t.Fatal(err)
	}
	forged := seen
	forged.Arguments = `{"cents":1}`
	for name, tt := range map[string]struct {
		on *pawl.Result
		in pawl.Interruption
	}{
		"another run with equal arguments":       {equal, seen},
		"the same id with other arguments":       {dear, seen},
		"arguments that were changed on the way": {mine, forged},
	} {
		if err := tt.on.State().Approve(tt.in, "ann"); !errors.Is(err, pawl.ErrDecision) {
			t.Errorf("%s: %v, want ErrDecision", name, err)
		}
		if err := tt.on.State().Reject(tt.in, "ann", ""); !errors.Is(err, pawl.ErrDecision) {
			t.Errorf("rejecting %s: %v, want ErrDecision", name, err)
		}
	}
	if err := mine.State().Approve(seen, "ann"); err != nil {
		t.Error(err)
	}
}

// An output nobody called for would make the session unusable.
func TestInputWithAnOrphanOutput(t *testing.T) {
	s := session.NewMemory("s")
	var r pawl.Runner
	m := newScript(says("done"))
	input := pawl.Input{item.UserText("hi"), item.FunctionOutput("zz", "1")}
	_, err := r.Run(t.Context(), agentWith(m), input, &pawl.RunOptions{Session: s})
	var config *pawl.ConfigError
	if !errors.As(err, &config) || config.Field != "input" {
		t.Errorf("%v, want a ConfigError of the input", err)
	}
	if items, _ := s.Items(t.Context(), -1); len(items) != 0 || len(m.asked) != 0 {
		t.Errorf("the session has %v, the model was asked %d times", items, len(m.asked))
	}
	pair := pawl.Input{item.UserText("hi"), fc("zz", "charge", "{}"), item.FunctionOutput("zz", "1")}
	must(t)(r.Run(t.Context(), agentWith(m), pair, &pawl.RunOptions{Session: s}))
}

// Whoever decides after a cancellation is told that it counts for nothing.
func TestDecideAfterCancel(t *testing.T) {
	var e effects
	var r pawl.Runner
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)))
	agent := agentWith(m, charging("charge", &e, asking))
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "run-1"}))
	if err := r.Cancel(t.Context(), "run-1", "ann", "not needed"); err != nil {
		t.Fatal(err)
	}
	if err := r.Decide(t.Context(), "run-1", pawl.Approve(res.Interruptions[0].ID, "bob")); !errors.Is(err, pawl.ErrNotOpen) {
		t.Errorf("%v, want ErrNotOpen", err)
	}
	if _, err := r.Resume(t.Context(), agent, pawl.RunID("run-1"), nil); !errors.Is(err, pawl.ErrCancelled) {
		t.Errorf("%v, want ErrCancelled", err)
	}
	e.want(t)
}

// A run that ended needs neither its agent nor its session to say what it came to.
func TestResumeOfAnEndedRunNeedsNothing(t *testing.T) {
	var r pawl.Runner
	opts := &pawl.RunOptions{ID: "run-1", Session: session.NewMemory("s")}
	must(t)(r.Run(t.Context(), agentWith(newScript(says("done"))), pawl.UserText("hi"), opts))
	res := must(t)(r.Resume(t.Context(), nil, pawl.RunID("run-1"), nil))
	if res.FinalOutput != "done" || res.Status != pawl.StatusFinished {
		t.Errorf("%s: %q", res.Status, res.FinalOutput)
	}
}
