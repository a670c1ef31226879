package openai_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

// conversationServer serves a conversation of n items in pages of at most 100, newest first.
func conversationServer(t *testing.T, n int) *fakeServer {
	return newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		limit, newest := 0, n
		if _, err := fmt.Sscan(q.Get("limit"), &limit); err != nil || limit < 1 || limit > 100 || q.Get("order") != "desc" {
			answer(400, nil, `{"error":{"message":"bad page"}}`)(w, r)
			return
		}
		if after := q.Get("after"); after != "" {
			_, _ = fmt.Sscanf(after, "msg_%d", &newest)
			newest--
		}
		var data []string
		last := ""
		for i := newest; i > 0 && len(data) < limit; i-- {
			last = fmt.Sprintf("msg_%d", i)
			data = append(data, `{"id":"`+last+`","type":"message"}`)
		}
		more := len(data) > 0 && newest-len(data) > 0
		answer(200, nil, fmt.Sprintf(`{"object":"list","data":[%s],"first_id":null,"last_id":%q,"has_more":%v}`,
			strings.Join(data, ","), last, more))(w, r)
	})
}

func TestConversationTail(t *testing.T) {
	tests := []struct {
		size, limit, want, requests int
	}{
		{size: 0, limit: 5, want: 0, requests: 1},
		{size: 3, limit: 5, want: 3, requests: 1},
		{size: 9, limit: 5, want: 5, requests: 1},
		{size: 300, limit: 250, want: 250, requests: 3},
		{size: 100, limit: 200, want: 100, requests: 1},
		{size: 3, limit: 0, want: 0, requests: 0},
		{size: 3, limit: -1, want: 0, requests: 0},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d of %d", tt.limit, tt.size), func(t *testing.T) {
			s := conversationServer(t, tt.size)
			got, err := s.model().(model.ConversationReader).ConversationTail(t.Context(), "conv_1", tt.limit)
			if err != nil {
				t.Fatal(err)
			}
			var want []item.Item
			for i := tt.size - tt.want + 1; i <= tt.size; i++ {
				want = append(want, item.FromTrusted(fmt.Sprintf(`{"id":"msg_%d","type":"message"}`, i)))
			}
			if !slices.Equal(want, got) {
				t.Errorf("items (-want +got):\n%s", cmp.Diff(want, got))
			}
			if n := s.count(); n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
		})
	}
}

func TestConversationTailRequest(t *testing.T) {
	s := newFakeServer(t, answer(200, nil, `{"data":[],"has_more":false}`))
	if _, err := s.model().(model.ConversationReader).ConversationTail(t.Context(), "a/../b?c", 7); err != nil {
		t.Fatal(err)
	}
	r, body := s.last(t)
	if r.Method != http.MethodGet || r.RequestURI != "/v1/conversations/a%2F..%2Fb%3Fc/items?order=desc&limit=7" || body != "" {
		t.Errorf("request is %s %s %q", r.Method, r.RequestURI, body)
	}
	if r.Header.Get("Authorization") != "Bearer sk-test" {
		t.Errorf("Authorization is %q", r.Header.Get("Authorization"))
	}
}

func TestConversationTailErrors(t *testing.T) {
	tests := []struct {
		name, id string
		status   int
		body     string
		want     error // in the *model.Error, nil for any
		delivery model.Delivery
	}{
		{"no id", "", 200, `{}`, nil, model.DeliveryRefused},
		{"id that is a path", "..", 200, `{}`, nil, model.DeliveryRefused},
		{"unknown", "conv_9", 404, `{"error":{"message":"not found"}}`, nil, model.DeliveryRefused},
		{"no JSON", "conv_1", 200, `<html>`, model.ErrMalformed, model.DeliveryUnknown},
		{"item that is none", "conv_1", 200, `{"data":[1]}`, model.ErrMalformed, model.DeliveryUnknown},
		{"page without end", "conv_1", 200, `{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}`, model.ErrMalformed, model.DeliveryUnknown},
		{"page without last id", "conv_1", 200, `{"data":[{"id":"a"}],"has_more":true}`, model.ErrMalformed, model.DeliveryUnknown},
		{"empty page with more", "conv_1", 200, `{"data":[],"has_more":true,"last_id":"a"}`, model.ErrMalformed, model.DeliveryUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeServer(t, answer(tt.status, nil, tt.body))
			got, err := s.model().(model.ConversationReader).ConversationTail(t.Context(), tt.id, 5)
			var failed *model.Error
			if got != nil || !errors.As(err, &failed) || failed.Delivery != tt.delivery {
				t.Fatalf("want a *model.Error with delivery %v, got %v, %v", tt.delivery, got, err)
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("want %v, got %v", tt.want, err)
			}
		})
	}
}
