package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// What goes wrong with goroutines, iterators and values that are shared.

func s100() scenario {
	return scenario{
		id: "S100",
		script: `The reader of a stream leaves at its first event, or a model does not answer and the run is stopped, or a tool takes no
notice of that and ends long after the run was left. Each time the loop ends promptly, nothing panics and no goroutine is left. The
run can be resumed. What the late tool returns is kept in the ledger with its call, and changes neither the output that the model
was given nor anything else.`,
		sources: []string{
			"https://github.com/google/adk-go/issues/1471",
			"https://github.com/cloudwego/eino/pull/929",
		},
		variants: []variant{
			{name: "reader leaves at once", play: s100Leaves},
			{name: "model does not answer", play: s100Silent},
			{name: "late tool", play: s100Late},
		},
	}
}

func s100Leaves(w *world) {
	w.setup.Tools = []tool{{Name: "t", Output: "o"}}
	const settled = "user go; call c1 t; output c1 o"
	w.model(turn("user go", call("c1", "t")), turn(settled, says("done")))
	w.do(request{Input: []item.Item{item.UserText("go")}, LeaveAt: "started"})
	w.requests(0)
	w.resume()
	w.ends("done")
	w.effects("t c1")
	w.requests(2)
	w.holds(settled + "; message done")
}

func s100Silent(w *world) {
	silent := turn("user go", says("never"))
	silent.Fault = &pawltest.ResponsesFault{Hold: make(chan struct{})}
	reads := silent.Check
	silent.Check = func(r *pawltest.ResponsesRequest) error {
		w.stop()
		return reads(r)
	}
	w.model(silent, turn("user go", says("done")))
	w.broken = 1
	w.start("go")
	w.fails("stopped")
	w.resume()
	w.ends("done")
	w.requests(2)
	w.holds("user go; message done")
}

func s100Late(w *world) {
	w.setup.Tools, w.setup.Grace = []tool{{Name: "slow", Output: "made"}}, 1
	settled := "user go; call c1 slow; " + unknown("c1", "pawl_f7d521e3221557cd2c401a2601e4a543")
	w.model(turn("user go", call("c1", "slow")), turn(settled, says("done")))
	w.stays()
	released := make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	defer release()
	w.do(request{Input: []item.Item{item.UserText("go")}, Before: map[string]func(context.Context) error{
		"c1": func(context.Context) error { w.stop(); <-released; return nil }}})
	w.fails("stopped")
	w.effects()
	w.resume()
	w.ends("done")
	w.effects()
	release()
	w.eventually("the call has a late result", func() bool {
		n, err := w.stay.late(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		return n == 1
	})
	w.effects("slow c1")
	w.requests(2)
	w.holds(settled + "; message done")
	w.leaves()
}

func s101() scenario {
	return scenario{
		id: "S101",
		script: `One agent is driven by 64 runs at a time. In each it calls another agent twice in one response, so that this one is at
work twice in every run, and then a tool that needs approval, for which all runs wait. One of them is approved, and ends. Each call
had the answer that was meant for it, nothing is shared but the agents, which nobody changes, and the race detector has nothing to
say.`,
		sources: []string{
			"https://github.com/google/adk-go/issues/1137",
			"https://github.com/cloudwego/eino/pull/1085",
		},
		variants: []variant{{play: s101Play}},
	}
}

// crowd is how many runs have one agent at a time.
const crowd = 64

func s101Play(w *world) {
	w.setup.Team = []member{{Name: "Desk", Tools: []tool{moving}, Runs: []int{1}}, {Name: "Clerk"}}
	w.respond(s101Answer)
	w.unordered = true
	w.stays()
	agent := w.stay.agent(request{})
	var others sync.WaitGroup
	for n := range crowd - 1 {
		others.Go(func() { w.oneOfMany(agent, fmt.Sprint("other ", n)) })
	}
	w.start("go")
	others.Wait()
	w.notOurs = func(r *pawltest.ResponsesRequest) bool { return strings.Contains(r.Input[0].Raw(), "other") }
	w.leaves()
	w.waits("c1")
	const settled = "user go; call left clerk; call right clerk; output left did go left; output right did go right; call c1 move; output c1 moved"
	w.effects()
	w.resume(approve("c1"))
	w.ends("done")
	w.effects("move c1")
	w.holds(settled + "; message done")
}

// s101Answer plays both agents. What it makes has ids of the run it is for.
func s101Answer(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
	asked, err := r.Input[0].Message()
	if err != nil {
		return pawltest.ResponsesReply{Refuse: &pawltest.ResponsesError{Status: 400, Message: err.Error()}}
	}
	text, id := asked.Text(), strings.ReplaceAll(asked.Text(), " ", "")
	ask := func(side string) item.Item {
		return item.FunctionCallItem("fc_"+side+id, side, "clerk", fmt.Sprintf(`{"input":%q}`, text+" "+side))
	}
	answer := []item.Item{item.MessageItem("msg_"+id, "done")}
	switch {
	case r.Instructions == (member{Name: "Clerk"}).instructions():
		answer = []item.Item{item.MessageItem("msg_"+id, "did "+text)}
	case len(r.Input) == 1:
		answer = []item.Item{ask("left"), ask("right")}
	case len(r.Input) == 5:
		answer = []item.Item{item.FunctionCallItem("fc_"+id, "c1", "move", `{"amount":5}`)}
	}
	reply := pawltest.ReplyItems(answer...)
	reply.ID = fmt.Sprintf("resp_%d%s", len(r.Input), id)
	reply.Usage = &pawltest.ResponsesUsage{InputTokens: 4, OutputTokens: 2}
	return reply
}

// oneOfMany makes a run of the agent in the place of the others.
func (w *world) oneOfMany(agent *pawl.Agent, text string) {
	runner, opts := w.stay.options(request{})
	opts.ID, opts.Session = text, nil
	var res *pawl.Result
	var err error
	if w.cell.mode(0) == stream {
		res, err = pawl.Collect(runner.Stream(w.Context(), agent, pawl.UserText(text), opts))
	} else {
		res, err = runner.Run(w.Context(), agent, pawl.UserText(text), opts)
	}
	if err != nil {
		w.Errorf("%s: %v", text, err)
		return
	}
	want := []string{"user " + text, "call left clerk", "call right clerk", "output left did " + text + " left", "output right did " + text + " right"}
	if got := shapes(raws(res.ToInputList())); !slices.Equal(got, want) || !res.Waiting() {
		w.Errorf("%s: the run is %s and has %q, want %q", text, res.Status, got, want)
	}
}
