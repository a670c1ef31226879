package pawltest_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

func officialClient(s *pawltest.ResponsesServer) openai.Client {
	return openai.NewClient(option.WithBaseURL(s.URL()), option.WithAPIKey("test"), option.WithMaxRetries(0))
}

func userInput(text string) responses.ResponseNewParamsInputUnion {
	return responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}
}

func TestOfficialClientReadsBlockingResponse(t *testing.T) {
	s := pawltest.NewResponsesServer(t, &pawltest.ResponsesOptions{Steps: []pawltest.ResponsesStep{{
		Want: []item.Item{item.UserText("hello")},
		Reply: pawltest.ReplyItems(
			item.ReasoningItem("", "a greeting"),
			item.FunctionCallItem("", "call_a", "greet", `{"name":"Ada"}`),
			item.MessageItem("", "hi"),
		),
	}}})
	client := officialClient(s)
	resp, err := client.Responses.New(context.Background(), responses.ResponseNewParams{
		Model: "gpt-test", Input: userInput("hello"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if resp.ID != "resp_1" || resp.Status != "completed" || resp.OutputText() != "hi" || len(resp.Output) != 3 {
		t.Errorf("response = %s", resp.RawJSON())
	}
	call := resp.Output[1].AsFunctionCall()
	if call.ID != "fc_1" || call.CallID != "call_a" || call.Arguments != `{"name":"Ada"}` {
		t.Errorf("call = %s", call.RawJSON())
	}
	if got := resp.Output[0].AsReasoning().Summary[0].Text; got != "a greeting" {
		t.Errorf("reasoning summary = %q", got)
	}
	s.AssertComplete(t)
}

func TestOfficialClientReadsStream(t *testing.T) {
	s := pawltest.NewResponsesServer(t, &pawltest.ResponsesOptions{DeltaSize: 3, Steps: []pawltest.ResponsesStep{{
		Reply: pawltest.ReplyItems(item.ReasoningItem("", "a greeting"), item.MessageItem("", "hello, wörld")),
	}}})
	client := officialClient(s)
	stream := client.Responses.NewStreaming(context.Background(), responses.ResponseNewParams{
		Model: "gpt-test", Input: userInput("hello"),
	})
	var text, thought string
	var final responses.Response
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += e.Delta
		case responses.ResponseReasoningSummaryTextDeltaEvent:
			thought += e.Delta
		case responses.ResponseCompletedEvent:
			final = e.Response
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if text != "hello, wörld" || thought != "a greeting" || final.OutputText() != "hello, wörld" {
		t.Errorf("text %q, thought %q, final %q", text, thought, final.OutputText())
	}
}

func TestOfficialClientUsesConversations(t *testing.T) {
	s := pawltest.NewResponsesServer(t, &pawltest.ResponsesOptions{Respond: func(*pawltest.ResponsesRequest) pawltest.ResponsesReply { return pawltest.ReplyText("yes") }})
	client := officialClient(s)
	ctx := context.Background()
	conv, err := client.Conversations.New(ctx, conversations.ConversationNewParams{})
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		_, err := client.Responses.New(ctx, responses.ResponseNewParams{
			Model: "gpt-test", Input: userInput("again?"),
			Conversation: responses.ResponseNewParamsConversationUnion{OfString: openai.String(conv.ID)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	pages := client.Conversations.Items.ListAutoPaging(ctx, conv.ID, conversations.ItemListParams{Order: "asc"})
	for pages.Next() {
		ids = append(ids, pages.Current().ID)
	}
	if err := pages.Err(); err != nil {
		t.Fatal(err)
	}
	if len(ids) != 24 || ids[0] != "msg_1" || ids[23] != "msg_24" {
		t.Errorf("items = %v", ids)
	}
}

func TestOfficialClientReadsRefusals(t *testing.T) {
	s := pawltest.NewResponsesServer(t, nil)
	client := officialClient(s)
	_, err := client.Responses.New(context.Background(), responses.ResponseNewParams{
		Model: "gpt-test", Input: userInput("hello"), PreviousResponseID: openai.String("resp_404"),
	})
	var refused *openai.Error
	if !errors.As(err, &refused) {
		t.Fatalf("error = %v, want an *openai.Error", err)
	}
	if refused.StatusCode != 400 || refused.Code != "previous_response_not_found" || refused.Param != "previous_response_id" ||
		refused.Type != "invalid_request_error" || refused.Message != "Previous response with id 'resp_404' not found." {
		t.Errorf("error = %+v", refused)
	}
}

func TestOfficialClientReadsEndsOfStreams(t *testing.T) {
	rows := []struct {
		name string
		step pawltest.ResponsesStep
		want string // type of the last event
		err  error
	}{
		{name: "incomplete", step: pawltest.ResponsesStep{Reply: pawltest.ResponsesReply{Status: "incomplete"}},
			want: "response.incomplete"},
		{name: "failed", step: pawltest.ResponsesStep{Reply: pawltest.ResponsesReply{Status: "failed"}},
			want: "response.failed"},
		{name: "error event", step: pawltest.ResponsesStep{Fault: &pawltest.ResponsesFault{
			Point: pawltest.FaultMidStream, Events: 2, Error: pawltest.ServerError()}}, want: "error"},
		{name: "cut", step: pawltest.ResponsesStep{Fault: &pawltest.ResponsesFault{
			Point: pawltest.FaultMidStream, Events: 2, Cut: true}}, want: "response.in_progress", err: io.ErrUnexpectedEOF},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := pawltest.NewResponsesServer(t, &pawltest.ResponsesOptions{Steps: []pawltest.ResponsesStep{r.step}})
			client := officialClient(s)
			stream := client.Responses.NewStreaming(context.Background(), responses.ResponseNewParams{
				Model: "gpt-test", Input: userInput("hello"),
			})
			var last string
			for stream.Next() {
				last = stream.Current().Type
			}
			if last != r.want || !errors.Is(stream.Err(), r.err) {
				t.Errorf("the stream ends with %q and error %v, want %q and %v", last, stream.Err(), r.want, r.err)
			}
		})
	}
}
