package pawltest

import (
	"maps"
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

// ScriptedCall is one call as a [ScriptedModel] received it, and what became of it.
type ScriptedCall struct {
	// Number counts the calls from 1.
	Number int
	// Streamed says that the call asked for events.
	Streamed bool
	// Model is the name of the model the request asks for instead of the model's own, empty if it asks for none.
	Model        string
	Instructions string
	// Prompt is the JSON of a prompt that the server keeps, empty without one.
	Prompt string
	// Input is the call's own input, without what it continues.
	Input    []item.Item
	Tools    []model.Tool
	Output   *model.OutputFormat
	Settings *model.Settings
	// PreviousResponseID and ConversationID are what the call continues.
	PreviousResponseID, ConversationID string

	// Set when the call has been answered.
	Accepted   bool   // processed, whether or not the caller learned of it
	ResponseID string // of the response it made
	Err        error  // what the caller got

	step int // of the script, from 0
}

func newScriptedCall(number int, req *model.Request, streamed bool) ScriptedCall {
	s := req.Static
	if s == nil {
		s = &model.Static{}
	}
	return ScriptedCall{Number: number, Streamed: streamed, Model: s.Model, Instructions: s.Instructions, Prompt: s.Prompt,
		Input: slices.Clone(req.Input.Items()), Tools: slices.Clone(s.Tools), Output: clonePointer(s.Output),
		Settings: cloneSettings(s.Settings), PreviousResponseID: req.PreviousResponseID, ConversationID: req.ConversationID}
}

// clone copies everything of a call that could be changed.
func (c *ScriptedCall) clone() ScriptedCall {
	v := *c
	v.Input, v.Tools = slices.Clone(c.Input), slices.Clone(c.Tools)
	v.Output, v.Settings = clonePointer(c.Output), cloneSettings(c.Settings)
	return v
}

func cloneSettings(s *model.Settings) *model.Settings {
	if s == nil {
		return nil
	}
	c := *s
	for _, p := range []**float64{&c.Temperature, &c.TopP, &c.FrequencyPenalty, &c.PresencePenalty} {
		*p = clonePointer(*p)
	}
	for _, p := range []**bool{&c.ParallelToolCalls, &c.Store, &c.IncludeUsage} {
		*p = clonePointer(*p)
	}
	for _, p := range []**int64{&c.MaxTokens, &c.TopLogprobs} {
		*p = clonePointer(*p)
	}
	for _, p := range []*map[string]string{&c.Metadata, &c.ExtraQuery, &c.ExtraHeaders, &c.ExtraBody} {
		*p = maps.Clone(*p)
	}
	c.Reasoning, c.Retry = clonePointer(c.Reasoning), clonePointer(c.Retry)
	c.ResponseInclude = slices.Clone(c.ResponseInclude)
	return &c
}
