package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/pawl-agents/pawl/model"
)

// answerTransport answers with the bytes of a body.
func answerTransport(contentType string, body []byte) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		_, err := io.Copy(io.Discard, r.Body)
		return &http.Response{
			StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Request: r,
			Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)),
		}, err
	})
}

// checkOutcome requires a response or an error of the kinds that are documented, never both or neither.
func checkOutcome(t *testing.T, res *model.Response, err error, causes ...error) {
	t.Helper()
	if (res == nil) == (err == nil) {
		t.Fatalf("got response %v and error %v", res, err)
	}
	if err == nil {
		for _, it := range res.Items {
			if !json.Valid([]byte(it.Raw())) {
				t.Errorf("item is no JSON: %q", it.Raw())
			}
		}
		return
	}
	var failed *model.Error
	known := slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) })
	if !errors.As(err, &failed) || failed.Delivery != model.DeliveryUnknown || !known {
		t.Errorf("unexpected error %v", err)
	}
}

func FuzzResponse(f *testing.F) {
	for _, body := range []string{emptyResponse, benchResponse, "", "{}", "[", `{"output":[{}],"status":"failed","error":{"code":1}}`,
		`{"status":"incomplete","incomplete_details":{"reason":"x"}}`, `{"output":null,"usage":{"input_tokens":1.5}}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		res, err := modelOver(answerTransport("application/json", body)).Call(t.Context(), request(), nil)
		checkOutcome(t, res, err, model.ErrMalformed, model.ErrFailed, model.ErrIncomplete)
		if err == nil && !json.Valid(body) {
			t.Errorf("accepted what is no JSON: %q", body)
		}
	})
}

func FuzzStream(f *testing.F) {
	for _, stream := range []string{benchStream, "", "data: {}\n\n", "data: [DONE]\n\n", "event: error\ndata: {\"error\":1}\n\n",
		"\r\n:x\ndata\ndata:\n\n", "data: {\"type\":\"response.completed\"}\n\n",
		frame("response.output_item.done", `"output_index":-9,"item":{}`) + frame("response.completed", `"response":{"output":[]}`),
		frame("response.output_text.delta", `"delta":{},"item_id":"\\","output_index":1e9`)} {
		f.Add([]byte(stream))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		last := ""
		m := modelOver(answerTransport("text/event-stream", stream))
		res, err := m.Call(t.Context(), request(), func(ev *model.Event) bool {
			if !json.Valid(ev.Raw) {
				t.Errorf("event is no JSON: %q", ev.Raw)
			}
			last = ev.Type
			return true
		})
		checkOutcome(t, res, err, model.ErrMalformed, model.ErrFailed, model.ErrIncomplete, model.ErrStreamCut)
		if err == nil && last != "response.completed" {
			t.Errorf("accepted after %q", last)
		}
	})
}
