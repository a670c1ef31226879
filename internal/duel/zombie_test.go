//go:build unix

package duel

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// Such a round mostly waits, for the lease, the tool's timeout and the margin: run many at once with -parallel.
var zombies = flag.Int("zombies", 4, "stop a process for so long that another takes its run over so often")

// A process is stopped and its run taken over; then it goes on. It was between the intent and the body: the body is never
// entered. Either the model is told that nobody knows, or a person has it run by the process that took over.
func TestZombieBeforeBody(t *testing.T) {
	for n := range (*zombies + 1) / 2 {
		parallel(t, n, func(t *testing.T, c command) {
			z := newZombie(t, c, stopIntent)
			text := z.takeOver(func(in pawl.Interruption) pawl.Decision { return pawl.Retry(in.ID, "ada") })
			want := []pawltest.Effect(nil)
			if c.OnUnknown == pawl.UnknownWait {
				want = []pawltest.Effect{z.effect(z.heir, 2)}
				if text != "The answer was: "+paid(z.key) {
					t.Errorf("the run ends with %q", text)
				}
			} else if text != "The answer was: "+machine.UnknownText(z.key) {
				t.Errorf("the run ends with %q", text)
			}
			before := z.facts()
			a := z.wakeUp()
			if !a.Fenced {
				t.Errorf("the zombie is told %+v", a)
			}
			if after := z.facts(); after != before {
				t.Errorf("the zombie added facts: %d after %d", after, before)
			}
			z.check(want)
		})
	}
}

// It was inside the body: whatever that returns now is a late result of a call that is settled. Either the model was told
// that nobody knows, or a person looked and settled it.
func TestZombieInBody(t *testing.T) {
	for n := range *zombies / 2 {
		parallel(t, n, func(t *testing.T, c command) {
			z := newZombie(t, c, stopBody)
			text := z.takeOver(func(in pawl.Interruption) pawl.Decision { return pawl.Settle(in.ID, "ada", "ada saw it") })
			want := "The answer was: " + machine.UnknownText(z.key)
			if c.OnUnknown == pawl.UnknownWait {
				want = "The answer was: ada saw it"
			}
			if text != want {
				t.Errorf("the run ends with %q, want %q", text, want)
			}
			before := z.facts()
			if a := z.wakeUp(); !a.Fenced {
				t.Errorf("the zombie is told %+v", a)
			}
			z.until("the late result is recorded", func() bool { return len(z.late(before)) > 0 })
			late := &journal.Settled{ID: journal.EffectID{Kind: journal.EffectTool, N: 1, A: 1}, Late: true,
				Output: item.FunctionOutput("call_"+c.Run, paid(z.key))}
			if diff := cmp.Diff([]*journal.Settled{late}, z.late(before), cmp.Comparer(func(a, b pawl.Item) bool { return a.Raw() == b.Raw() })); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			z.check([]pawltest.Effect{z.effect(z.dead, 1)})
		})
	}
}

// late returns the outcomes recorded after so many facts. There may be nothing else but claims of who recorded them.
func (z *zombie) late(after int) (list []*journal.Settled) {
	z.Helper()
	records, err := z.here.store.Read(z.Context(), z.c.Run, uint64(after))
	if err != nil {
		z.Fatal(err)
	}
	for _, rec := range records {
		f, err := journal.Decode(rec)
		if err != nil {
			z.Fatal(err)
		}
		switch b := f.Body.(type) {
		case *journal.Claimed:
		case *journal.Settled:
			list = append(list, b)
		default:
			z.Fatalf("the zombie added %+v", f)
		}
	}
	return list
}

// parallel plays a round beside others. The settings take turns.
func parallel(t *testing.T, n int, round func(t *testing.T, c command)) {
	setting := pawl.UnknownTell
	if n%2 == 1 {
		setting = pawl.UnknownWait
	}
	t.Run(fmt.Sprintf("%d-%s", n, setting), func(t *testing.T) {
		t.Parallel()
		round(t, command{Do: "start", Run: fmt.Sprint("run", n), Session: "session", OnUnknown: setting})
	})
}

