package pawl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
)

// What is decided on a state is seen by that copy only.
func TestStateCopies(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	agent := agentWith(m, charging("charge", &e, asking))
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	a, b := res.State(), res.State()
	in := res.Interruptions[0]
	if err := a.Approve(in, "ann"); err != nil {
		t.Fatal(err)
	}
	c := viaJSON(t, a)
	for name, s := range map[string]*pawl.RunState{"another": b, "a later": res.State(), "the stored": replays(t, &r, "r")} {
		if len(s.Interruptions()) != 1 || len(s.Staged()) != 0 {
			t.Errorf("%s state knows of it", name)
		}
	}
	for name, s := range map[string]*pawl.RunState{"the state": a, "its document": c} {
		if len(s.Interruptions()) != 0 || len(s.Staged()) != 1 {
			t.Errorf("%s does not know of it", name)
		}
	}
	a.Staged()[0].Verdict = "x"
	if a.Staged()[0].Verdict != journal.Approve {
		t.Error("Staged shares memory")
	}
	if err := b.Reject(in, "bob", "no"); err != nil {
		t.Fatal(err)
	}
	// The copy that is resumed first wins; the other learns who decided.
	must(t)(r.Resume(t.Context(), agent, a, nil))
	_, err := r.Resume(t.Context(), agent, b, nil)
	if !errors.Is(err, pawl.ErrDecided) || !strings.Contains(err.Error(), `approve by "ann"`) {
		t.Errorf("the other copy: %v", err)
	}
	if res := must(t)(r.Resume(t.Context(), agent, c, nil)); res.FinalOutput != "done" {
		t.Errorf("the copy that says the same: %+v", res)
	}
	e.want(t, "charge 5")
}

