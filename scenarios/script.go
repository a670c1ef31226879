package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// The scripts write conversations down as lists like
//
//	user pay; call c1 charge; output c1 receipt-5; message done
//
// which the functions here read off the JSON by themselves.

// turn is a step of the model: what the request must carry, and what is answered.
func turn(reads string, answer ...item.Item) pawltest.ResponsesStep {
	return pawltest.ResponsesStep{
		Check: func(r *pawltest.ResponsesRequest) error {
			raw := make([]json.RawMessage, len(r.Input))
			for i, it := range r.Input {
				raw[i] = json.RawMessage(it.Raw())
			}
			if got := shapes(raw); !slices.Equal(got, split(reads)) {
				return fmt.Errorf("the request carries %q, want %q", strings.Join(got, "; "), reads)
			}
			return nil
		},
		Reply: pawltest.ReplyItems(answer...),
	}
}

// payBy is the script of one call of a tool, c1.
func payBy(tool, output string) []pawltest.ResponsesStep {
	return []pawltest.ResponsesStep{
		turn("user pay", call("c1", tool)),
		turn("user pay; call c1 "+tool+"; "+output, says("done")),
	}
}

// call is the model's call of a tool.
func call(callID, tool string) item.Item {
	return item.FunctionCallItem("", callID, tool, `{"amount":5}`)
}

// callWith is the model's call of a tool with arguments as the model wrote them.
func callWith(callID, tool, args string) item.Item {
	return item.FunctionCallItem("", callID, tool, args)
}

// mayCall is the question of the model's server whether it may call a tool of an MCP server.
func mayCall(id, server, tool string) item.Item {
	raw, err := json.Marshal(map[string]string{"type": "mcp_approval_request", "id": id, "server_label": server, "name": tool, "arguments": `{"amount":5}`})
	if err != nil {
		panic(err) // texts can be written as JSON
	}
	return item.FromTrusted(string(raw))
}

// says is the model's message.
func says(text string) item.Item { return item.MessageItem("", text) }

// thinks is the model's reasoning.
func thinks(id string) item.Item { return item.ReasoningItem(id, "") }

// split reads the notation of a list.
func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, "; ")
}

// element is what scenarios want to know of a conversation item.
type element struct {
	Type, ID, Role, Name, Output string
	CallID                       string `json:"call_id"`
	Content                      json.RawMessage
	// of what a hosted MCP server asks, and of the answer
	Server  string `json:"server_label"`
	Request string `json:"approval_request_id"`
	Approve bool
	Reason  string
}

func read(raw json.RawMessage) element {
	var e element
	if err := json.Unmarshal(raw, &e); err != nil {
		return element{Type: "unreadable: " + err.Error()}
	}
	return e
}

// text is the text of a message, given as a string or as parts.
func (e element) text() string {
	var s string
	if json.Unmarshal(e.Content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(e.Content, &parts) // what is neither has no text
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// shapes writes a list of items in the notation.
func shapes(items []json.RawMessage) []string {
	var list []string
	for _, raw := range items {
		e := read(raw)
		switch e.Type {
		case "function_call":
			list = append(list, "call "+e.CallID+" "+e.Name)
		case "function_call_output":
			list = append(list, "output "+e.CallID+" "+e.Output)
		case "reasoning":
			list = append(list, "reasoning "+e.ID)
		case "message", "":
			who := e.Role
			if who == "assistant" {
				who = "message"
			}
			list = append(list, who+" "+e.text())
		case "mcp_approval_request":
			list = append(list, fmt.Sprintf("may %s %s/%s", e.ID, e.Server, e.Name))
		case "mcp_approval_response":
			verdict := map[bool]string{true: "yes ", false: "no "}[e.Approve]
			list = append(list, strings.TrimSpace(verdict+e.Request+" "+e.Reason))
		default:
			list = append(list, e.Type)
		}
	}
	return list
}
