package openai

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
)

// transmission watches one request on its way out, to tell a request that never left from one whose answer was lost, and a
// body that was sent from one that is still being read.
type transmission struct {
	trace     httptrace.ClientTrace
	asked     atomic.Bool // for a connection
	connected atomic.Bool
	written   atomic.Bool
}

// watch returns the context to send the request with.
func (t *transmission) watch(ctx context.Context) context.Context {
	t.trace.GetConn = func(string) { t.asked.Store(true) }
	t.trace.GotConn = func(httptrace.GotConnInfo) { t.connected.Store(true) }
	t.trace.WroteRequest = func(info httptrace.WroteRequestInfo) { t.written.Store(info.Err == nil) }
	return httptrace.WithClientTrace(ctx, &t.trace)
}

// neverLeft reports that no connection to send the request on was ever there. A transport that is not net/http's may ask for
// none, so that nothing is known about it.
func (t *transmission) neverLeft() bool { return t.asked.Load() && !t.connected.Load() }
