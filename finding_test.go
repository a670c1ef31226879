package pawl_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// findings are the decisions on run "r" that stand in its ledger behind a call's end.
func findings(t *testing.T, store journal.Driver) (list []journal.Decided) {
	t.Helper()
	recs, err := store.Read(t.Context(), "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	settled := map[journal.EffectID]bool{}
	for _, rec := range recs {
		f, err := journal.Decode(rec)
		if err != nil {
			t.Fatal(err)
		}
		switch b := f.Body.(type) {
		case *journal.Settled:
			settled[journal.EffectID{Kind: b.ID.Kind, N: b.ID.N, P: b.ID.P}] = true
		case *journal.Decided:
			if settled[b.Call] {
				list = append(list, journal.Decided{Call: b.Call, Stage: b.Stage, Verdict: b.Verdict, Text: b.Text, By: b.By, Why: b.Why})
			}
		}
	}
	return list
}

// What somebody found out about a call of which the model was told that its outcome is unknown is recorded, however the run
// stands, and nothing of the conversation changes (M9.20).
func TestFinding(t *testing.T) {
	lost := saying(pawl.ErrOutcomeUnknown, nil)
	first := calling(fc("c1", "charge", `{"cents":5}`))
	for name, tt := range map[string]struct {
		steps  []step
		status pawl.Status
	}{
		"finished": {[]step{first, says("done")}, pawl.StatusFinished},
		"waiting":  {[]step{first, calling(fc("c2", "pay", `{"cents":6}`)), says("done")}, pawl.StatusWaiting},
		"beside an open call": {[]step{calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "pay", `{"cents":6}`)), says("done")},
			pawl.StatusWaiting},
		"failed": {[]step{first, failing(errors.New("no")), says("done")}, pawl.StatusFailed},
	} {
		for store, open := range stores {
			t.Run(name+"/"+store, func(t *testing.T) {
				var e effects
				m := newScript(tt.steps...)
				agent := agentWith(m, charging("charge", &e, lost), charging("pay", &e, asking))
				r := &pawl.Runner{Store: open(t)}
				r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				before := replays(t, r, "r")
				if before.Status() != tt.status {
					t.Fatalf("status %s", before.Status())
				}
				told := before.Unsettled()
				if len(told) != 1 || told[0].Standing != pawl.StandsTold || told[0].Interruption != "1.0#1" {
					t.Fatalf("unsettled %+v", told)
				}
				finding := pawl.Settle(told[0].Interruption, "ann", "the bank has it")
				finding.Why = "asked on the phone"
				for _, d := range []pawl.Decision{finding, pawl.Settle("1.0#1", "bob", "the bank has it")} {
					if err := r.Decide(t.Context(), "r", d); err != nil {
						t.Fatal(err)
					}
				}
				if err := r.Decide(t.Context(), "r", pawl.Settle("1.0#1", "bob", "it has not")); !errors.Is(err, pawl.ErrDecided) {
					t.Errorf("another finding: %v", err)
				}
				want := []journal.Decided{{Call: journal.EffectID{Kind: journal.EffectTool, N: 1}, Stage: 1, Verdict: journal.Settle,
					Text: "the bank has it", By: "ann", Why: "asked on the phone"}}
				if diff := cmp.Diff(want, findings(t, r.Store)); diff != "" {
					t.Errorf("findings (-want +got):\n%s", diff)
				}
				wantUnsettled(t, "found", r.Store)
				after := replays(t, r, "r")
				if diff := cmp.Diff(before.Result().ToInputList(), after.Result().ToInputList()); diff != "" || after.Status() != tt.status {
					t.Errorf("status %s, conversation:\n%s", after.Status(), diff)
				}
				res, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil)
				for err == nil && res.Waiting() {
					s := res.State()
					if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
						t.Fatal(err)
					}
					res, err = r.Resume(t.Context(), agent, s, nil)
				}
				if err != nil || res.FinalOutput != "done" || len(m.calls()) != len(tt.steps) {
					t.Errorf("result %+v, %v; %d requests", res, err, len(m.calls()))
				}
				sameViews(t, res, m, nil)
			})
		}
	}
}

