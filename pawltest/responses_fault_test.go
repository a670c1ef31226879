package pawltest_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-agents/pawl/pawltest"
)

const blocking = `{"model":"gpt-test","input":"hello"}`

// overloaded is what a service in trouble says.
func overloaded() *pawltest.ResponsesError {
	return &pawltest.ResponsesError{Status: 503, Message: "overloaded", Code: "overloaded"}
}

const overloadedBody = `{"error":{"message":"overloaded","type":"server_error","param":null,"code":"overloaded"}}`

func TestFaults(t *testing.T) {
	rows := []struct {
		name   string
		fault  pawltest.ResponsesFault
		stream bool
		status int      // 0: the connection ends without a status
		ends   bool     // the answer ends as it should
		body   string   // of an answer that is an error
		events []string // of a stream
		stored bool
	}{
		{name: "error before", fault: pawltest.ResponsesFault{Error: overloaded()}, status: 503, ends: true, body: overloadedBody},
		{name: "cut before", fault: pawltest.ResponsesFault{Cut: true}},
		{name: "error after", fault: pawltest.ResponsesFault{Point: pawltest.FaultAfter, Error: overloaded()},
			status: 503, ends: true, body: overloadedBody, stored: true},
		{name: "cut after", fault: pawltest.ResponsesFault{Point: pawltest.FaultAfter, Cut: true}, stored: true},
		{name: "cut in the body", fault: pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Cut: true}, status: 200},
		{name: "cut in the body, stored", fault: pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Cut: true, Stored: true},
			status: 200, stored: true},
		{name: "error in the body", fault: pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Error: overloaded()},
			status: 200},
		{name: "nothing but a look", fault: pawltest.ResponsesFault{}, status: 200, ends: true, stored: true},
		{name: "stream: error before", stream: true, fault: pawltest.ResponsesFault{Error: overloaded()},
			status: 503, ends: true, body: overloadedBody},
		{name: "stream: cut after", stream: true, fault: pawltest.ResponsesFault{Point: pawltest.FaultAfter, Cut: true}, stored: true},
		{name: "stream: cut before the first event", stream: true,
			fault: pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Cut: true}},
		{name: "stream: cut after three events", stream: true,
			fault:  pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Events: 3, Cut: true},
			status: 200, events: []string{"response.created", "response.in_progress", "response.output_item.added"}},
		{name: "stream: cut after three events, stored", stream: true,
			fault:  pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Events: 3, Cut: true, Stored: true},
			status: 200, events: []string{"response.created", "response.in_progress", "response.output_item.added"}, stored: true},
		{name: "stream: all but the terminal event", stream: true,
			fault:  pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Events: 8, Cut: true},
			status: 200, events: []string{"response.created", "response.in_progress", "response.output_item.added",
				"response.content_part.added", "response.output_text.delta", "response.output_text.done",
				"response.content_part.done", "response.output_item.done"}},
		{name: "stream: error event", stream: true,
			fault:  pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Events: 2, Error: overloaded()},
			status: 200, ends: true, events: []string{"response.created", "response.in_progress", "error"}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			opts := talker("ok")
			opts.Fault = pawltest.FaultsAt(map[int]*pawltest.ResponsesFault{2: &r.fault})
			a := newAPI(t, opts)
			a.create(`"input":"first"`)
			body := blocking
			if r.stream {
				body = streamed
			}
			got, err := a.try(http.MethodPost, "/responses", body)
			if got.status != r.status || (err == nil) != r.ends {
				t.Errorf("status %d, error %v; want %d, an answer that ends: %v", got.status, err, r.status, r.ends)
			}
			if r.body != "" && got.body != r.body {
				t.Errorf("body = %s, want %s", got.body, r.body)
			}
			if diff := cmp.Diff(r.events, kinds(got.body)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			stored := a.send(http.MethodGet, "/responses/resp_2", "").status == http.StatusOK
			if req := a.s.Requests()[1]; stored != r.stored || req.Stored != r.stored || req.Status != r.status {
				t.Errorf("stored %v, recorded as stored %v with status %d; want %v, %d",
					stored, req.Stored, req.Status, r.stored, r.status)
			}
			a.create(`"input":"next"`)
		})
	}
}

