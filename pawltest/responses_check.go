package pawltest

import (
	"net/http"
	"strings"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
)

// A rule of this file is one reason for which the service refuses a request, with the status and the kind of words it uses.
// Each names the place where the service was seen to do so, or the API reference that says it would, or says that it is an
// assumption. Rules about items are in responses_check_items.go.

// checkKey refuses a request without the key the server asks for.
// https://developers.openai.com/api/docs/guides/error-codes (401, invalid authentication)
func checkKey(h http.Header, key string) *ResponsesError {
	if key == "" || h.Get("Authorization") == "Bearer "+key {
		return nil
	}
	return &ResponsesError{
		Status:  http.StatusUnauthorized,
		Message: "Incorrect API key provided.",
		Type:    "invalid_request_error",
		Code:    "invalid_api_key",
	}
}

// errMalformedBody refuses a body that is not a JSON object.
// https://github.com/microsoft/graphrag/issues/2286, https://github.com/ChatGPTNextWeb/NextChat/issues/4064
func errMalformedBody() *ResponsesError {
	return refusal("", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using "+
		"your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)")
}

// createParams are the members of a request that creates a response:
// https://pkg.go.dev/github.com/openai/openai-go/v3/responses#ResponseNewParams and stream, which that client adds itself.
var createParams = map[string]bool{
	"access_programs": true, "background": true, "context_management": true, "conversation": true, "image": true,
	"include": true, "input": true, "instructions": true, "max_output_tokens": true, "max_tool_calls": true,
	"metadata": true, "model": true, "moderation": true, "parallel_tool_calls": true, "previous_response_id": true,
	"prompt": true, "prompt_cache_key": true, "prompt_cache_options": true, "prompt_cache_retention": true,
	"reasoning": true, "safety_identifier": true, "service_tier": true, "store": true, "stream": true,
	"stream_options": true, "temperature": true, "text": true, "tool_choice": true, "tools": true,
	"top_logprobs": true, "top_p": true, "truncation": true, "user": true,
}

// checkKnown refuses a member the API doesn't have.
// https://github.com/fhswf/openai-ui/issues/127, https://github.com/1jehuang/jcode/issues/1028
func checkKnown(name string) *ResponsesError {
	if createParams[name] {
		return nil
	}
	return refusal(name, "unknown_parameter", "Unknown parameter: '%s'.", name)
}