// Staging refuses what the run would refuse.
func TestStaging(t *testing.T) {
	s := pausedState(t)
	second := s.Interruptions()[0]
	first := "1.0#0"
	edit := pawl.Edit(second.ID, "ann", `{"cents": 1}`)
	for name, tt := range map[string]struct {
		d    pawl.Decision
		want error
	}{
		"the same, by another": {pawl.Reject(first, "bob", "too much"), nil},
		"another message":      {pawl.Reject(first, "ann", "no"), pawl.ErrDecided},
		"another verdict":      {pawl.Approve(first, "ann"), pawl.ErrDecided},
		"not open":             {pawl.Approve("1.2#0", "ann"), pawl.ErrNotOpen},
		"later stage":          {pawl.Settle("1.1#1", "ann", "x"), pawl.ErrNotOpen},
		"no such call":         {pawl.Approve("9.9#0", "ann"), pawl.ErrNotOpen},
		"no id":                {pawl.Approve("", "ann"), pawl.ErrDecision},
		"not an id":            {pawl.Approve("c1", "ann"), pawl.ErrDecision},
		"negative":             {pawl.Approve("1.-1#0", "ann"), pawl.ErrDecision},
		"settle":               {pawl.Settle(second.ID, "ann", "x"), pawl.ErrDecision},
		"retry":                {pawl.Retry(second.ID, "ann"), pawl.ErrDecision},
		"give up":              {pawl.GiveUp(second.ID, "ann"), pawl.ErrDecision},
		"no verdict":           {pawl.Decision{Interruption: second.ID, By: "ann"}, pawl.ErrDecision},
		"unreadable edit":      {pawl.Edit(second.ID, "ann", `{"cents":`), pawl.ErrDecision},
		"edit of no object":    {pawl.Edit(second.ID, "ann", `5`), pawl.ErrDecision},
		"edit and reject":      {pawl.Decision{Interruption: second.ID, Verdict: journal.Reject, Arguments: `{"cents":1}`}, pawl.ErrDecision},
		"message and approve":  {pawl.Decision{Interruption: second.ID, Verdict: journal.Approve, Message: "hi"}, pawl.ErrDecision},
		"output and approve":   {pawl.Decision{Interruption: second.ID, Verdict: journal.Approve, Output: "hi"}, pawl.ErrDecision},
		"bad text":             {pawl.Approve(second.ID, "\xff"), pawl.ErrDecision},
		"edit":                 {edit, nil},
		"the edit, respelled":  {pawl.Edit(second.ID, "bob", `{"cents":1}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := viaJSON(t, s)
			if strings.Contains(name, "respelled") {
				if err := s.Decide(edit); err != nil {
					t.Fatal(err)
				}
			}
			err := s.Decide(tt.d)
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if err != nil && stateOf(t, err).Run() != "run-1" {
				t.Error("the error's state is another run's")
			}
			viaJSON(t, s)
		})
	}
}

// A decision is for the arguments its decider saw.
func TestDecisionIsBound(t *testing.T) {
	var e effects
	start := func(cents int) *pawl.Result {
		var r pawl.Runner
		m := newScript(calling(fc("c1", "charge", fmt.Sprintf(`{"cents":%d}`, cents))))
		return must(t)(r.Run(t.Context(), agentWith(m, charging("charge", &e, asking)), pawl.UserText("pay"), nil))
	}
	five, fifty := start(5), start(50)
	s := fifty.State()
	if err := s.Approve(five.Interruptions[0], "ann"); !errors.Is(err, pawl.ErrDecision) {
		t.Errorf("approving what was seen elsewhere: %v", err)
	}
	if err := s.Approve(fifty.Interruptions[0], "ann"); err != nil {
		t.Error(err)
	}
}

func TestFork(t *testing.T) {
	var e effects
	keys := map[string]bool{}
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"), says("done"), says("done"))
	agent := agentWith(m, charging("charge", &e, func(f *pawl.Func[charge, string]) {
		asking(f)
		f.Run = func(_ context.Context, c *pawl.Call, in charge) (string, error) {
			e.add("%s charge %d", c.Run, in.Cents)
			keys[c.Key] = true
			return "receipt", nil
		}
	}))
	sess := session.NewMemory("s")
	store := journal.NewMemory()
	r := &pawl.Runner{Store: store}
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess}))
	s := res.State()
	if err := s.Approve(res.Interruptions[0], "ann"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", "r"} {
		if _, err := s.Fork(id); !errors.Is(err, pawl.ErrFork) {
			t.Errorf("fork %q: %v", id, err)
		}
	}
	plain, err := s.Fork("plain")
	if err != nil {
		t.Fatal(err)
	}
	own, err := s.Fork("own")
	if err != nil {
		t.Fatal(err)
	}
	if plain.Run() != "plain" || plain.SessionID() != "" || len(plain.Staged()) != 1 || s.Run() != "r" || s.SessionID() != "s" {
		t.Errorf("fork %q of %q", plain.Run(), s.Run())
	}
	if err := plain.Decide(pawl.Reject(res.Interruptions[0].ID, "bob", "no")); !errors.Is(err, pawl.ErrDecided) {
		t.Errorf("decisions are copied: %v", err)
	}

	a := must(t)(r.Resume(t.Context(), agent, viaJSON(t, plain), nil))
	other := session.NewMemory("other")
	b := must(t)(r.Resume(t.Context(), agent, own, &pawl.RunOptions{Session: other}))
	c := must(t)(r.Resume(t.Context(), agent, s, &pawl.RunOptions{Session: sess}))
	e.want(t, "plain charge 5", "own charge 5", "r charge 5")
	if len(keys) != 3 {
		t.Errorf("%d keys of 3 runs", len(keys))
	}
	for _, res := range []*pawl.Result{a, b, c} {
		if res.FinalOutput != "done" {
			t.Errorf("%+v", res)
		}
		if got := replays(t, r, res.Run).Result(); !cmp.Equal(got.ToInputList(), res.ToInputList()) {
			t.Errorf("stored run %s differs", res.Run)
		}
	}
	sameViews(t, b, m, other)
	sameViews(t, c, m, sess)
	// A fork is one run, however often it is resumed; its session is bound.
	if res := must(t)(r.Resume(t.Context(), agent, plain, nil)); res.FinalOutput != "done" {
		t.Errorf("%+v", res)
	}
	if _, err := r.Resume(t.Context(), agent, own, nil); !errors.Is(err, pawl.ErrSessionMissing) {
		t.Errorf("a fork with a session: %v", err)
	}
	if _, err := r.Resume(t.Context(), agent, plain, &pawl.RunOptions{Session: other}); !errors.Is(err, pawl.ErrSessionMismatch) {
		t.Errorf("a fork without: %v", err)
	}
	e.want(t, "plain charge 5", "own charge 5", "r charge 5")
}

// What cannot be forked says so.
func TestForkRefused(t *testing.T) {
	var e effects
	agent := func(body func()) *pawl.Agent {
		return agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) { body(); return "", nil }
		}))
	}
	s, err := pawl.ParseRunState(snapshot(t, agent, &pawl.RunOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fork("f"); !errors.Is(err, pawl.ErrFork) || stateOf(t, err).Run() != "r" {
		t.Errorf("while a call may be running: %v", err)
	}
	m := newScript(failing(errors.New("down")))
	m.info.ServerState = true
	var r pawl.Runner
	_, err = r.Run(t.Context(), agentWith(m), pawl.UserText("hi"), &pawl.RunOptions{ConversationID: "conv"})
	if _, err := stateOf(t, err).Fork("f"); !errors.Is(err, pawl.ErrFork) {
		t.Errorf("on a conversation: %v", err)
	}
}

// A state holds neither the user's value nor another copy's decisions, and its results
// do not change when the run goes on.
func TestResultsDoNotChange(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	agent := agentWith(m, charging("charge", &e, asking))
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{Context: "sesame"}))
	s := res.State()
	doc := marshal(t, s)
	if bytes.Contains(doc, []byte("sesame")) {
		t.Error("the user's value is in the document")
	}
	if err := s.Approve(res.Interruptions[0], "ann"); err != nil {
		t.Fatal(err)
	}
	must(t)(r.Resume(t.Context(), agent, s, nil))
	if !res.Waiting() || len(res.Interruptions) != 1 || len(res.NewItems()) != 0 || len(res.ToInputList()) != 1 || !bytes.Equal(doc, marshal(t, res.State())) {
		t.Errorf("the first result changed: %+v", res)
	}
}

// A document in a Runner without a store is the run: two copies of it are one run.
func TestDocumentTwice(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	agent := agentWith(m, charging("charge", &e, asking))
	var first pawl.Runner
	s := must(t)(first.Run(t.Context(), agent, pawl.UserText("pay"), nil)).State()
	if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	var r pawl.Runner
	a := must(t)(r.Resume(t.Context(), agent, viaJSON(t, s), nil))
	b := must(t)(r.Resume(t.Context(), agent, viaJSON(t, s), nil))
	if a.FinalOutput != "done" || b.FinalOutput != "done" || !cmp.Equal(a.ToInputList(), b.ToInputList()) {
		t.Errorf("%+v and %+v", a, b)
	}
	e.want(t, "charge 5")
	// A document of what the run came to goes on living.
	for range 3 {
		var next pawl.Runner
		res := must(t)(next.Resume(t.Context(), agent, viaJSON(t, replays(t, &r, a.Run)), nil))
		if res.FinalOutput != "done" {
			t.Errorf("%+v", res)
		}
	}
}

// Every pause of a run may pass through another Runner.
func TestDocumentFromRunnerToRunner(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":1}`)), calling(fc("c2", "charge", `{"cents":2}`)), calling(fc("c3", "charge", `{"cents":3}`)), says("done"))
	agent := agentWith(m, charging("charge", &e, asking))
	res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), nil))
	for res.Waiting() {
		s := viaJSON(t, res.State())
		if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		res = must(t)(new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, s), nil))
	}
	e.want(t, "charge 1", "charge 2", "charge 3")
	sameViews(t, res, m, nil)
}

