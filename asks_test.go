package pawl_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/sqlstore"
)

// A tool whose result comes later: the run waits, for a week if need be, and the result
// becomes the output.
func TestPending(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		note string
	}{
		"plain":   {pawl.ErrPending, ""},
		"wrapped": {fmt.Errorf("transfer 881: %w", pawl.ErrPending), "transfer 881"},
	} {
		for _, how := range []string{"live", "json"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				var e, ignored effects
				m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "look", `{"cents":1}`)), says("done"))
				agent := agentWith(m, charging("look", &ignored, nil), charging("charge", &e, func(f *pawl.Func[charge, string]) {
					f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
						e.add("started")
						return "ignored", tt.err
					}
				}))
				r := &pawl.Runner{}
				res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
				s := res.State()
				if how == "json" {
					s, r = viaJSON(t, s), &pawl.Runner{}
				}
				in := s.Interruptions()[0]
				if len(s.Interruptions()) != 1 || in.Kind != pawl.External || in.Note != tt.note || !strings.HasPrefix(in.Key, "pawl_") || len(res.NewItems()) != 0 {
					t.Fatalf("%+v", s.Interruptions())
				}
				for _, d := range []pawl.Decision{pawl.Approve(in.ID, "ann"), pawl.Reject(in.ID, "ann", ""), pawl.Retry(in.ID, "ann"), pawl.GiveUp(in.ID, "ann")} {
					if err := s.Decide(d); !errors.Is(err, pawl.ErrDecision) {
						t.Errorf("%s: %v", d.Verdict, err)
					}
				}
				if err := s.Decide(pawl.Settle(in.ID, "the bank", "arrived")); err != nil {
					t.Fatal(err)
				}
				res = must(t)(r.Resume(t.Context(), agent, s, nil))
				if diff := cmp.Diff([]string{"c1: arrived", "c2: receipt 1"}, outputs(res.NewItems())); diff != "" || res.FinalOutput != "done" {
					t.Errorf("%+v %s", res, diff)
				}
				e.want(t, "started")
				sameViews(t, res, m, nil)
			})
		}
	}
}

// What a transactional tool wrote when it began is there with the fact that its result comes
// later.
func TestPendingTransaction(t *testing.T) {
	store, rows := payments(t)
	var e effects
	agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done")),
		paying(&e, func(context.Context, *sql.Tx, *pawl.Call) error { return pawl.ErrPending }, nil))
	r := pawl.Runner{Store: store}
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	if !res.Waiting() || res.Interruptions[0].Kind != pawl.External || rows() != 1 {
		t.Fatalf("%d rows, %+v", rows(), res)
	}
	if err := r.Decide(t.Context(), "r", pawl.Settle(res.Interruptions[0].ID, "the bank", "arrived")); err != nil {
		t.Fatal(err)
	}
	res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	if diff := cmp.Diff([]string{"c1: arrived"}, outputs(res.NewItems())); diff != "" || rows() != 1 {
		t.Errorf("%d rows, %s", rows(), diff)
	}
	e.want(t, "pay 5 attempt 1")
}

// A tool asks by itself, as often as it likes, before it does anything.
func TestAskAgain(t *testing.T) {
	for _, class := range []pawl.Effect{pawl.AtMostOnce, pawl.Idempotent, pawl.ReadOnly, pawl.Transactional} {
		for _, reject := range []bool{false, true} {
			t.Run(fmt.Sprintf("%q, rejected %v", class, reject), func(t *testing.T) {
				var e effects
				body := func(c *pawl.Call) error {
					e.add("attempt %d, %d approvals, by %q", c.Attempt, c.Approvals, c.ApprovedBy)
					if c.Approvals < 2 {
						return fmt.Errorf("wrapped: %w", pawl.AskAgain(fmt.Sprint("question ", c.Approvals+1)))
					}
					return nil
				}
				tool := charging("pay", &e, func(f *pawl.Func[charge, string]) {
					asking(f)
					f.Effect = class
					f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) { return "paid", body(c) }
				})
				store, rows := payments(t)
				if class == pawl.Transactional {
					tool = paying(&effects{}, func(_ context.Context, _ *sql.Tx, c *pawl.Call) error { return body(c) },
						func(f *sqlstore.TxFunc[charge, string]) { f.Approve = pawl.AlwaysAsk[charge] })
				}
				m := newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done"))
				agent := agentWith(m, tool)
				r := pawl.Runner{Store: store}
				res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
				var asked []string
				for res.Waiting() {
					in := res.Interruptions[0]
					asked = append(asked, in.ID+" "+string(in.Kind)+" "+in.Note)
					d := pawl.Approve(in.ID, "ann"+in.ID[3:])
					if in.Note == "question 2" && reject {
						d = pawl.Reject(in.ID, "bob", "enough")
					}
					if in.Note != "" {
						if err := r.Decide(t.Context(), "r", pawl.Edit(in.ID, "eve", `{"cents":6}`)); !errors.Is(err, pawl.ErrDecision) {
							t.Errorf("an edit: %v", err)
						}
						always := d
						always.Always = true
						if err := r.Decide(t.Context(), "r", always); !errors.Is(err, pawl.ErrDecision) {
							t.Errorf("always: %v", err)
						}
					}
					if err := r.Decide(t.Context(), "r", d); err != nil {
						t.Fatal(err)
					}
					if rows() != 0 {
						t.Errorf("%d rows before it is allowed", rows())
					}
					res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
				}
				if diff := cmp.Diff([]string{"1.0#0 approval ", "1.0#1 approval question 1", "1.0#2 approval question 2"}, asked); diff != "" {
					t.Error(diff)
				}
				want, did := "c1: paid", []string{`attempt 1, 0 approvals, by "ann#0"`, `attempt 2, 1 approvals, by "ann#1"`}
				if reject {
					want = "c1: enough"
				} else {
					did = append(did, `attempt 3, 2 approvals, by "ann#2"`)
				}
				e.want(t, did...)
				if diff := cmp.Diff([]string{want}, outputs(res.NewItems())); diff != "" {
					t.Error(diff)
				}
				replays(t, &r, "r")
			})
		}
	}
}

