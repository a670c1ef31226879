// Package example chooses the model of the example programs.
package example

import (
	"os"

	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/pawl-agents/pawl/pawltest"
)

// Model is a real model if OPENAI_API_KEY is set. Without it the model answers from the script, whatever it is asked, so
// that the program runs without a network and says the same every time.
func Model(script ...pawltest.ScriptedStep) model.Model {
	if os.Getenv("OPENAI_API_KEY") != "" {
		return openai.New(openai.FromEnv()).Responses("gpt-5-mini")
	}
	return pawltest.NewScriptedModel(script...)
}
