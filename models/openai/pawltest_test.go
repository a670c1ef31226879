package openai_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/pawl-agents/pawl/pawltest"
)

func modelOf(s *pawltest.ResponsesServer) model.Model {
	return openai.New(openai.Options{BaseURL: s.URL(), HTTPClient: s.Client()}).Responses("gpt-5.2")
}

// A response is the same whether it was streamed or not, and the deltas make up its texts.
func TestStreamEqualsBlocking(t *testing.T) {
	output := []item.Item{
		item.ReasoningItem("rs_1", "The customer wants the money back."),
		item.MessageItem("msg_1", "I will refund ünicode \"quotes\" now."),
		item.FunctionCallItem("fc_1", "call_1", "refund", `{"order":"A-1","cents":1999}`),
	}
	step := pawltest.ResponsesStep{Reply: pawltest.ResponsesReply{ID: "resp_1", Output: output}}
	s := pawltest.NewResponsesServer(t, &pawltest.ResponsesOptions{Steps: []pawltest.ResponsesStep{step, step}})
	m := modelOf(s)
	req := request(item.UserText("Refund order A-1"))
	req.Static.Settings = &model.Settings{Store: ptr(false), PreserveRawUsage: true} // not stored, as both have one id

	blocking, err := m.Call(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[model.EventKind]string{}
	streamed, err := m.Call(t.Context(), req, func(ev *model.Event) bool {
		texts[ev.Kind] += ev.Delta
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(output, blocking.Items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	blocking.RequestID, streamed.RequestID = "", ""
	if diff := cmp.Diff(blocking, streamed); diff != "" {
		t.Errorf("response (-blocking +streamed):\n%s", diff)
	}
	want := map[model.EventKind]string{
		model.EventRaw:            "",
		model.EventReasoningDelta: "The customer wants the money back.",
		model.EventTextDelta:      "I will refund ünicode \"quotes\" now.",
		model.EventArgumentsDelta: `{"order":"A-1","cents":1999}`,
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
}

func TestContinuation(t *testing.T) {
	refund := item.FunctionCallItem("fc_1", "call_1", "refund", `{}`)
	output := item.FunctionOutput("call_1", "done")
	for _, stream := range []bool{false, true} {
		s := pawltest.NewResponsesServer(t, &pawltest.ResponsesOptions{Steps: []pawltest.ResponsesStep{
			{Want: []item.Item{item.UserText("hi")}, Reply: pawltest.ReplyItems(refund)},
			{Want: []item.Item{output}, Reply: pawltest.ReplyText("bye")},
		}})
		m := modelOf(s)
		first, err := call(t.Context(), m, &model.Request{Static: &model.Static{}, Input: model.NewInput(item.UserText("hi"))}, stream)
		if err != nil {
			t.Fatal(err)
		}
		_, err = call(t.Context(), m, &model.Request{Static: &model.Static{}, PreviousResponseID: first.ID}, stream)
		var refused *model.Error
		if !errors.As(err, &refused) || refused.Status != 400 || refused.Delivery != model.DeliveryRefused || refused.Retryable {
			t.Errorf("a call without its output: want a refusal, got %v", err)
		}
		req := &model.Request{Static: &model.Static{}, Input: model.NewInput(output), PreviousResponseID: first.ID}
		if _, err := call(t.Context(), m, req, stream); err != nil {
			t.Error(err)
		}
		s.AssertComplete(t)
	}
}

// What a client sees of each fault, and what the conversation holds after it.
func TestFaults(t *testing.T) {
	busy := &pawltest.ResponsesError{Status: 503, Message: "busy", Type: "server_error"}
	tests := []struct {
		name     string
		fault    pawltest.ResponsesFault
		stream   bool
		delivery model.Delivery
		cause    error
		held     int // items in the conversation
	}{
		{"error before", pawltest.ResponsesFault{Error: busy}, false, model.DeliveryUnknown, nil, 0},
		{"cut before", pawltest.ResponsesFault{Cut: true}, false, model.DeliveryUnknown, nil, 0},
		{"error after", pawltest.ResponsesFault{Point: pawltest.FaultAfter, Error: busy}, false, model.DeliveryUnknown, nil, 2},
		{"cut after", pawltest.ResponsesFault{Point: pawltest.FaultAfter, Cut: true}, false, model.DeliveryUnknown, nil, 2},
		{"cut in the stream", pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Events: 3, Cut: true}, true,
			model.DeliveryUnknown, model.ErrStreamCut, 0},
		{"cut in the stream of a stored response", pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Events: 3, Cut: true, Stored: true}, true,
			model.DeliveryUnknown, model.ErrStreamCut, 2},
		{"error in the stream", pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Events: 2, Error: busy}, true,
			model.DeliveryUnknown, model.ErrFailed, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := pawltest.NewResponsesServer(t, &pawltest.ResponsesOptions{
				Steps: []pawltest.ResponsesStep{{Reply: pawltest.ReplyText("hello"), Fault: &tt.fault}},
			})
			m := modelOf(s)
			conversation := newConversation(t, s)
			req := &model.Request{Static: &model.Static{}, Input: model.NewInput(item.UserText("hi")), ConversationID: conversation}
			_, err := call(t.Context(), m, req, tt.stream)
			var failed *model.Error
			if !errors.As(err, &failed) || failed.Delivery != tt.delivery {
				t.Fatalf("want a *model.Error with delivery %v, got %v", tt.delivery, err)
			}
			if tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("want %v, got %v", tt.cause, err)
			}
			tail, err := m.(model.ConversationReader).ConversationTail(t.Context(), conversation, 10)
			if err != nil {
				t.Fatal(err)
			}
			var roles []string
			for _, it := range tail {
				roles = append(roles, it.Head().Role)
			}
			if diff := cmp.Diff([]string{"user", "assistant"}[:tt.held], roles, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("roles in the conversation (-want +got):\n%s", diff)
			}
		})
	}
}

func newConversation(t *testing.T, s *pawltest.ResponsesServer) string {
	t.Helper()
	res, err := s.Client().Post(s.URL()+"/conversations", "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var created struct{ ID string }
	if err := json.NewDecoder(res.Body).Decode(&created); err != nil {
		t.Fatal(err)
	}
	return created.ID
}
