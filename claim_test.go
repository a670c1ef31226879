package pawl_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/sqlstore"
)

// childStore, in the environment, makes the test binary a driver that never ends.
const childStore = "PAWL_TEST_CHILD_STORE"

func TestMain(m *testing.M) {
	if path := os.Getenv(childStore); path != "" {
		if err := driveForEver(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// driveForEver starts run "r" and stays in its tools.
func driveForEver(path string) error {
	store, err := sqlstore.OpenSQLite(path, nil)
	if err != nil {
		return err
	}
	var entered atomic.Int32
	r := pawl.Runner{Store: store}
	_, err = r.Run(context.Background(), twoTools(func(string) {
		if entered.Add(1) == 2 {
			fmt.Println("in the tools")
		}
		select {}
	}), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
	return err
}

// twoTools is an agent whose only turn calls a tool of each kind of class.
func twoTools(body func(tool string)) *pawl.Agent {
	tool := func(name string, effect pawl.Effect) pawl.Tool {
		return pawl.NewTool(pawl.Func[charge, string]{Name: name, Effect: effect, Run: func(context.Context, *pawl.Call, charge) (string, error) {
			body(name)
			return name + " done", nil
		}})
	}
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "notify", `{"cents":5}`)), says("done"))
	return agentWith(m, tool("charge", pawl.AtMostOnce), tool("notify", pawl.Idempotent))
}

// A run that a process drives is that process's until it is gone, and then anybody's at
// once.
func TestClaimOfAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childStore+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "in the tools\n" {
		t.Fatalf("the child says %q", line)
	}

	var e effects
	agent := twoTools(func(tool string) { e.add("%s", tool) })
	agent.Model = newScript(says("done"))
	r := pawl.Runner{Store: openSQLite(t, path)}
	_, err = r.Resume(t.Context(), agent, pawl.RunID("r"), nil)
	var claimed *journal.ClaimedError
	if !errors.Is(err, pawl.ErrClaimed) || !errors.As(err, &claimed) || claimed.Holder.Owner.PID != cmd.Process.Pid {
		t.Fatalf("while the process lives: %v", err)
	}
	if s := stateOf(t, err); s.Status() != pawl.StatusRunning {
		t.Errorf("status %s", s.Status())
	}
	e.want(t)

	cmd.Process.Kill()
	cmd.Wait()
	res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	e.want(t, "notify")
	if !res.Waiting() || len(res.Interruptions) != 1 || res.Interruptions[0].Kind != pawl.InDoubt || !res.Interruptions[0].NotBefore.IsZero() {
		t.Fatalf("once it is gone: %+v", res)
	}
	if err := r.Decide(t.Context(), "r", pawl.Settle(res.Interruptions[0].ID, "ann", "charged")); err != nil {
		t.Fatal(err)
	}
	res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	if diff := cmp.Diff([]string{"c1: charged", "c2: notify done"}, outputs(res.NewItems())); diff != "" || res.FinalOutput != "done" {
		t.Errorf("%q %s", res.FinalOutput, diff)
	}
	e.want(t, "notify")
}

// One process does not drive a run twice, whatever its Runners.
func TestClaimedInOneProcess(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			entered, release := make(chan struct{}, 2), make(chan struct{})
			agent := twoTools(func(string) { entered <- struct{}{}; <-release })
			first := pawl.Runner{Store: store}
			done := make(chan *pawl.Result)
			go func() {
				res, _ := first.Run(context.Background(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				done <- res
			}()
			<-entered
			for what, r := range map[string]*pawl.Runner{"the same": &first, "another": {Store: store}} {
				for how, attempt := range map[string]func() error{
					"Resume": func() error { _, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil); return err },
					"Run": func() error {
						_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
						return err
					},
				} {
					err := attempt()
					if !errors.Is(err, pawl.ErrClaimed) {
						t.Errorf("%s of %s runner: %v", how, what, err)
					}
					if s := stateOf(t, err); s.Run() != "r" {
						t.Errorf("%s: state of %q", how, s.Run())
					}
				}
				if _, err := r.Run(t.Context(), agent, pawl.UserText("else"), &pawl.RunOptions{ID: "r"}); !errors.Is(err, pawl.ErrRunExists) {
					t.Errorf("another input: %v", err)
				}
			}
			close(release)
			if res := <-done; res == nil || res.FinalOutput != "done" {
				t.Errorf("the first: %+v", res)
			}
		})
	}
}

