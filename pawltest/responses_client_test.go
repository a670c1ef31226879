package pawltest_test

import (
	"context"
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
