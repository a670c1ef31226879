package item_test

import (
	"fmt"

	"github.com/pawl-agents/pawl/item"
)

// An item survives to the byte, whether its type is known or not.
func ExampleParse() {
	it, err := item.Parse([]byte(` {"type":"hologram_call","id":"h_1","depth":1.50}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(it.Type(), it.Head().ID)
	fmt.Println(it.Raw())
	// Output:
	// hologram_call h_1
	// {"type":"hologram_call","id":"h_1","depth":1.50}
}

// Answer each call of a response that is for this side to answer.
func ExampleItem_FunctionCall() {
	response := []item.Item{
		item.ReasoningItem("rs_1", "I need the weather."),
		item.FunctionCallItem("fc_1", "call_1", "weather", `{"city":"Bern"}`),
	}
	for _, it := range response {
		if it.Type() != item.TypeFunctionCall {
			continue
		}
		call, err := it.FunctionCall()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(call.Name, call.Arguments)
		fmt.Println(call.Output("sunny"))
	}
	// Output:
	// weather {"city":"Bern"}
	// {"type":"function_call_output","call_id":"call_1","output":"sunny"}
}

// A message with an image.
func ExampleUserMessage() {
	it := item.UserMessage(
		item.InputText("What is on the receipt?"),
		item.InputImage(item.Image{FileID: "file-7", Detail: "high"}),
	)
	m, err := it.Message()
	if err != nil {
		fmt.Println(err)
		return
	}
	img, _ := m.Content[1].Image()
	fmt.Println(m.Text(), img.FileID)
	// Output:
	// What is on the receipt? file-7
}

func ExampleItem_Message() {
	m, err := item.MessageItem("msg_1", "Refunded.").Message()
	fmt.Println(m.Role, m.Text(), err)
	// Output:
	// assistant Refunded. <nil>
}

// The same arguments, whatever way the model writes them, are the same bytes and the same digest; another number is not.
func ExampleDigestArguments() {
	for _, args := range []string{`{"order": 9, "cents": 8000}`, `{"cents":8000,"\u006frder":9}`, `{"cents":8000,"order":9.0}`} {
		d, canonical, err := item.DigestArguments(args)
		fmt.Println(d, canonical, err)
	}
	// Output:
	// bQA0KMz5MtqydXUBZPpLv5yYR3jR128IqBP95mB1csg {"cents":8000,"order":9} <nil>
	// bQA0KMz5MtqydXUBZPpLv5yYR3jR128IqBP95mB1csg {"cents":8000,"order":9} <nil>
	// syi9MztrcQnOM3kw3gyREODzc2xSjR_GAF4pDeAfMeM {"cents":8000,"order":9.0} <nil>
}

// Arguments that two readers could understand differently have no canonical form.
func ExampleCanonical() {
	_, err := item.Canonical(`{"cents":1, "cents":8000}`)
	fmt.Println(err)
	// Output:
	// pawl: unreadable arguments: invalid JSON at offset 12: duplicate key
}

func ExampleApprovalReply() {
	fmt.Println(item.ApprovalReply("mcpr_1", false, "not this customer"))
	// Output:
	// {"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false,"reason":"not this customer"}
}