// snapshot runs an agent until its tool is entered and returns the document of the run at
// that moment, as a process leaves it that is killed there.
func snapshot(t *testing.T, agent func(body func()) *pawl.Agent, opts *pawl.RunOptions) []byte {
	t.Helper()
	var doc []byte
	var r pawl.Runner
	var at *pawl.RunState
	o := *opts
	o.ID = "r"
	r.Run(t.Context(), agent(func() {
		if at == nil {
			at = replays(t, &r, "r")
		}
	}), pawl.UserText("pay"), &o)
	if at == nil {
		t.Fatal("no tool was entered")
	}
	doc, err := at.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// abandoned is a store with the run of a document, left by an owner that change makes.
func abandoned(t *testing.T, doc []byte, change func(*journal.Owner)) *journal.Memory {
	t.Helper()
	from := journal.NewMemory()
	importDocument(t, from, doc)
	recs, err := from.Read(t.Context(), "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, rec := range recs {
		f, err := journal.Decode(rec)
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := f.Body.(*journal.Claimed); ok {
			change(&c.Owner)
			recs[i] = journal.Encode(f, rec.Salt)
		}
	}
	to := journal.NewMemory()
	if err := to.Import("r", recs); err != nil {
		t.Fatal(err)
	}
	return to
}

// The owners that a run may be left by.
var (
	gone      = func(o *journal.Owner) { o.Start = "1" } // its process id is another process's
	rebooted  = func(o *journal.Owner) { o.Boot = "another" }
	alive     = func(*journal.Owner) {}
	elsewhere = func(o *journal.Owner) { o.Host = "elsewhere" }
)

// Only an owner that is known to be gone cannot still be at it.
func TestWhoMayStillBeAtIt(t *testing.T) {
	var e effects
	agent := func(body func()) *pawl.Agent {
		return agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) { body(); return "", nil }
		}))
	}
	for name, tt := range map[string]struct {
		owner func(*journal.Owner)
		// between is what else happens to the store before the run is resumed.
		between func(t *testing.T, d journal.Driver)
		waits   bool
	}{
		"gone":      {gone, nil, false},
		"rebooted":  {rebooted, nil, false},
		"alive":     {alive, nil, true},
		"elsewhere": {elsewhere, nil, true},
		"elsewhere, and a claim since that was released": {elsewhere, func(t *testing.T, d journal.Driver) {
			c, err := d.Claim(t.Context(), "r", journal.ClaimRequest{TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Release(t.Context(), "r", c.Epoch, journal.Rest{}); err != nil {
				t.Fatal(err)
			}
		}, true},
		"elsewhere, and a claim since by who is gone": {elsewhere, func(t *testing.T, d journal.Driver) {
			if _, err := d.Claim(t.Context(), "r", journal.ClaimRequest{TTL: time.Millisecond}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}, true},
		"elsewhere, and somebody asked for another run of that id": {elsewhere, func(t *testing.T, d journal.Driver) {
			other := pawl.Runner{Store: d}
			if _, err := other.Run(t.Context(), agent(nil), pawl.UserText("another"), &pawl.RunOptions{ID: "r"}); !errors.Is(err, pawl.ErrRunExists) {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			doc := snapshot(t, agent, &pawl.RunOptions{})
			synctest.Test(t, func(t *testing.T) {
				store := abandoned(t, doc, tt.owner)
				if tt.between != nil {
					tt.between(t, store)
				}
				r := pawl.Runner{Store: store}
				res := must(t)(r.Resume(t.Context(), agent(func() {}), pawl.RunID("r"), nil))
				if !res.Waiting() || res.Interruptions[0].Kind != pawl.InDoubt {
					t.Fatalf("result %+v", res)
				}
				if waits := !res.Interruptions[0].NotBefore.IsZero(); waits != tt.waits {
					t.Errorf("it may be decided from %v on", res.Interruptions[0].NotBefore)
				}
			})
		})
	}
}

// A document says nothing about who else has the run: its owner may be at it.
func TestDocumentWithOpenCall(t *testing.T) {
	var e effects
	agent := func(body func()) *pawl.Agent {
		return agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) { body(); return "", nil }
		}))
	}
	doc := snapshot(t, agent, &pawl.RunOptions{})
	for name, tt := range map[string]struct {
		owner func(*journal.Owner)
		waits bool
	}{"alive": {alive, true}, "elsewhere": {elsewhere, true}, "gone": {gone, false}} {
		t.Run(name, func(t *testing.T) {
			left := pawl.Runner{Store: abandoned(t, doc, tt.owner)}
			var r pawl.Runner
			res := must(t)(r.Resume(t.Context(), agent(nil), viaJSON(t, replays(t, &left, "r")), nil))
			if !res.Waiting() || res.Interruptions[0].NotBefore.IsZero() == tt.waits {
				t.Errorf("result %+v", res)
			}
			replays(t, &r, "r")
		})
	}
}