// TestStepFaultBefore: the step is spent, but the request was never accepted and left nothing behind.
func TestStepFaultBefore(t *testing.T) {
	opts := script(pawltest.ReplyItems(call("", "{}")), pawltest.ReplyText("lost"), pawltest.ReplyText("done"))
	opts.Steps[1].Fault = &pawltest.ResponsesFault{Cut: true}
	a := newAPI(t, opts)
	a.create(`"input":"x"`)
	answer := `{"model":"m","previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"call_1","output":"y"}]}`
	if _, err := a.try(http.MethodPost, "/responses", answer); err == nil {
		t.Fatal("the connection was not cut")
	}
	if got := a.want(200, http.MethodPost, "/responses", answer); !strings.HasPrefix(got, `{"id":"resp_2",`) {
		t.Errorf("the second attempt made %.30s, want resp_2", got)
	}
	if n := a.s.OutputsSent("call_1"); n != 1 || a.s.Requests()[1].Accepted {
		t.Errorf("outputs sent = %d, want 1; the cut request accepted: %v", n, a.s.Requests()[1].Accepted)
	}
	a.s.AssertComplete(t)
}

// TestStreamFreesConversation: who has seen the end of a stream can send the next request at once.
func TestStreamFreesConversation(t *testing.T) {
	a := newAPI(t, talker("ok"))
	a.want(200, http.MethodPost, "/conversations", "")
	for range 50 {
		resp, err := a.s.Client().Post(a.s.URL()+"/responses", "application/json",
			strings.NewReader(`{"model":"m","input":"x","conversation":"conv_1","stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		events := bufio.NewScanner(resp.Body)
		for events.Scan() && events.Text() != "event: response.completed" {
		}
		a.create(`"input":"y","conversation":"conv_1"`)
		resp.Body.Close()
	}
}

func TestErrorEvent(t *testing.T) {
	opts := talker("ok")
	opts.Fault = pawltest.FaultsAt(map[int]*pawltest.ResponsesFault{1: {Point: pawltest.FaultMidStream, Events: 2, Error: overloaded()}})
	got := newAPI(t, opts).send(http.MethodPost, "/responses", streamed).body
	want := "event: error\ndata: " +
		`{"type":"error","sequence_number":2,"code":"overloaded","message":"overloaded","param":null}` + "\n\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("stream ends %q, want %q", got[max(0, len(got)-len(want)):], want)
	}
}

func TestLostAcknowledgementOnAConversation(t *testing.T) {
	opts := script(pawltest.ReplyItems(call("", "{}")), pawltest.ReplyText("done"))
	opts.Steps[1].Fault = &pawltest.ResponsesFault{Point: pawltest.FaultAfter, Cut: true}
	a := newAPI(t, opts)
	a.want(200, http.MethodPost, "/conversations", "")
	a.create(`"input":"x","conversation":"conv_1"`)
	answer := `{"model":"m","conversation":"conv_1","input":[{"type":"function_call_output","call_id":"call_1","output":"y"}]}`
	if _, err := a.try(http.MethodPost, "/responses", answer); err == nil {
		t.Fatal("the connection was not cut")
	}
	items := a.want(200, http.MethodGet, "/conversations/conv_1/items?limit=2", "")
	if !strings.Contains(items, `"text":"done"`) || !strings.Contains(items, `"call_id":"call_1","output":"y"`) {
		t.Errorf("the tail is %s, want the output and the answer", items)
	}
	a.want(400, http.MethodPost, "/responses", answer) // sending again would be a second output
	if n := a.s.OutputsSent("call_1"); n != 1 {
		t.Errorf("outputs sent = %d, want 1", n)
	}
	a.s.AssertComplete(t)
}

func TestFaultsOfConversationRequests(t *testing.T) {
	opts := &pawltest.ResponsesOptions{Fault: func(r *pawltest.ResponsesRequest) *pawltest.ResponsesFault {
		if r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/items") {
			return &pawltest.ResponsesFault{Point: pawltest.FaultAfter, Error: overloaded()}
		}
		return nil
	}}
	a := newAPI(t, opts)
	a.want(200, http.MethodPost, "/conversations", "")
	a.want(503, http.MethodPost, "/conversations/conv_1/items", `{"items":[`+user+`]}`)
	if items := a.want(200, http.MethodGet, "/conversations/conv_1/items", ""); !strings.Contains(items, `"go on"`) {
		t.Errorf("items = %s, want the one whose acknowledgement was lost", items)
	}
}

func TestFaultHeadersAndBodies(t *testing.T) {
	opts := talker("ok")
	opts.Fault = pawltest.FaultsAt(map[int]*pawltest.ResponsesFault{
		1: {Error: pawltest.RateLimited(1500 * time.Millisecond)},
		2: {Error: &pawltest.ResponsesError{Status: 502, Body: "<html>bad gateway</html>"}},
		3: {Error: pawltest.ServerError()},
	})
	a := newAPI(t, opts)
	got := a.send(http.MethodPost, "/responses", blocking)
	if got.status != 429 || got.header.Get("Retry-After") != "2" || got.header.Get("X-Request-Id") != "req_1" {
		t.Errorf("rate limited: %d, Retry-After %q, X-Request-Id %q", got.status, got.header.Get("Retry-After"),
			got.header.Get("X-Request-Id"))
	}
	if got := a.want(502, http.MethodPost, "/responses", blocking); got != "<html>bad gateway</html>" {
		t.Errorf("raw body = %s", got)
	}
	if got := a.want(500, http.MethodPost, "/responses", blocking); !strings.Contains(got, `"type":"server_error"`) {
		t.Errorf("server error = %s", got)
	}
}

func TestEditAndRefuse(t *testing.T) {
	refused := pawltest.ResponsesReply{Refuse: &pawltest.ResponsesError{Status: 400, Message: "too long", Code: "context_length_exceeded"}}
	opts := script(pawltest.ReplyText("ok"), refused)
	opts.Steps[0].Fault = &pawltest.ResponsesFault{Edit: func(r *pawltest.ResponsesReply) { r.NoID = true }}
	a := newAPI(t, opts)
	if got := a.create(`"input":"x"`); !strings.HasPrefix(got, `{"id":null,`) {
		t.Errorf("edited response = %s", got)
	}
	if got := a.want(400, http.MethodPost, "/responses", blocking); !strings.Contains(got, "context_length_exceeded") {
		t.Errorf("refused = %s", got)
	}
	a.s.AssertComplete(t)
}

// TestHold holds a response on a conversation while another one is tried.
func TestHold(t *testing.T) {
	hold := make(chan struct{})
	reached := make(chan struct{})
	opts := &pawltest.ResponsesOptions{
		Respond: func(*pawltest.ResponsesRequest) pawltest.ResponsesReply {
			close(reached)
			return pawltest.ReplyText("ok")
		},
		Fault: pawltest.FaultsAt(map[int]*pawltest.ResponsesFault{1: {Point: pawltest.FaultMidStream, Events: 4, Hold: hold}}),
	}
	a := newAPI(t, opts)
	a.want(200, http.MethodPost, "/conversations", "")
	on := `{"model":"m","input":"x","conversation":"conv_1","stream":true}`
	held := make(chan reply)
	go func() {
		r, err := a.try(http.MethodPost, "/responses", on)
		if err != nil {
			t.Error(err)
		}
		held <- r
	}()
	<-reached
	want := refusalBody("Another process is currently operating on this conversation. Please retry in a few seconds.",
		"conversation", "conversation_locked")
	if got := a.want(400, http.MethodPost, "/responses", on); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := a.want(400, http.MethodPost, "/conversations/conv_1/items", `{"items":[`+user+`]}`); got != want {
		t.Errorf("adding items: got %s, want %s", got, want)
	}
	close(hold)
	if got := kinds((<-held).body); got[len(got)-1] != "response.completed" {
		t.Errorf("the held stream ends with %v", got)
	}
	a.want(200, http.MethodPost, "/conversations/conv_1/items", `{"items":[`+user+`]}`)
}

// TestFakeTime uses the server in memory, where waiting costs nothing.
func TestFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := talker("ok")
		opts.InMemory = true
		opts.Fault = pawltest.FaultsAt(map[int]*pawltest.ResponsesFault{
			1: {Delay: time.Hour},
			2: {Point: pawltest.FaultMidStream, Events: 2, Delay: time.Minute},
		})
		a := newAPI(t, opts)
		start := time.Now()
		a.create(`"input":"x"`)
		if got := time.Since(start); got != time.Hour {
			t.Errorf("the delayed answer took %v, want 1h", got)
		}
		a.create(`"input":"x","stream":true`)
		if got := time.Since(start); got != time.Hour+time.Minute {
			t.Errorf("both took %v, want 1h1m", got)
		}
	})
}

// TestClientGoesAway: a stream whose reader leaves before its end is not stored, and its conversation is free again.
func TestClientGoesAway(t *testing.T) {
	opts := talker("ok")
	opts.Fault = pawltest.FaultsAt(map[int]*pawltest.ResponsesFault{
		1: {Point: pawltest.FaultMidStream, Events: 2, Hold: make(chan struct{})},
	})
	a := newAPI(t, opts)
	a.want(200, http.MethodPost, "/conversations", "")
	resp, err := a.s.Client().Post(a.s.URL()+"/responses", "application/json",
		strings.NewReader(`{"model":"m","input":"x","conversation":"conv_1","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for { // until the server has noticed
		got := a.send(http.MethodPost, "/responses", `{"model":"m","input":"y","conversation":"conv_1"}`)
		if got.status == http.StatusOK {
			break
		}
		if !strings.Contains(got.body, "conversation_locked") {
			t.Fatalf("got %s", got.body)
		}
	}
	if items := a.want(200, http.MethodGet, "/conversations/conv_1/items", ""); strings.Contains(items, `"text":"x"`) {
		t.Errorf("the abandoned request was stored: %s", items)
	}
}
