package main

import (
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/examples/internal/example"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

// chosen is the model, with what it says offline. The searchers ask it at the same time, in any order.
func chosen() model.Model {
	searching := slices.Repeat([]pawltest.ScriptedStep{{Derive: find}}, 4) // two requests of each
	return example.Model(slices.Concat([]pawltest.ScriptedStep{
		pawltest.ScriptedText(`{"searches":[{"query":"Cordouan lighthouse","why":"its age"},{"query":"first Fresnel lens","why":"its light"}]}`),
	}, searching, []pawltest.ScriptedStep{
		pawltest.ScriptedText(`{"summary":"It is old, and its light was the first of a new kind.","text":"Cordouan has stood since 1611. In 1823 it got the first lens of Fresnel's.","questions":["Who paid for it?"]}`),
	})...)
}

func find(c pawltest.ScriptedCall) pawltest.ScriptedStep {
	asked, err := c.Input[0].Message()
	if err != nil {
		return pawltest.ScriptedStep{Err: err}
	}
	query, _, _ := strings.Cut(asked.Text(), "\n")
	if len(c.Input) == 1 {
		return pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "look_up", `{"query":"`+query+`","why":"to know"}`))
	}
	found, err := c.Input[len(c.Input)-1].FunctionCallOutput()
	if err != nil {
		return pawltest.ScriptedStep{Err: err}
	}
	return pawltest.ScriptedText(found.Text)
}