// A document of a run that a store does not have, or has gone on with, is told apart.
func TestDocumentAndStore(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "charge", `{"cents":6}`)), says("done"))
	agent := agentWith(m, charging("charge", &e, asking))
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			e.list = nil
			m.asked = nil
			r := &pawl.Runner{Store: open(t)}
			first := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})).State()
			ids := []string{first.Interruptions()[0].ID, first.Interruptions()[1].ID}

			elsewhere := &pawl.Runner{Store: open(t)}
			if _, err := elsewhere.Resume(t.Context(), agent, first, nil); !errors.Is(err, pawl.ErrUnknownRun) || stateOf(t, err).Run() != "r" {
				t.Errorf("in a store without it: %v", err)
			}
			if err := elsewhere.Decide(t.Context(), "r", pawl.Approve(ids[0], "ann")); !errors.Is(err, pawl.ErrUnknownRun) {
				t.Errorf("deciding there: %v", err)
			}

			// The run moves on: the first call is approved, and a driver looks in.
			if err := r.Decide(t.Context(), "r", pawl.Approve(ids[0], "ann")); err != nil {
				t.Fatal(err)
			}
			second := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil)).State()
			e.want(t, "charge 5")

			// A copy from before that decides the same attaches; one that decides what has
			// moved on does not.
			same := viaJSON(t, first)
			if err := same.Decide(pawl.Approve(ids[0], "bob")); err != nil {
				t.Fatal(err)
			}
			if res := must(t)(r.Resume(t.Context(), agent, same, nil)); !res.Waiting() {
				t.Errorf("%+v", res)
			}
			other := viaJSON(t, first)
			if err := other.Decide(pawl.Reject(ids[0], "bob", "")); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Resume(t.Context(), agent, other, nil); !errors.Is(err, pawl.ErrDecided) {
				t.Errorf("another verdict: %v", err)
			}
			// A document that knows more than the store is of another history.
			ahead := viaJSON(t, replays(t, r, "r"))
			rec := journal.Encode(journal.Fact{Time: 1, Body: &journal.Resumed{}}, [16]byte{})
			doc := strings.Replace(string(marshal(t, ahead)), fmt.Sprintf(`"head":%d`, ahead.Facts()), fmt.Sprintf(`"head":%d`, ahead.Facts()+1), 1)
			doc = doc[:len(doc)-2] + "," + string(journal.AppendRecordJSON(nil, &rec)) + "]}"
			s, err := pawl.ParseRunState([]byte(doc))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Resume(t.Context(), agent, s, nil); !errors.Is(err, pawl.ErrConflict) {
				t.Errorf("a document ahead of the store: %v", err)
			}
			if err := second.Approve(second.Interruptions()[0], "ann"); err != nil {
				t.Fatal(err)
			}
			if res := must(t)(r.Resume(t.Context(), agent, second, nil)); res.FinalOutput != "done" {
				t.Errorf("%+v", res)
			}
			e.want(t, "charge 5", "charge 6")
			// A decision that the run has moved past.
			late := viaJSON(t, first)
			if err := late.Decide(pawl.Approve(ids[1], "zoe")); err != nil {
				t.Fatal(err)
			}
			if res := must(t)(r.Resume(t.Context(), agent, late, nil)); res.FinalOutput != "done" {
				t.Errorf("%+v", res)
			}
		})
	}
}

