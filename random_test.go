package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// errFault is what goes wrong in random runs.
var errFault = errors.New("fault")

// chaos is a run with random turns, in which things go wrong at random points.
type chaos struct {
	t     *testing.T
	rnd   *rand.Rand
	turns [][]pawl.Item // the calls of each turn
	sess  *plainSession
	store journal.Driver

	mu       sync.Mutex
	entered  map[string]int  // bodies entered, by call
	rejected map[string]bool // calls that a person rejected
	fuse     int             // points until the fault; 0 is none
	strike   func()
}

// point is a place where things may go wrong.
func (c *chaos) point() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fuse > 0 {
		if c.fuse--; c.fuse == 0 {
			c.strike()
		}
	}
}

// Info and Call make it the model: what is asked decides which turn it is.
func (c *chaos) Info() model.Info { return model.Info{} }

func (c *chaos) Call(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
	c.point()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	input := req.Input.Items()
	paired(c.t, "request", input)
	turn := 0
	for turn < len(c.turns) && slices.Contains(input, c.turns[turn][0]) {
		turn++
	}
	if turn == len(c.turns) {
		return says("done")(ctx, req, emit)
	}
	return items(c.turns[turn]...)(ctx, req, emit)
}

// killed is a store that also keeps the claim of a driver that is dead.
type killed struct{ *deadEnd }

func (k killed) Release(ctx context.Context, run string, epoch uint64, rest journal.Rest) error {
	if k.dead.Load() {
		return errDead
	}
	return k.Driver.Release(ctx, run, epoch, rest)
}

// run starts or resumes the run with a new Runner and a new agent, with one fault at most.
func (c *chaos) run(faulty bool) (*pawl.Result, error) {
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	store, leave := c.store, -1
	c.fuse, c.sess.fault = 0, nil
	if faulty {
		switch c.rnd.IntN(6) {
		case 0: // the context ends
			c.fuse, c.strike = 1+c.rnd.IntN(12), cancel
		case 1: // appends to the store fail, for a while or for good
			plan := journaltest.Plan{}
			at, reply := 1+c.rnd.IntN(8), journaltest.Reply(1+c.rnd.IntN(3))
			for i := range 1 + c.rnd.IntN(4) {
				plan[at+i] = reply
			}
			store = journaltest.Faulty(store, plan)
		case 2: // the session fails
			at, stored := c.sess.appends+1+c.rnd.IntN(3), c.rnd.IntN(2)-1
			c.sess.fault = faultAt(at, stored)
		case 3: // the reader leaves
			leave = c.rnd.IntN(15)
		case 4: // a store that is dead from some append on
			dead := &deadEnd{Driver: store}
			c.fuse, c.strike = 1+c.rnd.IntN(12), func() { dead.dead.Store(true) }
			store = dead
		case 5: // a process that is killed: nothing reaches the store any more
			dead := &deadEnd{Driver: store}
			c.fuse, c.strike = 1+c.rnd.IntN(12), func() { dead.dead.Store(true) }
			store = killed{dead}
		}
	}
	r := pawl.Runner{Store: store}
	opts := &pawl.RunOptions{ID: "r", Session: c.sess, MaxParallelTools: len(c.turns[0]) % 3, MaxTurns: -1}
	agent := c.agent()
	if leave < 0 && c.rnd.IntN(2) == 0 {
		return r.Run(ctx, agent, pawl.UserText("go"), opts)
	}
	var res *pawl.Result
	for ev, err := range r.Stream(ctx, agent, pawl.UserText("go"), opts) {
		if err != nil {
			return nil, err
		}
		if leave--; leave == -1 {
			return nil, errFault
		}
		switch ev := ev.(type) {
		case *pawl.Paused:
			res = ev.Result
		case *pawl.Done:
			res = ev.Result
		}
	}
	return res, nil
}

func (c *chaos) agent() *pawl.Agent {
	var tools []pawl.Tool
	for _, effect := range []pawl.Effect{pawl.AtMostOnce, pawl.Idempotent, pawl.ReadOnly} {
		for _, gated := range []bool{false, true} {
			f := pawl.Func[charge, string]{Name: toolName(effect, gated), Effect: effect, Run: c.body}
			if gated {
				asking(&f)
			}
			tools = append(tools, pawl.NewTool(f))
		}
	}
	return agentWith(c, tools...)
}

func toolName(effect pawl.Effect, gated bool) string {
	name := "once"
	if effect != pawl.AtMostOnce {
		name = string(effect)
	}
	if gated {
		return name + "-asks"
	}
	return name
}

