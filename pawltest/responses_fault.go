package pawltest

import (
	"context"
	"time"
)

// FaultPoint is where in the handling of a request a fault strikes.
type FaultPoint int

const (
	// FaultBefore strikes before the request is processed: nothing is stored.
	FaultBefore FaultPoint = iota
	// FaultAfter strikes when the request has been processed and stored: only its acknowledgement is lost.
	FaultAfter
	// FaultMidStream strikes after Events events of a stream, or in the middle of the body of a blocking answer.
	FaultMidStream
)

// ResponsesFault is one thing that goes wrong with one request. With neither Error nor Cut nothing fails: the server only
// waits at the point (Delay, Hold) and then goes on.
type ResponsesFault struct {
	Point FaultPoint
	// Events is how many events of the stream the client gets before a FaultMidStream.
	Events int
	// Stored says that the server keeps the response of a FaultMidStream that cuts or fails. Without it the response is
	// lost, as a synchronous response is cancelled when its connection ends
	// (https://developers.openai.com/api/docs/guides/background).
	Stored bool

	// Delay and Hold make the server wait: so long, and until the channel is closed. A client that goes away ends both.
	Delay time.Duration
	Hold  <-chan struct{}

	// Error is answered; in a stream it is sent as an error event, which ends the stream.
	Error *ResponsesError
	// Cut closes the connection without a word. Beware that net/http itself sends a request again whose kept connection
	// ends before the first byte of an answer, if the request carries an Idempotency-Key header (see [net/http.Transport]).
	Cut bool
	// Edit changes the model's reply before anything is made of it.
	Edit func(*ResponsesReply)
}

// FaultsAt returns a fault function for [ResponsesOptions] that gives the n-th request that creates a response its fault,
// counted from 1.
func FaultsAt(faults map[int]*ResponsesFault) func(*ResponsesRequest) *ResponsesFault {
	return func(r *ResponsesRequest) *ResponsesFault {
		if !r.creates() {
			return nil
		}
		return faults[r.Number]
	}
}

// fails reports whether the fault ends the request.
func (f *ResponsesFault) fails() bool { return f.Error != nil || f.Cut }

// strikes reports whether the fault is one of the given point.
func (f *ResponsesFault) strikes(p FaultPoint) bool { return f != nil && f.Point == p }

// wait waits as the fault says; false if the client went away first.
func (f *ResponsesFault) wait(ctx context.Context) bool {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}
