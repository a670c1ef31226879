package item

import (
	"errors"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// A HostedCall is the view of a call that the server made and answered itself: this side only carries it along.
type HostedCall struct {
	Type   Type
	ID     string
	Status string
}

// HostedCall returns the view of a call of a hosted tool: file search, web search, code interpreter, image generation, MCP, a
// program, and those shell and tool search calls that the server runs ([Item.NeedsOutput] is false). The error wraps
// [ErrWrongType] or [ErrMalformed].
func (it Item) HostedCall() (HostedCall, error) {
	var c HostedCall
	t, err := it.read(func(key, value string) (err error) {
		switch key {
		case "id":
			c.ID, err = text(value)
		case "status":
			c.Status, err = text(value)
		}
		return err
	})
	if !errors.Is(err, ErrInvalid) && !it.isHosted(t) {
		err = wrongType(t, "a hosted call")
	}
	if err != nil {
		return HostedCall{}, err
	}
	c.Type = t
	return c, nil
}

func (it Item) isHosted(t Type) bool {
	switch t {
	case TypeFileSearchCall, TypeWebSearchCall, TypeCodeInterpreterCall, TypeImageGenerationCall, TypeMCPCall, TypeProgram:
		return true
	case TypeShellCall, TypeToolSearchCall:
		return !it.NeedsOutput()
	}
	return false
}

// An ApprovalRequest is the view of an item of [TypeMCPApprovalRequest]: the server asks before it calls a tool of a hosted MCP
// server. Its ID is what an answer names.
type ApprovalRequest struct {
	ID          string
	ServerLabel string
	Name        string // of the tool
	Arguments   string // as the model wrote them
}

// ApprovalRequest returns the view of an approval request. The error wraps [ErrWrongType] or [ErrMalformed].
func (it Item) ApprovalRequest() (ApprovalRequest, error) {
	var r ApprovalRequest
	err := it.view(TypeMCPApprovalRequest, func(key, value string) (err error) {
		switch key {
		case "id":
			r.ID, err = text(value)
		case "server_label":
			r.ServerLabel, err = text(value)
		case "name":
			r.Name, err = text(value)
		case "arguments":
			r.Arguments, err = text(value)
		}
		return err
	})
	if err != nil {
		return ApprovalRequest{}, err
	}
	return r, nil
}

// An ApprovalResponse is the view of an item of [TypeMCPApprovalResponse].
type ApprovalResponse struct {
	ID        string // of the item, given by the server
	RequestID string // of the request it answers
	Approve   bool
	Reason    string
}

// ApprovalResponse returns the view of the answer to an approval request. The error wraps [ErrWrongType] or [ErrMalformed].
func (it Item) ApprovalResponse() (ApprovalResponse, error) {
	var r ApprovalResponse
	err := it.view(TypeMCPApprovalResponse, func(key, value string) (err error) {
		switch key {
		case "id":
			r.ID, err = text(value)
		case "approval_request_id":
			r.RequestID, err = text(value)
		case "approve":
			r.Approve, err = jsonscan.Bool(value)
		case "reason":
			r.Reason, err = text(value)
		}
		return err
	})
	if err != nil {
		return ApprovalResponse{}, err
	}
	return r, nil
}
