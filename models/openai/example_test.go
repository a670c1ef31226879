package openai_test

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/pawl-agents/pawl/pawltest"
)

// One call of a model, here of a test server that speaks the API. A run makes such calls itself.
func Example() {
	server, err := pawltest.StartResponses(&pawltest.ResponsesOptions{
		Respond: func(*pawltest.ResponsesRequest) pawltest.ResponsesReply { return pawltest.ReplyText("Paid back.") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	client := openai.New(openai.Options{APIKey: "sk-test", BaseURL: server.URL()})
	m := client.Responses("gpt-5.2")
	request := &model.Request{
		Static: &model.Static{Instructions: "Settle refunds."},
		Input:  model.NewInput(item.UserText("Refund order 9.")),
	}
	response, err := m.Call(context.Background(), request, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	message, _ := response.Items[0].Message()
	fmt.Println(message.Text())
	// Output: Paid back.
}

// The same as a stream: events are shown as they arrive, the response is still the result.
func Example_stream() {
	server, err := pawltest.StartResponses(&pawltest.ResponsesOptions{
		Respond: func(*pawltest.ResponsesRequest) pawltest.ResponsesReply { return pawltest.ReplyText("Paid back.") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	m := openai.New(openai.Options{BaseURL: server.URL()}).Responses("gpt-5.2")
	request := &model.Request{Static: &model.Static{}, Input: model.NewInput(item.UserText("Refund order 9."))}
	response, err := m.Call(context.Background(), request, func(event *model.Event) bool {
		if event.Kind == model.EventTextDelta {
			fmt.Print(event.Delta)
		}
		return true // false would abandon the call
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("\n%d item\n", len(response.Items))
	// Output:
	// Paid back.
	// 1 item
}

func ExampleFromEnv() {
	opts := openai.FromEnv() // OPENAI_API_KEY and its like
	opts.Headers = map[string]string{"X-Team": "support"}
	m := openai.New(opts).Responses("gpt-5.2")
	fmt.Println(m.Info().Provider, m.Info().Name)
	// Output: openai gpt-5.2
}
