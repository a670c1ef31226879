package scenarios

import "github.com/pawl-agents/pawl/item"

// Group C: calls and their outputs.

func pairing() []scenario {
	return []scenario{s37(), s38(), s40(), s44(), s46(), s47(), s49(), s50(), s52(), s53(), s55(), s56()}
}

func s56() scenario {
	return scenario{
		id: "S56",
		script: `One response calls a tool the agent has and one it does not have. If the model is to be told, it reads one
error that names the missing tool and lists what there is, and the other call runs once. If it is to fail, the caller gets
a typed error. In Pawl no call of such a response has started then, not even the one that could: whether the response is
acted on at all is for the caller to say. So nothing is lost: the run can be resumed and the model told, or resumed with the
missing tool added; and the session is as usable as before, for another run too. A model that invents a tool every time
runs into the bound on turns, with the session in order.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/issues/3459",
			"https://github.com/openai/openai-agents-python/issues/325",
		},
		variants: []variant{
			{name: "tell the model", play: s56Tell},
			{name: "raise, then tell the model", play: s56RaiseThenTell},
			{name: "raise, then add the tool", play: s56RaiseThenAdd},
			{name: "raise, then another run", play: s56RaiseThenAnother},
			{name: "every turn", play: s56EveryTurn},
		},
	}
}

const noGhost = `output c2 Tool "ghost" not found. Available tools: real.`

func s56Model(w *world, told string) {
	w.Helper()
	w.setup.Tools = []tool{{Name: "real", Output: "r"}}
	w.model(
		turn("user go", call("c1", "real"), call("c2", "ghost")),
		turn("user go; call c1 real; call c2 ghost; output c1 r; "+told, says("done")),
	)
}

func s56Tell(w *world) {
	s56Model(w, noGhost)
	w.do(request{Input: []item.Item{item.UserText("go")}, TellModel: true})
	w.ends("done")
	w.effects("real c1")
}

// s56Raise is the run up to its failure.
func s56Raise(w *world) {
	w.Helper()
	w.start("go")
	w.fails("tool not found")
	w.effects()
	w.requests(1)
	w.holds("user go")
}

func s56RaiseThenTell(w *world) {
	s56Model(w, noGhost)
	s56Raise(w)
	w.do(request{TellModel: true})
	w.ends("done")
	w.effects("real c1")
}

func s56RaiseThenAdd(w *world) {
	s56Model(w, "output c2 boo")
	s56Raise(w)
	w.do(request{MoreTools: []tool{{Name: "ghost", Output: "boo"}}})
	w.ends("done")
	w.effects("real c1", "ghost c2")
}

func s56RaiseThenAnother(w *world) {
	w.setup.Tools = []tool{{Name: "real", Output: "r"}}
	w.model(
		turn("user go", call("c1", "real"), call("c2", "ghost")),
		turn("user go; user again", says("hello")),
	)
	s56Raise(w)
	w.anotherRun("S56 again")
	w.start("again")
	w.ends("hello")
	w.effects()
	w.holds("user go; user again; message hello")
}

func s56EveryTurn(w *world) {
	w.setup.Tools = []tool{{Name: "real", Output: "r"}}
	const first = `user go; call c1 ghost; output c1 Tool "ghost" not found. Available tools: real.`
	w.model(turn("user go", call("c1", "ghost")), turn(first, call("c2", "ghost")))
	w.do(request{Input: []item.Item{item.UserText("go")}, TellModel: true, MaxTurns: 2})
	w.fails("max turns")
	w.effects()
	w.requests(2)
	w.holds(first + "; call c2 ghost; " + noGhost)
}
