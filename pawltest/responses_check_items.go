package pawltest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
)

// readItems reads a JSON list of items.
func readItems(param, list string) ([]item.Item, *ResponsesError) {
	var items []item.Item
	var refused *ResponsesError
	err := jsonscan.Array(list, func(value string) error {
		if value[0] != '{' && refused == nil {
			refused = errType(fmt.Sprintf("%s[%d]", param, len(items)), "an object")
		}
		items = append(items, item.FromTrusted(value))
		return nil
	})
	if err != nil {
		return nil, errType(param, "a string or an array of items")
	}
	return items, refused
}

// itemCheck applies the rules about items to one request: to what it continues and to what it adds, in order.
type itemCheck struct {
	param   string // "input", or "items" for the items of a conversation
	state   *responsesState
	history history
	open    openCalls
	seen    map[string]bool // ids in the request
	last    item.Head       // the item before
}

// check refuses a request whose items the service would refuse (state.mu held). References are replaced by what they refer
// to. Pairing of calls and outputs is not asked of items that are only put into a conversation (assumption: a conversation
// may be filled piece by piece; what a model is given must be whole).
func (c *itemCheck) check(items []item.Item, pairing bool) ([]item.Item, *ResponsesError) {
	c.seen = make(map[string]bool)
	c.open = c.history.open()
	out := items
	for i, it := range items {
		h := it.Head()
		where := fmt.Sprintf("%s[%d]", c.param, i)
		if isReference(h) {
			found, refused := c.resolve(h.ID)
			if refused != nil {
				return nil, refused
			}
			if &out[0] == &items[0] {
				out = append([]item.Item(nil), items...)
			}
			out[i] = found
			h = found.Head()
		}
		rules := []func() *ResponsesError{
			func() *ResponsesError { return checkItemShape(where, it, h) },
			func() *ResponsesError { return checkItemID(where, h) },
			func() *ResponsesError { return c.checkDuplicate(h) },
			func() *ResponsesError { return c.checkStored(it, h) },
			func() *ResponsesError { return c.checkFollower(h) },
			func() *ResponsesError { return c.checkReasoning(h) },
		}
		if pairing {
			rules = append(rules, func() *ResponsesError { return c.checkOutput(it, h) })
		}
		if refused := firstRefusal(rules...); refused != nil {
			return nil, refused
		}
		if h.ID != "" {
			c.seen[h.ID] = true
		}
		c.last = h
	}
	if !pairing {
		return out, nil
	}
	return out, firstRefusal(
		func() *ResponsesError { return c.checkFollower(item.Head{}) },
		c.checkAnswered,
	)
}

// isReference reports whether an item stands for one the server holds. Its type may be left out.
// https://pkg.go.dev/github.com/openai/openai-go/v3/responses#ResponseInputItemItemReferenceParam
func isReference(h item.Head) bool {
	return h.Type == item.TypeItemReference || h.Type == "" && h.Role == "" && h.ID != ""
}

// resolve finds the item of a reference; errNoItem if the server doesn't hold it.
func (c *itemCheck) resolve(id string) (item.Item, *ResponsesError) {
	known, ok := c.state.items[id]
	if !ok {
		return item.Item{}, errNoItem(id)
	}
	return known.raw, nil
}

// errNoItem refuses an id that should name a stored item and doesn't.
// https://github.com/can1357/oh-my-pi/issues/41 (404),
// https://community.openai.com/t/requests-api-does-not-support-manual-context-management/1269225 (type, param, code)
func errNoItem(id string) *ResponsesError {
	return notFound("input", "Item with id '%s' not found. Items are not persisted when `store` is set to false. "+
		"Try again with `store` set to true, or remove this item from your input.", id)
}

// required are the members without which an item of a type is refused.
// https://github.com/openai/codex/issues/6725 (kind of words),
// https://github.com/newo-ether/Agora/issues/141 (summary of a reasoning item); the members are those the API reference
// calls required: https://platform.openai.com/docs/api-reference/responses/create#responses-create-input
var required = map[item.Type][]string{
	item.TypeFunctionCall:         {"call_id", "name", "arguments"},
	item.TypeFunctionCallOutput:   {"call_id", "output"},
	item.TypeCustomToolCall:       {"call_id", "name", "input"},
	item.TypeCustomToolCallOutput: {"call_id", "output"},
	item.TypeReasoning:            {"summary"},
	item.TypeMessage:              {"role", "content"},
}

// checkItemShape refuses an item without a member its type must have, or without a type.
func checkItemShape(where string, it item.Item, h item.Head) *ResponsesError {
	if h.Type == "" {
		return errMissing(where + ".type")
	}
	names, ok := required[h.Type]
	if !ok {
		return nil
	}
	var present [3]bool
	_ = jsonscan.Object(it.Raw(), func(key, value string) error {
		for i, name := range names {
			present[i] = present[i] || key == name && value != "null"
		}
		return nil
	})
	for i, name := range names {
		if !present[i] {
			return errMissing(where + "." + name)
		}
	}
	return nil
}

// checkItemID refuses an item whose id belongs to another kind of item.
// msg: https://github.com/openai/codex/issues/33176, https://github.com/Wei-Shaw/sub2api/issues/3981 (code)
// fc: https://github.com/continuedev/continue/issues/11494
// rs: https://github.com/jlcodes99/cockpit-tools/issues/2090
// That outputs of function calls want 'fc' too: https://github.com/continuedev/continue/issues/11785
func checkItemID(where string, h item.Head) *ResponsesError {
	var prefix string
	switch h.Type {
	case item.TypeMessage:
		prefix = "msg"
	case item.TypeFunctionCall, item.TypeFunctionCallOutput:
		prefix = "fc"
	case item.TypeReasoning:
		prefix = "rs"
	}
	if h.ID == "" || strings.HasPrefix(h.ID, prefix) {
		return nil
	}
	return checkID(where+".id", h.ID, prefix)
}

