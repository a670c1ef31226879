package pawltest

import (
	"fmt"
	"net/http"
	"slices"
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

// itemRules are the rules an item must keep, in the order in which they are applied.
var itemRules = [...]func(c *itemCheck, i int, it item.Item, h item.Head) *ResponsesError{
	(*itemCheck).checkShape,
	(*itemCheck).checkItemID,
	(*itemCheck).checkDuplicate,
	(*itemCheck).checkStored,
	(*itemCheck).checkFollower,
	(*itemCheck).checkReasoning,
}

// checkModelInput refuses what the service would not give to a model (state.mu held). It returns the items with references
// replaced by what they refer to.
func (c *itemCheck) checkModelInput(items []item.Item) ([]item.Item, *ResponsesError) {
	c.open = c.history.open()
	out, refused := c.checkEach(items, true)
	if refused != nil {
		return nil, refused
	}
	if refused := c.checkFollower(len(items), item.Item{}, item.Head{}); refused != nil {
		return nil, refused
	}
	return out, c.checkAnswered()
}

// checkNewItems refuses what may not enter a conversation (state.mu held). Calls without outputs and outputs without calls
// may: a conversation is filled piece by piece, what a model is given must be whole (assumption).
func (c *itemCheck) checkNewItems(items []item.Item) ([]item.Item, *ResponsesError) {
	return c.checkEach(items, false)
}

func (c *itemCheck) checkEach(items []item.Item, pairing bool) ([]item.Item, *ResponsesError) {
	c.seen = make(map[string]bool)
	out := items
	for i, it := range items {
		h := it.Head()
		if isReference(h) {
			known, ok := c.state.items[h.ID]
			if !ok {
				return nil, errNoItem(h.ID)
			}
			if &out[0] == &items[0] { // the request's own list stays as it was sent
				out = slices.Clone(items)
			}
			it, h = known.raw, known.raw.Head()
			out[i] = it
		}
		for _, rule := range itemRules {
			if refused := rule(c, i, it, h); refused != nil {
				return nil, refused
			}
		}
		if pairing {
			if refused := c.checkOutput(it, h); refused != nil {
				return nil, refused
			}
		}
		if h.ID != "" {
			c.seen[h.ID] = true
		}
		c.last = h
	}
	return out, nil
}

// at names an item, or a member of it, as the service does.
func (c *itemCheck) at(i int, member string) string {
	return fmt.Sprintf("%s[%d]%s", c.param, i, member)
}

// isReference reports whether an item stands for one the server holds. Its type may be left out.
// https://pkg.go.dev/github.com/openai/openai-go/v3/responses#ResponseInputItemItemReferenceParam
func isReference(h item.Head) bool {
	return h.Type == item.TypeItemReference || h.Type == "" && h.Role == "" && h.ID != ""
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
	item.TypeMCPApprovalRequest:   {"id", "server_label", "name", "arguments"},
	item.TypeMCPApprovalResponse:  {"approval_request_id", "approve"},
}

// checkShape refuses an item without a member its type must have, or without a type.
func (c *itemCheck) checkShape(i int, it item.Item, h item.Head) *ResponsesError {
	if h.Type == "" {
		return errMissing(c.at(i, ".type"))
	}
	names, ok := required[h.Type]
	if !ok {
		return nil
	}
	var present [4]bool
	err := jsonscan.Object(it.Raw(), func(key, value string) error {
		for j, name := range names {
			present[j] = present[j] || key == name && value != "null"
		}
		return nil
	})
	if err != nil {
		return errType(c.at(i, ""), "an object")
	}
	for j, name := range names {
		if !present[j] {
			return errMissing(c.at(i, "."+name))
		}
	}
	return nil
}

// checkItemID refuses an item whose id belongs to another kind of item.
// msg: https://github.com/openai/codex/issues/33176, https://github.com/Wei-Shaw/sub2api/issues/3981 (code)
// fc: https://github.com/continuedev/continue/issues/11494
// rs: https://github.com/jlcodes99/cockpit-tools/issues/2090
// That outputs of function calls want 'fc' too: https://github.com/continuedev/continue/issues/11785
func (c *itemCheck) checkItemID(i int, _ item.Item, h item.Head) *ResponsesError {
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
	return checkID(c.at(i, ".id"), h.ID, prefix)
}

// checkDuplicate refuses an item that is there already: in the request, in the chain or in the conversation.
// https://github.com/openai/openai-agents-python/issues/1789, https://github.com/openai/openai-agents-js/issues/425,
// https://github.com/continuedev/continue/issues/10723
func (c *itemCheck) checkDuplicate(_ int, _ item.Item, h item.Head) *ResponsesError {
	if h.ID == "" || !c.seen[h.ID] && !c.history.has(h.ID) {
		return nil
	}
	return refusal(c.param, "",
		"Duplicate item found with id %s. Remove duplicate items from your input and try again.", h.ID)
}

// checkStored refuses a reasoning item by id alone that the server doesn't hold: its thoughts are neither here nor, as
// encrypted content, in the request.
// https://github.com/can1357/oh-my-pi/issues/41, https://github.com/anomalyco/opencode/issues/7724
func (c *itemCheck) checkStored(_ int, it item.Item, h item.Head) *ResponsesError {
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
func (c *itemCheck) checkFollower(_ int, _ item.Item, h item.Head) *ResponsesError {
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
func (c *itemCheck) checkReasoning(_ int, _ item.Item, h item.Head) *ResponsesError {
	needs := c.state.items[h.ID].reasoning
	if h.ID == "" || needs == "" || c.seen[needs] || c.history.has(needs) {
		return nil
	}
	return refusal(c.param, "", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.",
		h.ID, h.Type, needs)
}

// checkOutput refuses an output whose call isn't there, or comes later, or has its output already.
// https://github.com/james-6-23/codex2api/issues/414, https://github.com/microsoft/agent-framework/issues/5546
// That a second output is refused as unknown, and the words for outputs of custom tools and for approvals, are assumptions.
func (c *itemCheck) checkOutput(it item.Item, h item.Head) *ResponsesError {
	if needsOutput(it, h) {
		c.open = append(c.open, h)
		return nil
	}
	if !item.IsOutput(h.Type) || c.open.settle(h.CallID, h.Type) {
		return nil
	}
	noun, ok := outputNouns[h.Type]
	if !ok {
		return refusal(c.param, "", "No approval request found with id '%s'.", h.CallID)
	}
	return refusal(c.param, "", "No tool call found for %s output with call_id %s.", noun, h.CallID)
}

// checkAnswered refuses a request that leaves a call without its output.
// https://github.com/openai/openai-agents-python/issues/673, https://github.com/tjardoo/openai-client/pull/124
// custom tool call: https://github.com/Wei-Shaw/sub2api/issues/5150
// That an approval request must be answered, and the words, are assumptions.
func (c *itemCheck) checkAnswered() *ResponsesError {
	if len(c.open) == 0 {
		return nil
	}
	call := c.open[0]
	if call.Type == item.TypeMCPApprovalRequest {
		return refusal(c.param, "", "No approval response found for approval request %s.", call.CallID)
	}
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
