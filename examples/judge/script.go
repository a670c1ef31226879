package main

import (
	"github.com/pawl-agents/pawl/examples/internal/example"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

// chosen is the model, with what it says offline.
func chosen() model.Model {
	return example.Model(
		pawltest.ScriptedText("We repair umbrellas."),
		pawltest.ScriptedText(`{"score":"needs_work","feedback":"Say what the customer gets."}`),
		pawltest.ScriptedText("Stay dry for another ten years."),
		pawltest.ScriptedText(`{"score":"pass","feedback":"It promises something."}`),
	)
}
