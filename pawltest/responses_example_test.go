package pawltest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// post sends a request as any client would and returns the status and the body.
func post(url, body string) (int, string) {
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(raw)
}

// A script answers in order and says what each request must carry. In a test NewResponsesServer does the same and closes
// the server with the test.
func ExampleStartResponses() {
	server, err := pawltest.StartResponses(&pawltest.ResponsesOptions{Steps: []pawltest.ResponsesStep{
		{
			Want:  []item.Item{item.UserText("What is the weather?")},
			Reply: pawltest.ReplyItems(item.FunctionCallItem("", "call_1", "weather", `{}`)),
		},
		{
			Want:  []item.Item{item.FunctionOutput("call_1", "sunny")},
			Reply: pawltest.ReplyText("It is sunny."),
		},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	url := server.URL() + "/responses"
	post(url, `{"model":"any","input":"What is the weather?"}`)

	// The server refuses what the service refuses: here a call without its output.
	status, body := post(url, `{"model":"any","previous_response_id":"resp_1","input":"Hello?"}`)
	fmt.Println(status, body)

	status, _ = post(url, `{"model":"any","previous_response_id":"resp_1",
		"input":[{"type":"function_call_output","call_id":"call_1","output":"sunny"}]}`)
	fmt.Println(status, "outputs sent:", server.OutputsSent("call_1"))
	// Output:
	// 400 {"error":{"message":"No tool output found for function call call_1.","type":"invalid_request_error","param":"input","code":null}}
	// 200 outputs sent: 1
}

// A Responder answers from the request alone, so a server that starts again on its directory goes on where it was.
func ExampleResponder() {
	var echo pawltest.Responder = func(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
		return pawltest.ReplyText(fmt.Sprintf("I know %d items.", len(r.History())))
	}
	server, err := pawltest.StartResponses(&pawltest.ResponsesOptions{Respond: echo})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	post(server.URL()+"/conversations", `{}`)
	for range 2 {
		post(server.URL()+"/responses", `{"model":"any","conversation":"conv_1","input":"Hello"}`)
	}
	_, body := post(server.URL()+"/responses", `{"model":"any","conversation":"conv_1","input":"Hello"}`)
	fmt.Println(strings.Contains(body, "I know 5 items."))
	// Output: true
}

// The second request is processed and stored, but its acknowledgement is lost.
func ExampleFaultsAt() {
	server, err := pawltest.StartResponses(&pawltest.ResponsesOptions{
		Respond: func(*pawltest.ResponsesRequest) pawltest.ResponsesReply { return pawltest.ReplyText("ok") },
		Fault: pawltest.FaultsAt(map[int]*pawltest.ResponsesFault{
			2: {Point: pawltest.FaultAfter, Error: pawltest.ServerError()},
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	for range 2 {
		status, _ := post(server.URL()+"/responses", `{"model":"any","input":"Hello"}`)
		fmt.Println(status)
	}
	for _, r := range server.Requests() {
		fmt.Printf("%s stored=%v\n", r.ResponseID, r.Stored)
	}
	// Output:
	// 200
	// 500
	// resp_1 stored=true
	// resp_2 stored=true
}

// In a stream a fault may strike after any event.
func ExampleResponsesFault() {
	server, err := pawltest.StartResponses(&pawltest.ResponsesOptions{
		Steps: []pawltest.ResponsesStep{{
			Reply: pawltest.ReplyText("This will not be read to its end."),
			Fault: &pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Events: 5, Cut: true},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	resp, err := http.Post(server.URL()+"/responses", "application/json",
		strings.NewReader(`{"model":"any","input":"Hello","stream":true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	stream, err := io.ReadAll(resp.Body)
	fmt.Println(err)
	for line := range bytes.Lines(stream) {
		if kind, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			fmt.Print(string(kind))
		}
	}
	// Output:
	// unexpected EOF
	// response.created
	// response.in_progress
	// response.output_item.added
	// response.content_part.added
	// response.output_text.delta
}