// A decision staged on a copy of a run that was ended meanwhile is refused as a conflict.
func TestStagedOnRunThatEnded(t *testing.T) {
	var e effects
	agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`))), charging("charge", &e, asking))
	var r pawl.Runner
	s := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})).State()
	if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	if err := r.Cancel(t.Context(), "r", "bob", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrCancelled) {
		t.Fatal(err)
	}
	_, err := r.Resume(t.Context(), agent, s, nil)
	if !errors.Is(err, pawl.ErrConflict) || !errors.Is(err, pawl.ErrNotOpen) {
		t.Errorf("%v", err)
	}
	if now := stateOf(t, err); now.Status() != pawl.StatusCancelled {
		t.Errorf("the error's state is %s", now.Status())
	}
	e.want(t)
}

// A cancellation and an approval that both wait for a driver: the run ends, the call does
// not run.
func TestApprovedAndCancelled(t *testing.T) {
	var e effects
	agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`))), charging("charge", &e, asking))
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
		t.Fatal(err)
	}
	if err := r.Cancel(t.Context(), "r", "bob", ""); err != nil {
		t.Fatal(err)
	}
	res, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil)
	if !errors.Is(err, pawl.ErrCancelled) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c1: The tool was not executed: the run was cancelled."}, outputs(res.NewItems())); diff != "" {
		t.Error(diff)
	}
	e.want(t)
	replays(t, &r, "r")
}
