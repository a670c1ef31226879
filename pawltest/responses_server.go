package pawltest

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// ResponsesOptions says how a [ResponsesServer] behaves. The zero value is a server in memory without a script.
type ResponsesOptions struct {
	// Steps are the script: the answers to the requests that pass the server's checks, in order.
	Steps []ResponsesStep
	// Respond answers when the steps are used up. Without it a request beyond the script is refused and reported.
	Respond Responder
	// Fault chooses what goes wrong with a request, nil for nothing. It is asked for every request, also those for
	// conversations, and may be called from many goroutines at once. A step's own fault goes before it.
	Fault func(*ResponsesRequest) *ResponsesFault

	// Dir keeps responses and conversations in this directory, so that a server started on it later knows them.
	Dir string
	// Addr is the address to listen on; "" means a free port of 127.0.0.1.
	Addr string
	// InMemory listens in memory instead: nothing but [ResponsesServer.Client] reaches the server, and no socket is used, so
	// that it works with the fake time of testing/synctest.
	InMemory bool
	// Key is the bearer key that requests must carry; "" takes any, or none.
	Key string
	// Retain is how many stored responses, and how many bodies of requests, are kept: the latest. 0 keeps all.
	Retain int
	// DeltaSize is the number of bytes of text in one delta of a stream, 16 if 0.
	DeltaSize int
	// Now is the clock for created_at; time.Now if nil.
	Now func() time.Time
}

// ResponsesServer is an HTTP server that speaks OpenAI's Responses API (POST, GET and DELETE of /v1/responses, blocking and
// as a stream) and Conversations API. It holds state as the service does: what it stored can be continued by
// previous_response_id, read back and deleted; a conversation collects the items of its responses. The rules by which it
// refuses a request each name their source in the code.
//
// All methods may be called from any goroutine.
type ResponsesServer struct {
	opts     ResponsesOptions
	state    *responsesState
	script   responsesScript
	log      responsesLog
	mux      *http.ServeMux
	http     *http.Server
	listener net.Listener
	client   *http.Client

	gate    sync.Mutex
	closed  bool           // guarded by gate: no request is handled any more
	running sync.WaitGroup // handlers, and the loop that accepts connections
}

// NewResponsesServer starts a server for a test and closes it with the test. Requests that did not go by the script fail
// the test when it ends, or before that when [ResponsesServer.AssertComplete] is called. opts may be nil.
func NewResponsesServer(tb testing.TB, opts *ResponsesOptions) *ResponsesServer {
	tb.Helper()
	s, err := StartResponses(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close the Responses server: %v", err)
		}
		s.script.report(tb, false)
	})
	return s
}

// StartResponses starts a server outside of a test, for a demo or a benchmark. The caller closes it. opts may be nil.
func StartResponses(opts *ResponsesOptions) (*ResponsesServer, error) {
	s, err := OpenResponses(opts)
	if err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("pawl: start the Responses server: %w", err)
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.running.Go(func() { s.http.Serve(s.listener) }) // a listener that fails shows as refused connections
	return s, nil
}

func (s *ResponsesServer) listen() error {
	if s.opts.InMemory {
		memory := newMemoryListener()
		s.listener = memory
		s.client = &http.Client{Transport: &http.Transport{DialContext: memory.dial}}
		return nil
	}
	listener, err := net.Listen("tcp", cmp.Or(s.opts.Addr, "127.0.0.1:0"))
	s.listener = listener
	s.client = &http.Client{Transport: &http.Transport{}}
	return err
}

// OpenResponses makes a server that does not listen: it is an [http.Handler] for a listener or a transport of the caller's.
// opts may be nil.
func OpenResponses(opts *ResponsesOptions) (*ResponsesServer, error) {
	s := &ResponsesServer{}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.DeltaSize <= 0 {
		s.opts.DeltaSize = defaultDelta
	}
	s.script.add(s.opts.Steps)
	s.log.retain = s.opts.Retain
	state, err := openResponsesState(s.opts.Retain, s.opts.Dir)
	if err != nil {
		return nil, err
	}
	s.state = state
	s.routes()
	return s, nil
}

// URL is the base URL for a client, ending in /v1; "" for a server that does not listen.
func (s *ResponsesServer) URL() string {
	if s.listener == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String() + "/v1"
}

// Client is an HTTP client that reaches the server, with connections of its own that end with [ResponsesServer.Close]; nil for
// a server that does not listen. Over sockets any other client does as well.
func (s *ResponsesServer) Client() *http.Client { return s.client }

// Close stops listening, closes every connection, also those in use, and waits until no request is being handled. A
// [Responder] must return for that.
func (s *ResponsesServer) Close() error {
	s.gate.Lock()
	s.closed = true
	s.gate.Unlock()
	var err error
	if s.http != nil {
		err = s.http.Close()
		s.client.CloseIdleConnections()
	}
	s.running.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("pawl: close the Responses server: %w", err)
	}
	return nil
}

// enter counts a request that is being handled; false if the server is closed.
func (s *ResponsesServer) enter() bool {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	return true
}

// ServeHTTP serves one request. A fault that cuts the connection panics with [http.ErrAbortHandler], as net/http has it.
func (s *ResponsesServer) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// AddSteps appends to the script.
func (s *ResponsesServer) AddSteps(steps ...ResponsesStep) { s.script.add(steps) }

// AssertComplete fails the test if a request did not go by the script, or if steps are left.
func (s *ResponsesServer) AssertComplete(tb testing.TB) {
	tb.Helper()
	s.script.report(tb, true)
}

// Requests returns the requests that asked for a response, accepted and refused ones, in the order in which they came.
func (s *ResponsesServer) Requests() []ResponsesRequest {
	return s.log.list((*ResponsesRequest).creates)
}

// OtherRequests returns all other requests: those about conversations and stored responses.
func (s *ResponsesServer) OtherRequests() []ResponsesRequest {
	return s.log.list(func(r *ResponsesRequest) bool { return !r.creates() })
}

// OutputsSent counts the outputs for a call in the accepted requests' own input. On a chain or a conversation it is 1 when
// all is well; without one a call's output is sent again with every later request.
func (s *ResponsesServer) OutputsSent(callID string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Accepted {
			n += outputsFor(r.Input, callID)
		}
	}
	return n
}
