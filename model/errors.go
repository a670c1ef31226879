package model

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrAbandoned is returned by a call whose emit function returned false.
var ErrAbandoned = errors.New("pawl: model call abandoned by its reader")

// Delivery says whether the server took a failed request's input into the state it
// keeps.
type Delivery int

// What is known about a failed request.
const (
	// DeliveryUnknown: the request may have been processed.
	DeliveryUnknown Delivery = iota
	// DeliveryRefused: the server answered that it did not process it, or the
	// request provably never left.
	DeliveryRefused
)

// Error is a failed model call.
type Error struct {
	// Status is the HTTP status, 0 when there was no answer.
	Status int
	// Code, Param, Kind and Message are the server's error object.
	Code, Param, Kind, Message string
	// RequestID identifies the request in the provider's logs.
	RequestID string
	// RetryAfter is the pause the server asked for, 0 if none.
	RetryAfter time.Duration
	// Retryable says that the same request may succeed later.
	Retryable bool
	// Final says that the server asked not to be sent the same request again.
	Final bool
	// Delivery says whether the server may have processed the request.
	Delivery Delivery
	// Err is the cause: a transport error, ErrStreamCut, ErrIncomplete or
	// ErrFailed.
	Err error
}

// Ways in which a server ends a response without completing it.
var (
	// ErrStreamCut: the stream ended before its terminal event.
	ErrStreamCut = errors.New("pawl: model stream ended before the response was complete")
	// ErrIncomplete: the server says the response is incomplete.
	ErrIncomplete = errors.New("pawl: model response is incomplete")
	// ErrFailed: the server says the response failed.
	ErrFailed = errors.New("pawl: model response failed")
	// ErrMalformed: the server's answer cannot be read.
	ErrMalformed = errors.New("pawl: model response cannot be read")
)

// Error describes the failure in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("pawl: model call failed")
	if e.Status != 0 {
		fmt.Fprintf(&b, ": HTTP %d", e.Status)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Code != "" {
		b.WriteString(" (" + e.Code + ")")
	}
	if e.Err != nil {
		b.WriteString(": " + strings.TrimPrefix(e.Err.Error(), "pawl: "))
	}
	if e.RequestID != "" {
		b.WriteString(" [request " + e.RequestID + "]")
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ConversationLocked says that the server works on another request of the same conversation.
// It did not process this one.
func (e *Error) ConversationLocked() bool {
	return e.Code == "conversation_locked" && e.Delivery == DeliveryRefused
}
