package pawltest

import (
	"errors"
	"io"
	"net/http"
)

// streamer sends the response of an exchange as server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html), each as soon as it is there.
type streamer struct {
	x        *exchange
	terminal string // type of the last event
	sent     int
	flush    func() error
}

func newStreamer(x *exchange) *streamer {
	return &streamer{
		x:        x,
		terminal: "response." + x.turn.resp.status,
		flush:    http.NewResponseController(x.w).Flush,
	}
}

// errStreamEnded stops a stream that a fault has ended.
var errStreamEnded = errors.New("pawltest: the stream has ended")

func (s *streamer) run() {
	h := s.x.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	resp := s.x.turn.resp
	e := &events{send: s.send, chunk: s.x.server.opts.DeltaSize}
	e.begin(s.x.turn.env.encode(resp, statusInProgress))
	for i, it := range resp.output {
		e.output(i, it)
	}
	e.finish(resp)
}

// send sends one event, after the fault whose turn it is. The response becomes part of the state before its terminal event
// goes out, so a client that saw the end can rely on it.
func (s *streamer) send(kind, data string) error {
	if f := s.x.fault; f.strikes(FaultMidStream) && f.Events == s.sent {
		if err := s.strike(); err != nil {
			return err
		}
	}
	if kind == s.terminal {
		if failure := s.x.commit(); failure != nil {
			return s.fail(failure)
		}
		s.x.server.log.note(s.x.place, s.x.req)
	}
	return s.write(kind, data)
}

// strike lets the fault happen here.
func (s *streamer) strike() error {
	if f := s.x.fault; f.fails() && f.Stored {
		if failure := s.x.commit(); failure != nil {
			return s.fail(failure)
		}
	}
	if failure := s.x.strike(); failure != nil {
		return s.fail(failure)
	}
	return nil
}

// fail sends an error event and ends the stream.
func (s *streamer) fail(failure *ResponsesError) error {
	s.x.req.Refusal = failure
	if err := s.write("error", failure.event(int64(s.sent))); err != nil {
		return err
	}
	return errStreamEnded
}

func (s *streamer) write(kind, data string) error {
	if s.sent == 0 { // the first event takes the status with it
		s.x.req.Status = http.StatusOK
	}
	if s.sent == 0 || s.x.req.Refusal != nil {
		s.x.server.log.note(s.x.place, s.x.req)
	}
	s.sent++
	if _, err := io.WriteString(s.x.w, "event: "+kind+"\ndata: "+data+"\n\n"); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	return s.x.http.Context().Err()
}