// checkDuplicate refuses an item that is there already: in the request, in the chain or in the conversation.
// https://github.com/openai/openai-agents-python/issues/1789, https://github.com/openai/openai-agents-js/issues/425,
// https://github.com/continuedev/continue/issues/10723
func (c *itemCheck) checkDuplicate(h item.Head) *ResponsesError {
	if h.ID == "" || !c.seen[h.ID] && !c.history.has(h.ID) {
		return nil
	}
	return refusal(c.param, "",
		"Duplicate item found with id %s. Remove duplicate items from your input and try again.", h.ID)
}

// checkStored refuses a reasoning item by id alone that the server doesn't hold: its thoughts are neither here nor, as
// encrypted content, in the request.
// https://github.com/can1357/oh-my-pi/issues/41, https://github.com/anomalyco/opencode/issues/7724
func (c *itemCheck) checkStored(it item.Item, h item.Head) *ResponsesError {
	if h.Type != item.TypeReasoning || h.ID == "" {
		return nil
	}
	if _, known := c.state.items[h.ID]; known {
		return nil
	}
	if r, err := it.Reasoning(); err == nil && r.EncryptedContent != "" {
		return nil
	}
	return errNoItem(h.ID)
}

// checkFollower refuses a reasoning item (the one before h) that isn't followed by the item it led to: the very item if this
// server made both, else any item of the model. An item whose id was removed is not that item.
// https://github.com/continuedev/continue/issues/8933, https://github.com/vercel/ai/issues/7099,
// https://github.com/openai/openai-node/issues/1567 (the message is there, its id is not)
func (c *itemCheck) checkFollower(h item.Head) *ResponsesError {
	if c.last.Type != item.TypeReasoning {
		return nil
	}
	if follower := c.state.items[c.last.ID].follower; follower != "" && h.ID == follower || follower == "" && byModel(h) {
		return nil
	}
	return refusal(c.param, "", "Item '%s' of type 'reasoning' was provided without its required following item.", c.last.ID)
}

// byModel reports whether a model makes items of this kind: its messages, its calls, its reasoning; not what answers them.
func byModel(h item.Head) bool {
	switch h.Type {
	case "":
		return false
	case item.TypeMessage:
		return h.Role == "assistant"
	default:
		return !strings.HasSuffix(string(h.Type), "_output") && h.Type != item.TypeMCPApprovalResponse
	}
}

// checkReasoning refuses an item of the model that this server made right after a reasoning item, and that comes back with
// its id but without the reasoning.
// https://github.com/cline/cline/issues/12242, https://github.com/continuedev/continue/issues/10018
func (c *itemCheck) checkReasoning(h item.Head) *ResponsesError {
	needs := c.state.items[h.ID].reasoning
	if h.ID == "" || needs == "" || c.seen[needs] || c.history.has(needs) {
		return nil
	}
	return refusal(c.param, "", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.",
		h.ID, h.Type, needs)
}

// checkOutput refuses an output whose call isn't there, or comes later, or has its output already.
// https://github.com/james-6-23/codex2api/issues/414, https://github.com/microsoft/agent-framework/issues/5546
// That a second output is refused as unknown, and the words for outputs of custom tools, are assumptions.
func (c *itemCheck) checkOutput(it item.Item, h item.Head) *ResponsesError {
	if it.NeedsOutput() {
		c.open = append(c.open, h)
		return nil
	}
	noun, isOutput := outputNouns[h.Type]
	if !isOutput || c.open.settle(h.CallID, h.Type) {
		return nil
	}
	return refusal(c.param, "", "No tool call found for %s output with call_id %s.", noun, h.CallID)
}

// checkAnswered refuses a request that leaves a call without its output.
// https://github.com/openai/openai-agents-python/issues/673, https://github.com/tjardoo/openai-client/pull/124
// custom tool call: https://github.com/Wei-Shaw/sub2api/issues/5150
func (c *itemCheck) checkAnswered() *ResponsesError {
	if len(c.open) == 0 {
		return nil
	}
	call := c.open[0]
	return refusal(c.param, "", "No tool output found for %s %s.", outputNouns[item.OutputType(call.Type)], call.CallID)
}

// outputNouns are what the service calls the calls that an output of a type belongs to.
var outputNouns = map[item.Type]string{
	item.TypeFunctionCallOutput:   "function call",
	item.TypeCustomToolCallOutput: "custom tool call",
	item.TypeComputerCallOutput:   "computer call",
	item.TypeLocalShellCallOutput: "local shell call",
	item.TypeShellCallOutput:      "shell call",
	item.TypeApplyPatchCallOutput: "apply patch call",
	item.TypeToolSearchOutput:     "tool search call",
}

// checkBatch refuses more items than may be added to a conversation at once.
// https://platform.openai.com/docs/api-reference/conversations/create-items (up to 20); the words are an assumption.
func checkBatch(items []item.Item) *ResponsesError {
	const most = 20
	if len(items) <= most {
		return nil
	}
	return &ResponsesError{
		Status: http.StatusBadRequest,
		Message: fmt.Sprintf("Invalid 'items': array too long. Expected an array with maximum length %d, "+
			"but got an array with length %d instead.", most, len(items)),
		Param: "items",
		Code:  "array_above_max_length",
	}
}