func (c *chaos) body(ctx context.Context, call *pawl.Call, in charge) (string, error) {
	c.point()
	c.mu.Lock()
	c.entered[call.ID]++
	c.mu.Unlock()
	time.Sleep(time.Duration(in.Cents%7) * 100 * time.Millisecond)
	c.point()
	return "did " + call.ID, nil
}

// decide answers every interruption as a person would who looks what happened.
func (c *chaos) decide(res *pawl.Result) {
	r := pawl.Runner{Store: c.store}
	for _, in := range res.Interruptions {
		c.mu.Lock()
		happened := c.entered[in.CallID] > 0
		c.mu.Unlock()
		var d pawl.Decision
		switch {
		case in.Kind == pawl.InDoubt && happened:
			d = pawl.Settle(in.ID, "ann", "did "+in.CallID)
		case in.Kind == pawl.InDoubt:
			d = pawl.Retry(in.ID, "ann")
		case c.rnd.IntN(3) == 0:
			c.rejected[in.CallID] = true
			d = pawl.Reject(in.ID, "ann", "no")
		default:
			d = pawl.Approve(in.ID, "ann")
		}
		time.Sleep(time.Until(in.NotBefore))
		if err := r.Decide(c.t.Context(), "r", d); err != nil {
			c.t.Fatal(err)
		}
	}
}

// Whatever goes wrong, and however often, a run comes to its end; no call that is to happen
// once is entered twice, none that was rejected at all, and the views agree.
func TestRandomRuns(t *testing.T) {
	faults, doubts := 0, 0
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			f, d := randomRun(t, rand.New(rand.NewPCG(seed, 1)))
			faults, doubts = faults+f, doubts+d
		})
		if t.Failed() {
			return
		}
	}
	if faults < 400 || doubts < 20 {
		t.Errorf("only %d faults struck, and %d calls were in doubt", faults, doubts)
	}
}

// randomRun drives one run to its end and returns how many faults struck and how many calls
// were in doubt.
func randomRun(t *testing.T, rnd *rand.Rand) (faults, doubts int) {
	c := &chaos{t: t, rnd: rnd, store: journal.NewMemory(), entered: map[string]int{}, rejected: map[string]bool{}}
	memory := session.NewMemory("s")
	memory.Append(t.Context(), []pawl.Item{item.UserText("before")})
	c.sess = &plainSession{Session: memory}
	n := 0
	for range 1 + rnd.IntN(3) {
		var calls []pawl.Item
		for range 1 + rnd.IntN(4) {
			n++
			effect := []pawl.Effect{pawl.AtMostOnce, pawl.AtMostOnce, pawl.Idempotent, pawl.ReadOnly}[rnd.IntN(4)]
			calls = append(calls, fc(fmt.Sprint("c", n), toolName(effect, rnd.IntN(3) == 0), fmt.Sprintf(`{"cents":%d}`, rnd.IntN(100))))
		}
		c.turns = append(c.turns, calls)
	}
	for drives := 0; ; drives++ {
		if drives > 60 {
			t.Fatal("the run does not come to an end")
		}
		res, err := c.run(drives < 12)
		switch {
		case errors.Is(err, pawl.ErrClaimed): // left by a driver that could not say what it left
			time.Sleep(pawl.DefaultLease)
		case err != nil && drives >= 12:
			t.Fatalf("without a fault: %v", err)
		case err != nil:
			faults++
		case res.Waiting():
			for _, in := range res.Interruptions {
				if in.Kind == pawl.InDoubt {
					doubts++
				}
			}
			c.decide(res)
		default:
			c.check(res)
			return faults, doubts
		}
	}
}

func (c *chaos) check(res *pawl.Result) {
	if res.FinalOutput != "done" {
		c.t.Errorf("result %+v", res)
	}
	out := outputs(res.NewItems())
	for i, it := range slices.Concat(c.turns...) {
		h := it.Head()
		n := c.entered[h.CallID]
		switch {
		case c.rejected[h.CallID] && n > 0:
			c.t.Errorf("%s was rejected and entered", h.CallID)
		case c.rejected[h.CallID]:
			if out[i] != h.CallID+": no" {
				c.t.Errorf("output %q", out[i])
			}
			continue
		case n == 0 && !strings.Contains(out[i], "unknown"):
			c.t.Errorf("%s was never entered: %q", h.CallID, out[i])
		case n > 1 && strings.HasPrefix(h.Name, "once"):
			c.t.Errorf("%s was entered %d times", h.CallID, n)
		}
		if out[i] != h.CallID+": did "+h.CallID {
			c.t.Errorf("output %q", out[i])
		}
	}
	sameViews(c.t, res, newScript(), c.sess)
	replays(c.t, &pawl.Runner{Store: c.store}, "r")
}
