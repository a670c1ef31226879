package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/model"
)

const requestIDHeader = "X-Request-Id"

// refused is the error of a request that was wrong before it was sent.
func refused(cause error) *model.Error {
	return &model.Error{
		Delivery: model.DeliveryRefused,
		Err:      fmt.Errorf("pawl: openai: %w", cause),
	}
}

// transportError is the error of a request that got no answer, or of which the answer broke off.
func transportError(ctx context.Context, cause error, neverLeft bool) *model.Error {
	e := &model.Error{Err: cause, Retryable: true}
	var at *url.Error
	if errors.As(cause, &at) { // it shows the query, which may hold secrets
		e.Err = at.Err
	}
	if ctx.Err() != nil {
		e.Err = ctx.Err()
		e.Retryable = !errors.Is(e.Err, context.Canceled)
	}
	if neverLeft {
		e.Delivery = model.DeliveryRefused
	}
	return e
}

// malformed is the error of an answer that cannot be read.
func malformed(res *http.Response, cause error) *model.Error {
	return &model.Error{
		Status:    res.StatusCode,
		RequestID: res.Header.Get(requestIDHeader),
		Err:       fmt.Errorf("%w: %w", model.ErrMalformed, cause),
	}
}

// httpError reads and closes an answer whose status is not 2xx.
func httpError(res *http.Response) *model.Error {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxErrorSize))
	closeErr := res.Body.Close()
	e := &model.Error{
		Status:     res.StatusCode,
		RequestID:  res.Header.Get(requestIDHeader),
		RetryAfter: retryAfter(res.Header),
		Delivery:   delivery(res.StatusCode),
	}
	var object serverError
	_ = jsonscan.Object(body, func(key, value []byte) error { // a body that is no JSON has no error object
		if string(key) == "error" {
			object.read(value)
		}
		return nil
	})
	object.copyTo(e)
	if to := res.Header.Get("Location"); to != "" {
		e.Message = "the server redirects to " + to
	}
	if e.Message == "" {
		e.Message = excerpt(body)
	}
	if e.Message == "" {
		e.Message = http.StatusText(res.StatusCode)
		e.Err = errors.Join(err, closeErr)
	}
	switch res.Header.Get("X-Should-Retry") {
	case "true":
		e.Retryable = true
	case "false":
		e.Final = true
	default:
		e.Retryable = retryable(e)
	}
	return e
}

// delivery says what an error status tells about the request. A 4xx is the server's word that it does not process the
// request as it is, except for 408, which proxies also send for a request that they passed on, and 499, which is theirs.
func delivery(status int) model.Delivery {
	switch {
	case status == http.StatusRequestTimeout, status == 499:
		return model.DeliveryUnknown
	case status >= 400 && status <= 499:
		return model.DeliveryRefused
	}
	return model.DeliveryUnknown
}

// retryable says whether the same request may succeed later, by status and code.
func retryable(e *model.Error) bool {
	switch {
	case e.Kind == "insufficient_quota" || e.Code == "insufficient_quota":
		return false // 429, but it is money that has run out
	case e.Code == "conversation_locked":
		return true // 400: https://github.com/paulgmiller/careme/issues/379
	case e.Status == http.StatusRequestTimeout, e.Status == http.StatusConflict, e.Status == http.StatusTooManyRequests:
		return true
	case e.Status >= 500:
		return true
	}
	return retryableCode(e.Code)
}

// retryableCode is retryable for the codes of a response that failed after it was accepted
// (https://platform.openai.com/docs/api-reference/responses/object) and of a stream's error event.
func retryableCode(code string) bool {
	switch code {
	case "server_error", "rate_limit_exceeded", "vector_store_timeout", "server_is_overloaded", "slow_down", "conversation_locked":
		return true
	}
	return false
}

// retryAfter reads the pause a server asks for: in milliseconds, in seconds or as a date
// (https://www.rfc-editor.org/rfc/rfc9110#field.retry-after).
func retryAfter(h http.Header) time.Duration {
	if d, ok := duration(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	value := h.Get("Retry-After")
	if d, ok := duration(value, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

func duration(value string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, false
	}
	const longest = 365 * 24 * time.Hour // so that the product fits
	return time.Duration(min(n*float64(unit), float64(longest))), true
}

// excerpt returns the beginning of a body that is not the API's.
func excerpt(body []byte) string {
	const longest = 300
	text := strings.ToValidUTF8(strings.TrimSpace(string(body[:min(len(body), longest)])), "")
	if len(body) > longest {
		text += "..."
	}
	return text
}

// serverError is the API's error object.
type serverError struct{ code, kind, param, message string }

// read takes what the error object in value says; what it does not say stays. Some servers send a text for the object.
func (s *serverError) read(value []byte) {
	if text, err := jsonscan.String(value); err == nil {
		s.message = text
		return
	}
	_ = jsonscan.Object(value, func(key, value []byte) error { // not an object: nothing to take
		switch string(key) {
		case "code":
			s.code = cmp.Or(text(value), s.code)
		case "type":
			s.kind = cmp.Or(text(value), s.kind)
		case "param":
			s.param = cmp.Or(text(value), s.param)
		case "message":
			s.message = cmp.Or(text(value), s.message)
		}
		return nil
	})
}

func (s *serverError) copyTo(e *model.Error) {
	e.Code, e.Kind, e.Param, e.Message = s.code, s.kind, s.param, s.message
}

// text returns a JSON string's text, "" for null, and anything else as it is written.
func text(value []byte) string {
	if jsonscan.IsNull(value) {
		return ""
	}
	if s, err := jsonscan.String(value); err == nil {
		return s
	}
	return string(value)
}
