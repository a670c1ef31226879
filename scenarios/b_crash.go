package scenarios

// Group B: windows in which a process may end, retries, several of one kind.

func windows() []scenario {
	return []scenario{s22(), s23(), s25(), s26(), s28(), s29(), s31(), s32(), s34(), s35()}
}

func s31() scenario {
	return scenario{
		id: "S31",
		script: `One response calls three tools that need approval. The run shows three interruptions with three ids, in the
order of the calls. They are decided in another order: the third approved, the first rejected with a text, the second
approved. Each verdict reaches its own call, and the outputs stand in the order of the calls.`,
		sources: []string{
			"https://github.com/langchain-ai/langgraph/issues/6626",
			"https://github.com/langchain-ai/langgraph/issues/6624",
		},
		variants: []variant{{play: func(w *world) {
			w.setup.Tools = []tool{{Name: "circle", Output: "O", Gated: true}, {Name: "square", Output: "[]", Gated: true}, {Name: "tri", Output: "A", Gated: true}}
			w.model(
				turn("user draw", call("c1", "circle"), call("c2", "square"), call("c3", "tri")),
				turn("user draw; call c1 circle; call c2 square; call c3 tri; output c1 no circles; output c2 []; output c3 A", says("drawn")),
			)
			w.start("draw")
			w.waits("c1", "c2", "c3")
			w.effects()
			w.resume(approve("c3"), reject("c1", "no circles"), approve("c2"))
			w.ends("drawn")
			w.effects("square c2", "tri c3")
		}}},
	}
}

func s32() scenario {
	return scenario{
		id: "S32",
		script: `One response calls a free tool and two that need approval. The first is approved and the run resumed: it asks
about the second. It is resumed with nothing decided: it asks about the second again, and nothing else happens. Then the
second is approved. Each of the three tools has run once, and the model was not asked in between.`,
		sources: []string{
			"https://github.com/langchain-ai/langgraph/issues/6208",
			"https://github.com/langchain-ai/langgraph/pull/3126",
		},
		variants: []variant{{play: func(w *world) {
			w.setup.Tools = []tool{{Name: "free", Output: "f"}, {Name: "g1", Output: "one", Gated: true}, {Name: "g2", Output: "two", Gated: true}}
			w.model(
				turn("user go", call("c0", "free"), call("c1", "g1"), call("c2", "g2")),
				turn("user go; call c0 free; call c1 g1; call c2 g2; output c0 f; output c1 one; output c2 two", says("done")),
			)
			w.start("go")
			w.waits("c1", "c2")
			w.effects("free c0")
			w.resume(approve("c1"))
			w.waits("c2")
			w.effects("free c0", "g1 c1")
			w.resume()
			w.waits("c2")
			w.effects("free c0", "g1 c1")
			w.requests(1)
			w.holds("user go")
			w.resume(approve("c2"))
			w.ends("done")
			w.effects("free c0", "g1 c1", "g2 c2")
			w.requests(2)
		}}},
	}
}
