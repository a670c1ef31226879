package model

import "time"

// Settings are the options of a model request. A nil field is not sent, so the
// server's default holds. The fields follow OpenAI's Responses API
// (https://platform.openai.com/docs/api-reference/responses/create); an adapter that
// cannot honour a field refuses the request with an error rather than ignore it,
// except for the two penalties, which only Chat Completions knows.
type Settings struct {
	Temperature      *float64
	TopP             *float64
	FrequencyPenalty *float64
	PresencePenalty  *float64
	// ToolChoice is "auto", "required", "none", the name of a function, or the
	// type word of a hosted tool. ToolChoiceRaw wins over it.
	ToolChoice string
	// ToolChoiceRaw is the provider's own JSON, for example
	// {"type":"mcp","server_label":"x","name":"y"}.
	ToolChoiceRaw string
	// ParallelToolCalls is sent only when tools are offered.
	ParallelToolCalls *bool
	// Truncation is "auto" or "disabled".
	Truncation string
	// MaxTokens bounds the output, reasoning included.
	MaxTokens *int64
	Reasoning *Reasoning
	// Verbosity is "low", "medium" or "high".
	Verbosity string
	Metadata  map[string]string
	// Store asks the server to keep the response.
	Store *bool
	// PromptCacheRetention is "in_memory" or "24h".
	PromptCacheRetention string
	// PromptCacheKey groups requests that share a prefix.
	PromptCacheKey string
	// PromptCacheOptions is the provider's own JSON object of cache options.
	PromptCacheOptions string
	// IncludeUsage asks a Chat Completions stream for usage.
	IncludeUsage *bool
	// ResponseInclude names extra parts of the response to return.
	ResponseInclude []string
	// TopLogprobs asks for the most likely tokens, 0 to 20.
	TopLogprobs *int64
	// ContextManagement is the provider's own JSON for server compaction.
	ContextManagement string
	// ExtraQuery, ExtraHeaders are added to the HTTP request.
	ExtraQuery   map[string]string
	ExtraHeaders map[string]string
	// ExtraBody holds raw JSON values by top-level field. A field the adapter
	// already sets is an error.
	ExtraBody map[string]string
	// Retry says when a failed attempt is followed by another. It is read by
	// the run, not by the adapter.
	Retry *Retry
	// PreserveRawUsage keeps the server's usage object in Usage.Raw.
	PreserveRawUsage bool
	// Timeout bounds one attempt, stream included. 0 means no bound.
	Timeout time.Duration
}

// Reasoning configures reasoning models.
type Reasoning struct {
	// Effort is for example "minimal", "low", "medium" or "high".
	Effort string
	// Summary is "auto", "concise" or "detailed".
	Summary string
	// Mode and Context are passed on as they are.
	Mode    string
	Context string
}

// Merge returns the settings with every field that over sets taken from over, those of
// Retry one by one, too. Maps are replaced. Either may be nil.
func (s *Settings) Merge(over *Settings) *Settings {
	if s == nil || over == nil {
		if over != nil {
			return over
		}
		return s
	}
	m := *s
	set(&m.Temperature, over.Temperature)
	set(&m.TopP, over.TopP)
	set(&m.FrequencyPenalty, over.FrequencyPenalty)
	set(&m.PresencePenalty, over.PresencePenalty)
	setText(&m.ToolChoice, over.ToolChoice)
	setText(&m.ToolChoiceRaw, over.ToolChoiceRaw)
	set(&m.ParallelToolCalls, over.ParallelToolCalls)
	setText(&m.Truncation, over.Truncation)
	set(&m.MaxTokens, over.MaxTokens)
	set(&m.Reasoning, over.Reasoning)
	setText(&m.Verbosity, over.Verbosity)
	set(&m.Store, over.Store)
	setText(&m.PromptCacheRetention, over.PromptCacheRetention)
	setText(&m.PromptCacheKey, over.PromptCacheKey)
	setText(&m.PromptCacheOptions, over.PromptCacheOptions)
	set(&m.IncludeUsage, over.IncludeUsage)
	set(&m.TopLogprobs, over.TopLogprobs)
	setText(&m.ContextManagement, over.ContextManagement)
	m.Retry = s.Retry.merge(over.Retry)
	m.PreserveRawUsage = s.PreserveRawUsage || over.PreserveRawUsage
	if over.ResponseInclude != nil {
		m.ResponseInclude = over.ResponseInclude
	}
	if over.Timeout != 0 {
		m.Timeout = over.Timeout
	}
	setMap(&m.Metadata, over.Metadata)
	setMap(&m.ExtraQuery, over.ExtraQuery)
	setMap(&m.ExtraHeaders, over.ExtraHeaders)
	setMap(&m.ExtraBody, over.ExtraBody)
	return &m
}

func set[T any](dst **T, src *T) {
	if src != nil {
		*dst = src
	}
}

func setText(dst *string, src string) {
	if src != "" {
		*dst = src
	}
}

func setMap(dst *map[string]string, src map[string]string) {
	if src != nil {
		*dst = src
	}
}

// Limit returns Timeout; 0 for nil settings.
func (s *Settings) Limit() time.Duration {
	if s == nil {
		return 0
	}
	return s.Timeout
}
