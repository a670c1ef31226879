package pawltest

import (
	"strconv"
	"strings"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
)

// idSource makes ids that are the same in every run of the same requests: resp_1, resp_2, msg_1 ...
type idSource struct {
	base int // ids start after it; grows when a server with a directory starts again
	next map[string]int
}

// newID returns an id of the given prefix that nothing in the state has (mu held).
func (s *responsesState) newID(prefix string) string {
	for {
		s.ids.next[prefix]++
		n := s.ids.base + s.ids.next[prefix]
		s.dir.reserve(n)
		id := prefix + "_" + strconv.Itoa(n)
		if _, taken := s.items[id]; !taken && s.responses[id] == nil && s.conversations[id] == nil {
			return id
		}
	}
}

// idPrefixes are the prefixes of item ids. Those of messages, function calls and reasoning are what the service asks for
// (see checkItemID), those of hosted calls are the ones in the examples of its guides, the rest is our own.
var idPrefixes = map[item.Type]string{
	item.TypeMessage:              "msg",
	item.TypeFunctionCall:         "fc",
	item.TypeFunctionCallOutput:   "fco",
	item.TypeReasoning:            "rs",
	item.TypeCustomToolCall:       "ctc",
	item.TypeCustomToolCallOutput: "ctco",
	item.TypeComputerCall:         "cu",
	item.TypeFileSearchCall:       "fs",
	item.TypeWebSearchCall:        "ws",
	item.TypeCodeInterpreterCall:  "ci",
	item.TypeImageGenerationCall:  "ig",
	item.TypeMCPListTools:         "mcpl",
	item.TypeMCPApprovalRequest:   "mcpr",
	item.TypeMCPCall:              "mcp",
}

// completeAll completes items that are put into a conversation (mu held).
func (s *responsesState) completeAll(items []item.Item) []item.Item {
	out := make([]item.Item, len(items))
	for i, it := range items {
		out[i] = s.complete(item.FromTrusted(strings.Clone(it.Raw())))
	}
	return out
}

// hasStatus are the types whose items the server lists with a status.
var hasStatus = map[item.Type]bool{
	item.TypeMessage:            true,
	item.TypeFunctionCall:       true,
	item.TypeFunctionCallOutput: true,
}

// complete returns the item as the server lists it: with an id, a status and content as a list of parts (mu held). Members
// it has already keep their bytes.
func (s *responsesState) complete(it item.Item) item.Item {
	h := it.Head()
	var o object
	if h.ID == "" {
		prefix, ok := idPrefixes[h.Type]
		if !ok {
			prefix = "item"
		}
		o = o.str("id", s.newID(prefix))
	}
	if h.Type == item.TypeMessage {
		o = o.str("type", string(h.Type))
	}
	if h.CallID == "" && needsOutput(it, h) {
		o = o.str("call_id", s.newID("call"))
	}
	if h.Status == "" && hasStatus[h.Type] {
		o = o.str("status", statusCompleted)
	}
	if len(o) == 0 {
		return it
	}
	// Object cannot fail: the item was scanned when it was made.
	_ = jsonscan.Object(it.Raw(), func(key, value string) error {
		switch {
		case key == "id" && h.ID == "", key == "status" && h.Status == "", key == "call_id" && h.CallID == "":
		case key == "type" && h.Type == item.TypeMessage:
		case key == "content" && h.Type == item.TypeMessage && value[0] == '"':
			o = o.raw(key, contentParts(h.Role, value))
		default:
			o = o.raw(key, value)
		}
		return nil
	})
	return item.FromTrusted(o.end())
}

// contentParts is the list form of a message content given as a string.
func contentParts(role, text string) string {
	if role == "assistant" {
		return "[" + object(nil).str("type", "output_text").raw("text", text).
			raw("annotations", "[]").raw("logprobs", "[]").end() + "]"
	}
	return "[" + object(nil).str("type", "input_text").raw("text", text).end() + "]"
}
