package pawltest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// ResponsesError is a refusal or a failure as the service words it. As an HTTP answer it is Status with the JSON body
// {"error":{"message","type","param","code"}}; an empty Param or Code is null. It is an error itself, for tests that
// look at what the server did.
type ResponsesError struct {
	Status  int // HTTP status; 0 means 500
	Message string
	Type    string // "" means "invalid_request_error" below 500, "server_error" from 500 on
	Param   string
	Code    string
	Header  http.Header // sent with the answer, for example Retry-After
	Body    string      // sent instead of the JSON body when not empty, for answers of a proxy
}

// Error says the status and the message.
func (e *ResponsesError) Error() string {
	return fmt.Sprintf("%d %s: %s", e.status(), http.StatusText(e.status()), e.Message)
}

// RateLimited is the 429 of a service that asks to come back after the given time, rounded up to seconds as the
// Retry-After header counts (RFC 9110 section 10.2.3).
func RateLimited(after time.Duration) *ResponsesError {
	seconds := int64((after + time.Second - 1) / time.Second)
	return &ResponsesError{
		Status:  http.StatusTooManyRequests,
		Message: "Rate limit reached. Please try again in " + strconv.FormatInt(seconds, 10) + "s.",
		Type:    "requests",
		Code:    "rate_limit_exceeded",
		Header:  http.Header{"Retry-After": {strconv.FormatInt(seconds, 10)}},
	}
}

// ServerError is the service's plain 500.
func ServerError() *ResponsesError {
	return &ResponsesError{
		Status:  http.StatusInternalServerError,
		Message: "The server had an error while processing your request. Sorry about that!",
	}
}

func (e *ResponsesError) status() int {
	if e.Status == 0 {
		return http.StatusInternalServerError
	}
	return e.Status
}

func (e *ResponsesError) kind() string {
	switch {
	case e.Type != "":
		return e.Type
	case e.status() >= http.StatusInternalServerError:
		return "server_error"
	default:
		return "invalid_request_error"
	}
}

func (e *ResponsesError) body() string {
	if e.Body != "" {
		return e.Body
	}
	inner := object(nil).str("message", e.Message).str("type", e.kind()).
		strOrNull("param", e.Param).strOrNull("code", e.Code)
	return object(nil).raw("error", inner.end()).end()
}

// event is the error as an event of a stream.
func (e *ResponsesError) event(sequence int64) string {
	return object(nil).str("type", "error").num("sequence_number", sequence).
		strOrNull("code", e.Code).str("message", e.Message).strOrNull("param", e.Param).end()
}

// refusal is a 400 of type invalid_request_error.
func refusal(param, code, format string, args ...any) *ResponsesError {
	return &ResponsesError{
		Status:  http.StatusBadRequest,
		Message: fmt.Sprintf(format, args...),
		Param:   param,
		Code:    code,
	}
}

// notFound is a 404 of type invalid_request_error.
func notFound(param, format string, args ...any) *ResponsesError {
	return &ResponsesError{Status: http.StatusNotFound, Message: fmt.Sprintf(format, args...), Param: param}
}