// errMissing refuses a request without a member that is required.
// https://github.com/openai/codex/issues/6725
func errMissing(param string) *ResponsesError {
	return refusal(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

// errType refuses a member of the wrong JSON type. That the service does so follows from the API reference; the words are
// an assumption.
func errType(param, want string) *ResponsesError {
	return refusal(param, "invalid_type", "Invalid type for '%s': expected %s.", param, want)
}

// checkInputGiven refuses a request that gives the model nothing to go on. All of its sources are optional in
// https://platform.openai.com/docs/api-reference/responses/create; that one must be there, and the words, are assumptions.
func checkInputGiven(r *ResponsesRequest) *ResponsesError {
	for _, name := range [...]string{"input", "previous_response_id", "conversation", "prompt"} {
		if value, ok := r.params[name]; ok && value != "null" {
			return nil
		}
	}
	return refusal("input", "missing_required_parameter",
		"One of 'input', 'previous_response_id', 'prompt' or 'conversation' must be provided.")
}

// checkOnePointer refuses a request that continues a chain and a conversation at once. The API reference says
// previous_response_id cannot be used with conversation
// (https://platform.openai.com/docs/api-reference/responses/create#responses-create-previous_response_id); the words are
// an assumption.
func checkOnePointer(r *ResponsesRequest) *ResponsesError {
	if r.PreviousResponseID == "" || r.Conversation == "" {
		return nil
	}
	return refusal("previous_response_id", "mutually_exclusive_parameters",
		"Mutually exclusive parameters: provide only one of 'previous_response_id' or 'conversation'.")
}

// checkID refuses an id that can't be one of its kind.
// https://github.com/continuedev/continue/issues/11494 (prefix),
// https://github.com/ProjectTech4DevAI/kaapi-backend/issues/317 (characters, previous_response_id)
func checkID(param, id, prefix string) *ResponsesError {
	for _, c := range id {
		if !(c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
			return refusal(param, "invalid_value", "Invalid '%s': '%s'. Expected an ID that contains letters, numbers, "+
				"underscores, or dashes, but this value contained additional characters.", param, id)
		}
	}
	if !strings.HasPrefix(id, prefix) {
		return refusal(param, "invalid_value", "Invalid '%s': '%s'. Expected an ID that begins with '%s'.", param, id, prefix)
	}
	return nil
}

// errNoPreviousResponse refuses a chain whose last response the server doesn't hold: unknown, deleted, or not stored.
// https://github.com/Soju06/codex-lb/issues/853, https://github.com/maximhq/bifrost/issues/2441 (store false)
func errNoPreviousResponse(id string) *ResponsesError {
	return refusal("previous_response_id", "previous_response_not_found", "Previous response with id '%s' not found.", id)
}

// errNoConversation refuses a conversation the server doesn't hold. Status and words are an assumption, after those for items.
func errNoConversation(id string) *ResponsesError {
	return notFound("conversation", "Conversation with id '%s' not found.", id)
}

// checkLocked refuses a conversation on which another response is being made. It is 400, not 409.
// https://github.com/paulgmiller/careme/issues/379
func checkLocked(c *conversation) *ResponsesError {
	if !c.busy {
		return nil
	}
	return refusal("conversation", "conversation_locked",
		"Another process is currently operating on this conversation. Please retry in a few seconds.")
}

// parseCreate reads the body of a request that creates a response and applies the rules that need no state.
func parseCreate(r *ResponsesRequest) *ResponsesError {
	r.params = map[string]string{}
	var unknown *ResponsesError
	err := jsonscan.Object(string(r.Body), func(name, value string) error {
		r.params[name] = value
		if unknown == nil {
			unknown = checkKnown(name)
		}
		return nil
	})
	if err != nil {
		return errMalformedBody()
	}
	if unknown != nil {
		return unknown
	}
	return firstRefusal(
		func() *ResponsesError { return r.readString("model", &r.Model) },
		func() *ResponsesError { return r.readString("instructions", &r.Instructions) },
		func() *ResponsesError { return r.readString("previous_response_id", &r.PreviousResponseID) },
		func() *ResponsesError { return r.readBool("stream", false, &r.Stream) },
		func() *ResponsesError { return r.readBool("store", true, &r.Store) },
		r.readConversation,
		r.readInput,
		func() *ResponsesError {
			if r.Model == "" && r.Param("prompt") == nil {
				return errMissing("model")
			}
			return checkInputGiven(r)
		},
		func() *ResponsesError { return checkOnePointer(r) },
		func() *ResponsesError {
			if r.PreviousResponseID == "" {
				return nil
			}
			return checkID("previous_response_id", r.PreviousResponseID, "resp")
		},
		func() *ResponsesError {
			if r.Conversation == "" {
				return nil
			}
			return checkID("conversation", r.Conversation, "conv")
		},
	)
}

// firstRefusal runs rules in order up to the first that refuses.
func firstRefusal(rules ...func() *ResponsesError) *ResponsesError {
	for _, rule := range rules {
		if refused := rule(); refused != nil {
			return refused
		}
	}
	return nil
}

// given returns a member that is there and not null.
func (r *ResponsesRequest) given(name string) (value string, ok bool) {
	value, ok = r.params[name]
	return value, ok && value != "null"
}

func (r *ResponsesRequest) readString(name string, into *string) *ResponsesError {
	value, ok := r.given(name)
	if !ok {
		return nil
	}
	s, err := jsonscan.String(value)
	if err != nil {
		return errType(name, "a string")
	}
	*into = strings.Clone(s) // the log keeps it longer than the body
	return nil
}

func (r *ResponsesRequest) readBool(name string, absent bool, into *bool) *ResponsesError {
	*into = absent
	value, ok := r.given(name)
	if !ok {
		return nil
	}
	b, err := jsonscan.Bool(value)
	if err != nil {
		return errType(name, "a boolean")
	}
	*into = b
	return nil
}

// readConversation takes an id or an object with one.
func (r *ResponsesRequest) readConversation() *ResponsesError {
	value, ok := r.given("conversation")
	if !ok {
		return nil
	}
	if value[0] == '"' {
		return r.readString("conversation", &r.Conversation)
	}
	err := jsonscan.Object(value, func(key, value string) error {
		if key != "id" {
			return nil
		}
		id, err := jsonscan.String(value)
		r.Conversation = strings.Clone(id)
		return err
	})
	if err != nil {
		return errType("conversation", "a string or an object")
	}
	if r.Conversation == "" {
		return errMissing("conversation.id")
	}
	return nil
}

// readInput takes a string or a list of items.
func (r *ResponsesRequest) readInput() *ResponsesError {
	value, ok := r.given("input")
	if !ok {
		return nil
	}
	if value[0] == '"' {
		text, err := jsonscan.String(value)
		if err != nil {
			return errMalformedBody()
		}
		r.Input = []item.Item{item.UserText(text)}
		return nil
	}
	items, refused := readItems("input", value)
	r.Input = items
	return refused
}