// zombie is a process that was stopped in the middle of a run, and its heir.
type zombie struct {
	*testing.T
	c    command
	here *world
	dead *puppet
	heir *puppet
	key  string
}

// newZombie has a process start a run and stop itself in it. On a machine that is too busy for that it tries again.
func newZombie(t *testing.T, c command, at string) *zombie {
	t.Helper()
	c.StopAt = at
	for range 20 {
		dir := t.TempDir()
		here, err := openWorld(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { here.store.Close() })
		z := &zombie{T: t, c: c, here: here, dead: newPuppet(t, dir), heir: newPuppet(t, dir)}
		z.dead.ready(c)
		z.dead.tell(command{Do: "go"})
		if z.dead.awaitStop(t) {
			return z
		}
	}
	t.Fatal("no process comes to its stop in time")
	return nil
}

// takeOver has the heir resume the run as soon as it can, and a person decide about it if somebody has to. It returns
// the run's last words.
func (z *zombie) takeOver(verdict func(pawl.Interruption) pawl.Decision) string {
	z.Helper()
	resume := command{Do: "resume", Run: z.c.Run, OnUnknown: z.c.OnUnknown}
	var a answer
	z.until("the lease runs out", func() bool {
		a = z.heir.does(resume)
		return !a.Claimed
	})
	if z.c.OnUnknown == pawl.UnknownWait {
		if a.Status != pawl.StatusWaiting || a.Error != "" {
			z.Fatalf("the heir is told %+v", a)
		}
		open := z.now().Interruptions()
		if len(open) != 1 || open[0].Kind != pawl.InDoubt {
			z.Fatalf("the run waits for %+v", open)
		}
		r := z.here.runner(resume)
		z.until("the call may be decided", func() bool {
			err := r.Decide(z.Context(), z.c.Run, verdict(open[0]))
			if err != nil && !errors.Is(err, pawl.ErrCallInFlight) {
				z.Fatal(err)
			}
			return err == nil && !time.Now().Before(open[0].NotBefore)
		})
		a = z.heir.does(resume)
	}
	if a.Status != pawl.StatusFinished || a.Error != "" {
		z.Fatalf("the heir is told %+v", a)
	}
	z.key = machine.Key(z.c.Run, "", journal.EffectID{Kind: journal.EffectTool, N: 1})
	return a.Output
}

// until tries again until it is so.
func (z *zombie) until(what string, so func() bool) {
	z.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	end := time.Now().Add(patience)
	for !so() {
		if time.Now().After(end) {
			z.Fatal("waited in vain until ", what)
		}
		<-again.C
	}
}

// wakeUp continues the zombie and returns what its Run returned.
func (z *zombie) wakeUp() answer {
	z.Helper()
	z.dead.wake(z.T)
	return z.dead.hear()
}

func (z *zombie) now() *pawl.RunState {
	z.Helper()
	state, err := z.here.runner(z.c).State(z.Context(), z.c.Run)
	if err != nil {
		z.Fatal(err)
	}
	return state
}

func (z *zombie) facts() int { return z.now().Facts() }

// effect is what the log has of a body that this process entered.
func (z *zombie) effect(p *puppet, attempt int) pawltest.Effect {
	return pawltest.Effect{Tool: "pay", Key: z.key, CallID: "call_" + z.c.Run, Attempt: attempt, Arguments: strconv.Itoa(p.cmd.Process.Pid)}
}

// check looks at the effects, and at the output, which is there once.
func (z *zombie) check(want []pawltest.Effect) {
	z.Helper()
	got, err := z.here.log.Effects()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		z.Errorf("effects: %v -want +got:\n%s", err, diff)
	}
	rows, err := z.here.session(z.c.Session).Items(z.Context(), -1)
	if err != nil {
		z.Fatal(err)
	}
	for what, items := range map[string][]pawl.Item{"the session": rows, "the conversation": z.now().Result().ToInputList()} {
		var types []string
		for _, it := range items {
			types = append(types, string(it.Type()))
		}
		if diff := cmp.Diff([]string{"message", "function_call", "function_call_output", "message"}, types); diff != "" {
			z.Errorf("%s: -want +got:\n%s", what, diff)
		}
	}
}