// An approval that nobody gives in time is a rejection, or fails the run, as its tool says;
// whichever is first in the ledger counts.
func TestExpiry(t *testing.T) {
	for name, tt := range map[string]struct {
		on    pawl.OnExpiry
		again bool // the tool asks by itself
		after time.Duration
		want  string
	}{
		"rejects":                {after: time.Hour, want: "Tool execution was not approved: the approval expired"},
		"rejects a question":     {again: true, after: time.Hour, want: "Tool execution was not approved: the approval expired"},
		"fails":                  {on: pawl.ExpiryFails, after: time.Hour, want: "receipt"},
		"fails a question":       {on: pawl.ExpiryFails, again: true, after: time.Hour, want: "receipt"},
		"approved in time":       {after: time.Hour - time.Millisecond, want: "receipt"},
		"approved in time, fail": {on: pawl.ExpiryFails, after: time.Hour - time.Millisecond, want: "receipt"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e effects
				agent := inBody(&e, func() {}, func(f *pawl.Func[charge, string]) {
					f.Expires, f.OnExpiry = time.Hour, tt.on
					run := f.Run
					if !tt.again {
						asking(f)
						return
					}
					f.Run = func(ctx context.Context, c *pawl.Call, in charge) (string, error) {
						if c.Approvals == 0 {
							return "", pawl.AskAgain("really?")
						}
						return run(ctx, c, in)
					}
				})
				r := pawl.Runner{Store: journal.NewMemory()}
				res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
				in := res.Interruptions[0]
				if !in.Expires.Equal(time.Now().Add(time.Hour)) {
					t.Errorf("it expires at %v, it is %v", in.Expires, time.Now())
				}
				if same := viaJSON(t, res.State()).Interruptions()[0]; !reflect.DeepEqual(same, in) {
					t.Errorf("in a document: %+v", same)
				}
				time.Sleep(tt.after)
				decide := pawl.Approve(in.ID, "ann")
				if tt.after < time.Hour {
					if err := r.Decide(t.Context(), "r", decide); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Hour)
				}
				res, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil)
				if tt.on == pawl.ExpiryFails && tt.after == time.Hour {
					if !errors.Is(err, pawl.ErrApprovalExpired) {
						t.Fatal(err)
					}
					e.want(t)
					res = must(t)(r.Resume(t.Context(), agent, stateOf(t, err), nil))
					if !res.Waiting() || !res.Interruptions[0].Expires.IsZero() {
						t.Fatalf("resumed: %+v", res)
					}
					time.Sleep(100 * time.Hour)
					if err := r.Decide(t.Context(), "r", decide); err != nil {
						t.Fatal(err)
					}
					res, err = r.Resume(t.Context(), agent, pawl.RunID("r"), nil)
				}
				must(t)(res, err)
				if out := outputs(res.NewItems()); len(out) != 1 || !strings.HasPrefix(out[0], "c1: "+tt.want) {
					t.Errorf("outputs %q, want %q", out, tt.want)
				}
				if strings.HasPrefix(tt.want, "Tool") {
					e.want(t)
					if err := r.Decide(t.Context(), "r", decide); !errors.Is(err, pawl.ErrDecided) {
						t.Errorf("too late: %v", err)
					}
				}
				replays(t, &r, "r")
			})
		})
	}
}

// A refusal says why, once, and when it will not be one.
func TestRefusalTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		doc := snapshot(t, func(body func()) *pawl.Agent { return inBody(&e, body, nil) }, &pawl.RunOptions{})
		agent := inBody(&e, func() {}, nil)
		r := &pawl.Runner{Store: abandoned(t, doc, elsewhere)}
		in := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil)).Interruptions[0]
		other := pawl.Retry(in.ID, "ann")
		other.Digest[0]++
		for name, tt := range map[string]struct {
			d    pawl.Decision
			want string
		}{
			"in flight": {pawl.Retry(in.ID, "ann"), "pawl: the call may still be running: decide it after 2000-01-01T00:10:02Z"},
			"verdict":   {pawl.Approve(in.ID, "ann"), "pawl: the decision does not fit the interruption: 1.0#1 is of kind in-doubt, which takes settle, retry or giveup, not approve"},
			"arguments": {other, "pawl: the decision does not fit the interruption: the decision is for other arguments than the call's (call t1.0.0)"},
			"not open":  {pawl.Retry("1.0#2", "ann"), "pawl: the interruption is not open: 1.0#2 waits for no decision now"},
		} {
			var re *pawl.RunError
			if err := r.Decide(t.Context(), "r", tt.d); !errors.As(err, &re) || re.Err.Error() != tt.want {
				t.Errorf("%s: %v", name, err)
			}
		}
		time.Sleep(time.Until(in.NotBefore))
		if err := r.Decide(t.Context(), "r", pawl.Retry(in.ID, "ann")); err != nil {
			t.Fatal(err)
		}
		err := r.Decide(t.Context(), "r", pawl.GiveUp(in.ID, "bob"))
		if want := `the interruption was decided otherwise before: 1.0#1 is decided: retry by "ann"`; err == nil || !errors.As(err, new(*pawl.RunError)) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("decided: %v", err)
		}
	})
}
