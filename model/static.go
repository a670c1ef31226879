package model

import "sync"

// Static is the part of a request that stays the same from turn to turn. It must
// not be changed once a request uses it. It is safe for concurrent use.
type Static struct {
	// Model overrides the adapter's own model name when not empty.
	Model string
	// Instructions is the system prompt.
	Instructions string
	// Prompt names a prompt that the server keeps: a JSON object with id, version and
	// variables, as the Responses API has it. Empty means none. Only a model whose Info
	// says ServerPrompts is asked with one. The model's name is left out of such a request
	// if none was chosen.
	Prompt string
	// Tools are offered in this order.
	Tools []Tool
	// Output asks for structured output; nil means text.
	Output *OutputFormat
	// Settings are the sampling and request options; nil means none.
	Settings *Settings

	mu    sync.Mutex
	cache map[any][]byte
}

// Encoded returns what build made for key the first time it was asked, so that an
// adapter encodes the static part once. The key should be of an unexported type of
// the adapter.
func (s *Static) Encoded(key any, build func() ([]byte, error)) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.cache[key]; ok {
		return b, nil
	}
	b, err := build()
	if err != nil {
		return nil, err
	}
	if s.cache == nil {
		s.cache = make(map[any][]byte)
	}
	s.cache[key] = b
	return b, nil
}

// Tool is a tool as the model sees it.
type Tool struct {
	// Name, Description and Parameters (a JSON Schema) describe a function.
	Name        string
	Description string
	Parameters  string
	// Strict asks the server to hold the model to the schema.
	Strict bool
	// Raw is the provider's own JSON for a hosted tool. When set, the other
	// fields are not sent.
	Raw string
}

// OutputFormat is a structured output format.
type OutputFormat struct {
	// Name identifies the format; the Responses API wants [a-zA-Z0-9_-]{1,64}.
	Name string
	// Schema is the JSON Schema.
	Schema string
	// Strict asks the server to hold the model to the schema.
	Strict bool
}