// A finding is about a call that is settled as unknown, once, and says what became of it.
func TestFindingRefused(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "pay", `{"cents":6}`)), says("done"))
	agent := agentWith(m, charging("charge", &e, saying(pawl.ErrOutcomeUnknown, nil)), charging("pay", &e, nil))
	r := &pawl.Runner{Store: journal.NewMemory()}
	must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	for _, tt := range []struct {
		d    pawl.Decision
		want error
	}{
		{pawl.GiveUp("1.0#1", "ann"), pawl.ErrDecision},
		{pawl.Retry("1.0#1", "ann"), pawl.ErrDecision},
		{pawl.Approve("1.0#1", "ann"), pawl.ErrDecision},
		{pawl.Settle("1.0#2", "ann", "x"), pawl.ErrNotOpen},
		{pawl.Settle("1.1#1", "ann", "x"), pawl.ErrNotOpen},
		{pawl.Settle("2.0#1", "ann", "x"), pawl.ErrNotOpen},
	} {
		if err := r.Decide(t.Context(), "r", tt.d); !errors.Is(err, tt.want) {
			t.Errorf("%s %s: %v", tt.d.Verdict, tt.d.Interruption, err)
		}
	}
	wantUnsettled(t, "refused", r.Store, "r 1.0 c1 charge told 1.0#1 attempt 1 pawl: the outcome is unknown")
	if entries, err := r.Store.Inbox(t.Context(), "r"); len(entries) > 0 || err != nil {
		t.Errorf("inbox %v, %v", entries, err)
	}
}

// A finding may be staged on a document, with a store and without one.
func TestFindingOnADocument(t *testing.T) {
	for name, store := range map[string]journal.Driver{"document": nil, "store": openSQLite(t, filepath.Join(t.TempDir(), "runs.db"))} {
		t.Run(name, func(t *testing.T) {
			var e effects
			agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, saying(pawl.ErrOutcomeUnknown, nil)))
			res := must(t)((&pawl.Runner{Store: store}).Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
			s := viaJSON(t, res.State())
			if err := s.Decide(pawl.Settle("1.0#1", "ann", "paid")); err != nil {
				t.Fatal(err)
			}
			again := must(t)((&pawl.Runner{Store: store}).Resume(t.Context(), agent, viaJSON(t, s), nil))
			if left := again.State().Unsettled(); left != nil || again.FinalOutput != "done" {
				t.Errorf("unsettled %+v, output %q", left, again.FinalOutput)
			}
			if diff := cmp.Diff(res.ToInputList(), again.ToInputList()); diff != "" {
				t.Errorf("conversation:\n%s", diff)
			}
			if staged := again.State().Staged(); staged != nil {
				t.Errorf("staged %+v", staged)
			}
		})
	}
}

// Whoever drives the run takes a finding in; a cancellation that nobody has carried out yet is no reason to refuse one.
func TestFindingWhileDriven(t *testing.T) {
	var e effects
	entered, found := make(chan struct{}), make(chan struct{})
	agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), calling(fc("c2", "pay", `{"cents":6}`)), says("done")),
		charging("charge", &e, saying(pawl.ErrOutcomeUnknown, nil)), charging("pay", &e, func(f *pawl.Func[charge, string]) {
			pay := f.Run
			f.Run = func(ctx context.Context, c *pawl.Call, in charge) (string, error) {
				close(entered)
				<-found
				return pay(ctx, c, in)
			}
		}))
	r := &pawl.Runner{Store: journal.NewMemory()}
	go func() {
		defer close(found)
		<-entered
		if err := r.Decide(t.Context(), "r", pawl.Settle("1.0#1", "ann", "paid")); err != nil {
			t.Error(err)
		}
		if err := r.Cancel(t.Context(), "r", "ann", ""); err != nil {
			t.Error(err)
		}
	}()
	if _, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}); !errors.Is(err, pawl.ErrCancelled) {
		t.Fatal(err)
	}
	if got := findings(t, r.Store); len(got) != 1 || got[0].Text != "paid" {
		t.Errorf("findings %+v", got)
	}
}
