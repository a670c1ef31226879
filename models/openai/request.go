package openai

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/model"
)

// A request body is head, input items, tail. The head is everything that stays the same from turn to turn and is encoded once
// per model.Static; the items are their own bytes; the tail is what only this turn says.

// headKey is the key of the head in model.Static's cache. The name of the model is part of the head.
type headKey struct{ name string }

// body returns the body of the request.
func (m *responses) body(req *model.Request, stream bool) (model.Body, error) {
	if req.PreviousResponseID != "" && req.ConversationID != "" {
		return model.Body{}, errors.New("a previous response and a conversation exclude each other")
	}
	head, err := req.Static.Encoded(headKey{m.name}, func() ([]byte, error) { return head(m.name, req.Static) })
	if err != nil {
		return model.Body{}, err
	}
	o := object{append(make([]byte, 0, 128), ']')}
	o.stringIfSet("previous_response_id", req.PreviousResponseID)
	o.stringIfSet("conversation", req.ConversationID)
	if stream {
		o.bool("stream", true)
	}
	o.close()
	return req.Input.Body(head, o.text), nil
}

// head returns the body up to and including the bracket that opens the input.
func head(name string, static *model.Static) ([]byte, error) {
	settings := static.Settings
	if settings == nil {
		settings = &model.Settings{}
	}
	if err := checkSettings(settings); err != nil {
		return nil, err
	}
	if static.Model != "" {
		name = static.Model
	}
	_, prompt := settings.ExtraBody["prompt"]
	prompt = prompt || static.Prompt != "" // stored by the server; it may bring a model and tools of its own
	if name == "" && !prompt {
		return nil, errors.New("no model name")
	}
	o := &object{}
	o.open()
	o.stringIfSet("model", name)
	o.stringIfSet("instructions", static.Instructions)
	if static.Prompt != "" {
		if err := checkObject(static.Prompt); err != nil {
			return nil, fmt.Errorf("prompt: %w", err)
		}
		o.raw("prompt", static.Prompt)
	}
	if err := o.tools(static.Tools); err != nil {
		return nil, err
	}
	if err := o.toolChoice(settings, static.Tools, prompt); err != nil {
		return nil, fmt.Errorf("tool choice: %w", err)
	}
	if len(static.Tools) > 0 || prompt {
		o.boolIfSet("parallel_tool_calls", settings.ParallelToolCalls)
	}
	if err := o.textFormat(static.Output, settings.Verbosity); err != nil {
		return nil, fmt.Errorf("output format: %w", err)
	}
	o.settings(settings)
	if err := o.extra(settings.ExtraBody); err != nil {
		return nil, fmt.Errorf("extra body: %w", err)
	}
	o.raw("input", "[")
	return o.text, nil
}

// checkSettings reports settings that cannot be sent.
func checkSettings(s *model.Settings) error {
	for name, value := range map[string]*float64{"temperature": s.Temperature, "top_p": s.TopP} {
		if value != nil && (math.IsNaN(*value) || math.IsInf(*value, 0)) {
			return fmt.Errorf("%s is not a finite number", name)
		}
	}
	if s.IncludeUsage != nil && !*s.IncludeUsage {
		return errors.New("usage cannot be left out: the Responses API always reports it")
	}
	if s.PromptCacheOptions != "" {
		if err := checkObject(s.PromptCacheOptions); err != nil {
			return fmt.Errorf("prompt cache options: %w", err)
		}
	}
	if s.ContextManagement != "" {
		if err := jsonscan.Valid(s.ContextManagement, maxRawDepth); err != nil {
			return fmt.Errorf("context management: %w", err)
		}
	}
	if err := checkHeaders(s.ExtraHeaders); err != nil {
		return fmt.Errorf("extra headers: %w", err)
	}
	return nil
}

// settings writes the settings that have no place of their own.
func (o *object) settings(s *model.Settings) {
	if r := s.Reasoning; r != nil && *r != (model.Reasoning{}) {
		o.name("reasoning")
		o.open()
		o.stringIfSet("effort", r.Effort)
		o.stringIfSet("summary", r.Summary)
		o.stringIfSet("mode", r.Mode)
		o.stringIfSet("context", r.Context)
		o.close()
	}
	o.floatIfSet("temperature", s.Temperature)
	o.floatIfSet("top_p", s.TopP)
	o.intIfSet("max_output_tokens", s.MaxTokens)
	o.intIfSet("top_logprobs", s.TopLogprobs)
	o.stringIfSet("truncation", s.Truncation)
	o.boolIfSet("store", s.Store)
	if len(s.Metadata) > 0 {
		o.name("metadata")
		o.open()
		for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
			o.string(key, s.Metadata[key])
		}
		o.close()
	}
	o.stringIfSet("prompt_cache_key", s.PromptCacheKey)
	o.stringIfSet("prompt_cache_retention", s.PromptCacheRetention)
	if s.PromptCacheOptions != "" {
		o.raw("prompt_cache_options", s.PromptCacheOptions)
	}
	if s.ContextManagement != "" {
		o.raw("context_management", s.ContextManagement)
	}
	if include := include(s); len(include) > 0 {
		o.strings("include", include)
	}
}

// include returns the parts to include, each once.
func include(s *model.Settings) []string {
	const logprobs = "message.output_text.logprobs"
	var names []string
	for _, name := range s.ResponseInclude {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if s.TopLogprobs != nil && !slices.Contains(names, logprobs) {
		names = append(names, logprobs) // without it the server leaves them out
	}
	return names
}

// textFormat writes the member "text", which holds the output format and the verbosity.
func (o *object) textFormat(format *model.OutputFormat, verbosity string) error {
	if format == nil && verbosity == "" {
		return nil
	}
	o.name("text")
	o.open()
	if format != nil {
		if format.Name == "" {
			return errors.New("a schema needs a name")
		}
		if err := checkObject(format.Schema); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
		o.name("format")
		o.open()
		o.string("type", "json_schema")
		o.string("name", format.Name)
		o.raw("schema", format.Schema)
		o.bool("strict", format.Strict)
		o.close()
	}
	o.stringIfSet("verbosity", verbosity)
	o.close()
	return nil
}

// extra writes the caller's own members. Those that are written already, and those that belong to the run, are refused.
func (o *object) extra(members map[string]string) error {
	if len(members) == 0 {
		return nil
	}
	taken := map[string]bool{
		"input": true, "stream": true, "previous_response_id": true, "conversation": true,
		"background": true, // the answer would have to be fetched later
	}
	written := string(o.text) + "}"
	err := jsonscan.Object(written, func(name, _ string) error {
		taken[name] = true
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if taken[name] {
			return fmt.Errorf("the member %q is not the caller's to set", name)
		}
		if err := jsonscan.Valid(members[name], maxRawDepth); err != nil {
			return fmt.Errorf("member %q: %w", name, err)
		}
		o.raw(name, members[name])
	}
	return nil
}
