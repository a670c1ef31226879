package item

import "github.com/pawl-agents/pawl/internal/jsonscan"

// A Type says what an item is. The constants are the types the Responses API has today; an item of any other type is carried
// along like the rest.
type Type string

// The item types of the Responses API (https://platform.openai.com/docs/api-reference/responses/object).
const (
	TypeMessage              Type = "message"
	TypeItemReference        Type = "item_reference"
	TypeReasoning            Type = "reasoning"
	TypeCompaction           Type = "compaction"
	TypeCompactionTrigger    Type = "compaction_trigger"
	TypeAdditionalTools      Type = "additional_tools"
	TypeConfigurationUpdate  Type = "configuration_update"
	TypeFunctionCall         Type = "function_call"
	TypeFunctionCallOutput   Type = "function_call_output"
	TypeCustomToolCall       Type = "custom_tool_call"
	TypeCustomToolCallOutput Type = "custom_tool_call_output"
	TypeComputerCall         Type = "computer_call"
	TypeComputerCallOutput   Type = "computer_call_output"
	TypeLocalShellCall       Type = "local_shell_call"
	TypeLocalShellCallOutput Type = "local_shell_call_output"
	TypeShellCall            Type = "shell_call"
	TypeShellCallOutput      Type = "shell_call_output"
	TypeApplyPatchCall       Type = "apply_patch_call"
	TypeApplyPatchCallOutput Type = "apply_patch_call_output"
	TypeToolSearchCall       Type = "tool_search_call"
	TypeToolSearchOutput     Type = "tool_search_output"
	TypeFileSearchCall       Type = "file_search_call"
	TypeWebSearchCall        Type = "web_search_call"
	TypeCodeInterpreterCall  Type = "code_interpreter_call"
	TypeImageGenerationCall  Type = "image_generation_call"
	TypeMCPListTools         Type = "mcp_list_tools"
	TypeMCPApprovalRequest   Type = "mcp_approval_request"
	TypeMCPApprovalResponse  Type = "mcp_approval_response"
	TypeMCPCall              Type = "mcp_call"
	TypeProgram              Type = "program"
	TypeProgramOutput        Type = "program_output"
)

// OutputType returns the type of the item that answers a call of type t, "" if this side never answers items of type t. What
// answers an mcp_approval_request decides about a call that the server makes.
func OutputType(t Type) Type {
	switch t {
	case TypeFunctionCall:
		return TypeFunctionCallOutput
	case TypeCustomToolCall:
		return TypeCustomToolCallOutput
	case TypeComputerCall:
		return TypeComputerCallOutput
	case TypeLocalShellCall:
		return TypeLocalShellCallOutput
	case TypeShellCall:
		return TypeShellCallOutput
	case TypeApplyPatchCall:
		return TypeApplyPatchCallOutput
	case TypeToolSearchCall:
		return TypeToolSearchOutput
	case TypeMCPApprovalRequest:
		return TypeMCPApprovalResponse
	}
	return ""
}

// IsCall reports whether items of type t are calls for this side to answer. Of shell_call and tool_search_call only some are:
// [Item.NeedsOutput] knows which.
func IsCall(t Type) bool { return OutputType(t) != "" }

// IsOutput reports whether items of type t answer a call.
func IsOutput(t Type) bool {
	switch t {
	case TypeFunctionCallOutput, TypeCustomToolCallOutput, TypeComputerCallOutput, TypeLocalShellCallOutput, TypeShellCallOutput,
		TypeApplyPatchCallOutput, TypeToolSearchOutput, TypeMCPApprovalResponse:
		return true
	}
	return false
}

// NeedsOutput reports whether the item is a call that this side must answer with an item of its [OutputType]. A shell_call in
// a container and a tool_search_call are run by the server unless they say otherwise ("environment" absent or of type "local",
// "execution" of "client").
func (it Item) NeedsOutput() bool {
	t := it.Type()
	switch t {
	case TypeShellCall:
		environment := textMember(member(it.raw, "environment"), "type")
		return environment == "" || environment == "local"
	case TypeToolSearchCall:
		return textMember(it.raw, "execution") == "client"
	}
	return IsCall(t)
}

// Type returns the item's type: its member "type" or, when that is absent, [TypeMessage] if there is a "role", since the API
// lets input messages leave their type out. It returns "" if neither is there or "type" is no string.
func (it Item) Type() Type {
	var t itemType
	err := jsonscan.Object(it.raw, func(key, value string) error {
		t.read(key, value)
		return nil
	})
	if err != nil {
		return ""
	}
	return t.value()
}

// itemType gathers what an item's type depends on.
type itemType struct {
	raw     string // value of "type", "" when absent
	hasRole bool
}

func (t *itemType) read(key, value string) {
	switch key {
	case "type":
		t.raw = value
	case "role":
		t.hasRole = true
	}
}

func (t *itemType) value() Type {
	if t.raw == "" || jsonscan.IsNull(t.raw) {
		if t.hasRole {
			return TypeMessage
		}
		return ""
	}
	s, err := jsonscan.String(t.raw)
	if err != nil {
		return ""
	}
	return Type(s)
}

// Head is what an item says about itself in the members that most types share. A member that is absent or no string is "".
type Head struct {
	Type Type   // as [Item.Type] returns it
	ID   string // of the item, given by the server
	// CallID pairs a call with its output. For a local_shell_call_output, which has no call_id, it is the id: there the id
	// names the call. An mcp_approval_request is named by its id, too, and its answer has that as approval_request_id.
	CallID    string
	Role      string // of a message
	Name      string // of the tool called
	Namespace string // of the tool called
	Status    string
}

// Head reads the item's head in one pass. Its strings share memory with the item unless they had escapes.
func (it Item) Head() Head {
	var (
		h       Head
		t       itemType
		request string // the approval request that is answered
	)
	err := jsonscan.Object(it.raw, func(key, value string) error {
		t.read(key, value)
		switch key {
		case "id":
			h.ID = textOrEmpty(value)
		case "call_id":
			h.CallID = textOrEmpty(value)
		case "role":
			h.Role = textOrEmpty(value)
		case "name":
			h.Name = textOrEmpty(value)
		case "namespace":
			h.Namespace = textOrEmpty(value)
		case "status":
			h.Status = textOrEmpty(value)
		case "approval_request_id":
			request = textOrEmpty(value)
		}
		return nil
	})
	if err != nil {
		return Head{}
	}
	h.Type = t.value()
	switch {
	case h.Type == TypeMCPApprovalRequest, h.Type == TypeLocalShellCallOutput && h.CallID == "":
		h.CallID = h.ID
	case h.Type == TypeMCPApprovalResponse:
		h.CallID = request
	}
	return h
}
