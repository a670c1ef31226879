package pawltest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-agents/pawl/pawltest"
)

func TestRequests(t *testing.T) {
	a := newAPI(t, &pawltest.ResponsesOptions{Respond: byWord})
	a.create(`"input":"calls","instructions":"be brief"`)
	body := `{"model": "gpt-test", "previous_response_id":"resp_1", "stream":true, "store":false,
		"input":[{"type":"function_call_output","call_id":"call_1","output":"x"}]}`
	a.send(http.MethodPost, "/responses", body)
	a.send(http.MethodPost, "/responses", body[:len(body)-1])

	reqs := a.s.Requests()
	if len(reqs) != 3 {
		t.Fatalf("%d requests, want 3", len(reqs))
	}
	first, second, third := reqs[0], reqs[1], reqs[2]
	if first.Number != 1 || first.Model != "gpt-test" || first.Instructions != "be brief" || first.Stream ||
		!first.Store || !first.Accepted || !first.Stored || first.Status != 200 || first.ResponseID != "resp_1" {
		t.Errorf("first = %+v", first)
	}
	if second.Number != 2 || string(second.Body) != body || !second.Stream || second.Store || !second.Accepted ||
		second.Stored || second.PreviousResponseID != "resp_1" || second.ResponseID != "resp_2" ||
		second.Input[0].Raw() != `{"type":"function_call_output","call_id":"call_1","output":"x"}` {
		t.Errorf("second = %+v", second)
	}
	if got := string(second.Param("store")); got != "false" || second.Param("tools") != nil {
		t.Errorf("store = %s, tools = %s", got, second.Param("tools"))
	}
	if third.Accepted || third.Status != 400 || string(third.Body) != body[:len(body)-1] {
		t.Errorf("third = %+v", third)
	}
	if got := a.s.OutputsSent("call_1"); got != 1 {
		t.Errorf("outputs sent = %d, want 1 (a refused body doesn't count)", got)
	}
}

func TestRetain(t *testing.T) {
	opts := talker("ok")
	opts.Retain = 2
	a := newAPI(t, opts)
	a.create(`"input":"x"`)
	for n := range 4 {
		a.create(fmt.Sprintf(`"input":"x","previous_response_id":"resp_%d"`, n+1))
	}
	reqs := a.s.Requests()
	for i, r := range reqs {
		if kept := r.Body != nil; kept != (i >= 3) || r.Number != i+1 || r.Status != 200 {
			t.Errorf("request %d: body kept %v, number %d, status %d", i+1, kept, r.Number, r.Status)
		}
	}
	if got := len(reqs[4].History()); got != 9 {
		t.Errorf("the latest request continues %d items, want 9: a chain stays whole", got)
	}
	a.want(404, http.MethodGet, "/responses/resp_3", "")
	a.want(200, http.MethodGet, "/responses/resp_4", "")
}

// TestManyClients is for the race detector: chains, conversations and readers at once.
func TestManyClients(t *testing.T) {
	a := newAPI(t, &pawltest.ResponsesOptions{Respond: func(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
		return pawltest.ReplyText(fmt.Sprint(len(r.History())))
	}})
	a.want(200, http.MethodPost, "/conversations", "")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			pointer := ""
			for turn := range 5 {
				got := a.send(http.MethodPost, "/responses", `{"model":"m","input":"x"`+pointer+`}`)
				_, id, _ := strings.Cut(got.body, `{"id":"`)
				id, _, _ = strings.Cut(id, `"`)
				pointer = `,"previous_response_id":"` + id + `"`
				if want := fmt.Sprintf(`"text":"%d"`, 2*turn+1); !strings.Contains(got.body, want) {
					t.Errorf("turn %d: %s, want %s", turn, got.body, want)
				}
				a.send(http.MethodPost, "/responses", `{"model":"m","input":"x","conversation":"conv_1"}`)
				a.s.Requests()
			}
		})
	}
	wg.Wait()
	accepted := 0
	for _, r := range a.s.Requests() {
		if r.Accepted && r.Conversation != "" {
			accepted++
		}
	}
	list := a.want(200, http.MethodGet, "/conversations/conv_1/items?limit=100", "")
	if got := strings.Count(list, `"role"`); got != 2*accepted || accepted == 0 {
		t.Errorf("the conversation has %d items after %d responses", got, accepted)
	}
}
