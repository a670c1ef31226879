package pawltest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// maxBody is the largest request body the server reads.
const maxBody = 512 << 20

// exchange is one request and its answer.
type exchange struct {
	server *ResponsesServer
	http   *http.Request
	w      http.ResponseWriter
	req    *ResponsesRequest
	place  int // in the log
	fault  *ResponsesFault
	turn   *turn // of a request that creates a response and passed the checks
}

// answer is what an endpoint decided: a JSON body, or the stream of a response.
type answer struct {
	status int
	body   string
	stream bool // of the exchange's turn, instead of body
}

// endpoint decides about one request.
type endpoint func(*exchange) (answer, *ResponsesError)

// serve wraps an endpoint with what every request goes through: recording, the key, faults, delivery.
func (s *ResponsesServer) serve(e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler)
		}
		defer s.running.Done()
		body, err := readBody(w, r)
		if err != nil {
			return // the client went away while it sent
		}
		x := &exchange{server: s, http: r, w: w}
		x.req, x.place = s.log.receive(r, body)
		w.Header().Set("X-Request-Id", fmt.Sprintf("req_%d", x.place+1))
		if refused := x.handle(e); refused != nil {
			x.refuse(refused)
		}
	}
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var b bytes.Buffer
	if r.ContentLength > 0 && r.ContentLength < maxBody {
		b.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody))
	return b.Bytes(), err
}

// handle does all but answer with the error it returns.
func (x *exchange) handle(e endpoint) *ResponsesError {
	if refused := checkKey(x.http.Header, x.server.opts.Key); refused != nil {
		return refused
	}
	var refused *ResponsesError
	if x.req.creates() {
		refused = parseCreate(x.req)
	}
	if x.server.opts.Fault != nil {
		x.fault = x.server.opts.Fault(x.req)
	}
	if x.fault.strikes(FaultBefore) {
		if err := x.strike(); err != nil {
			return err
		}
	}
	if refused != nil {
		return refused
	}
	defer x.release()
	a, refused := e(x)
	if refused != nil {
		return refused
	}
	return x.deliver(a)
}

// release ends the turn, however the request ended.
func (x *exchange) release() {
	if x.turn != nil {
		x.turn.release()
	}
}

// strike lets the fault happen: it waits, and then returns the error to answer, cuts the connection, or returns nil.
func (x *exchange) strike() *ResponsesError {
	if !x.fault.wait(x.http.Context()) || x.fault.Cut {
		x.cut()
	}
	return x.fault.Error
}

// cut ends the connection here.
func (x *exchange) cut() {
	x.server.log.note(x.place, x.req)
	panic(http.ErrAbortHandler)
}

// refuse answers with an error.
func (x *exchange) refuse(e *ResponsesError) {
	x.req.Status, x.req.Refusal = e.status(), e
	x.server.log.note(x.place, x.req)
	for name, values := range e.Header {
		x.w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(e.status())
	io.WriteString(x.w, e.body()) // the client may be gone
}

// deliver commits and sends an answer, with the fault where it belongs.
func (x *exchange) deliver(a answer) *ResponsesError {
	if x.fault.strikes(FaultAfter) {
		if err := x.commit(); err != nil {
			return err
		}
		if err := x.strike(); err != nil {
			return err
		}
	}
	if a.stream {
		newStreamer(x).run()
		return nil
	}
	return x.write(a)
}

// commit stores what the turn made.
func (x *exchange) commit() *ResponsesError {
	if x.turn == nil {
		return nil
	}
	if err := x.turn.commit(); err != nil {
		return x.server.script.notKept(err)
	}
	return nil
}

// write sends a blocking answer, only half of it where a fault says so.
func (x *exchange) write(a answer) *ResponsesError {
	cut := x.fault.strikes(FaultMidStream)
	if !cut || !x.fault.fails() || x.fault.Stored {
		if err := x.commit(); err != nil {
			return err
		}
	}
	x.req.Status = a.status
	x.server.log.note(x.place, x.req)
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Length", fmt.Sprint(len(a.body)))
	x.w.WriteHeader(a.status)
	body := a.body
	if cut {
		io.WriteString(x.w, body[:len(body)/2])
		body = body[len(body)/2:]
		_ = http.NewResponseController(x.w).Flush()
		if x.strike() != nil { // too late for another status
			x.cut()
		}
	}
	io.WriteString(x.w, body)
	return nil
}
