package openai

import (
	"fmt"
	"io"
	"net/http"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

// MaxResponseSize bounds, in bytes, the body of a response and each event of a stream. It is what the official client library
// bounds a line of a stream to.
const MaxResponseSize = 32 << 20

// readBody reads a body that has a bound.
func readBody(res *http.Response) ([]byte, error) {
	if n := res.ContentLength; n >= 0 && n <= MaxResponseSize {
		body := make([]byte, n)
		_, err := io.ReadFull(res.Body, body)
		return body, err
	}
	return io.ReadAll(io.LimitReader(res.Body, MaxResponseSize+1))
}

// responseObject is what a run needs to know of the API's response object
// (https://platform.openai.com/docs/api-reference/responses/object).
type responseObject struct {
	id, status string
	hasOutput  bool
	items      []item.Item
	usage      *model.Usage
	failure    serverError
	incomplete string // the reason
}

// parseResponse reads a response object. Items are kept as their bytes; what a run does not need is checked for grammar and
// skipped. Of a repeated member the last counts; null is as good as absent.
func parseResponse(data []byte, keepUsage bool) (*responseObject, error) {
	r := &responseObject{}
	err := jsonscan.Object(data, func(key, value []byte) error {
		null := jsonscan.IsNull(value)
		var err error
		switch string(key) {
		case "id":
			r.id, err = optionalString(value)
		case "status":
			r.status, err = optionalString(value)
		case "output":
			if r.hasOutput, r.items = !null, nil; !null {
				r.items, err = parseItems(value)
			}
		case "usage":
			if r.usage = nil; !null {
				r.usage = parseUsage(value, keepUsage)
			}
		case "error":
			r.failure = serverError{}
			r.failure.read(value)
		case "incomplete_details":
			if r.incomplete = ""; !null {
				r.incomplete, err = textIn(value, "reason")
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// optionalString decodes a JSON string, or null as "".
func optionalString(value []byte) (string, error) {
	if jsonscan.IsNull(value) {
		return "", nil
	}
	return jsonscan.String(value)
}

// textIn returns the text of an object's member.
func textIn(object []byte, name string) (found string, err error) {
	err = jsonscan.Object(object, func(key, value []byte) error {
		if string(key) == name {
			found = text(value)
		}
		return nil
	})
	return found, err
}

func parseItems(array []byte) ([]item.Item, error) {
	var items []item.Item
	err := jsonscan.Array(array, func(value []byte) error {
		it, err := item.Parse(value)
		items = append(items, it)
		return err
	})
	return items, err
}

// parseUsage reads the usage object. One that cannot be read is unknown usage, not a reason to lose the response.
func parseUsage(object []byte, keep bool) *model.Usage {
	u := &model.Usage{}
	if keep {
		u.Raw = string(object)
	}
	err := jsonscan.Object(object, func(key, value []byte) error {
		switch string(key) {
		case "input_tokens":
			return count(&u.InputTokens, value)
		case "output_tokens":
			return count(&u.OutputTokens, value)
		case "total_tokens":
			return count(&u.TotalTokens, value)
		case "input_tokens_details":
			return countIn(&u.CachedInputTokens, value, "cached_tokens")
		case "output_tokens_details":
			return countIn(&u.ReasoningTokens, value, "reasoning_tokens")
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return u
}

func count(n *int64, value []byte) error {
	if jsonscan.IsNull(value) {
		return nil
	}
	var err error
	*n, err = jsonscan.Int(value)
	return err
}

func countIn(n *int64, object []byte, name string) error {
	if jsonscan.IsNull(object) {
		return nil
	}
	return jsonscan.Object(object, func(key, value []byte) error {
		if string(key) == name {
			return count(n, value)
		}
		return nil
	})
}

// result returns the response if the server completed it. A response without a status is complete because it was sent as one.
func (r *responseObject) result(res *http.Response) (*model.Response, error) {
	requestID := res.Header.Get(requestIDHeader)
	if r.status == "completed" || r.status == "" && r.failure == (serverError{}) {
		return &model.Response{ID: r.id, RequestID: requestID, Items: r.items, Usage: r.usage}, nil
	}
	e := &model.Error{Status: res.StatusCode, RequestID: requestID}
	r.failure.copyTo(e)
	switch r.status {
	case "failed", "":
		e.Err = model.ErrFailed
		e.Retryable = retryableCode(e.Code)
	case "incomplete":
		e.Err = model.ErrIncomplete
		if e.Code == "" {
			e.Code = r.incomplete
		}
	default: // cancelled, or still queued or in progress
		e.Err = model.ErrIncomplete
		e.Code = r.status
	}
	return nil, e
}
