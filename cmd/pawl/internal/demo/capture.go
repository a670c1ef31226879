package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// captures keeps what the model was sent, one file a request, so that it can be looked at when the process that
// served it is gone.
type captures struct{ dir string }

// captured is one request. Items are texts, so that their bytes survive.
type captured struct {
	// History is all the model could see: what the server held before, and the request's input.
	History []string `json:"history"`
	// Body is the request as it came.
	Body string `json:"body"`
}

// save keeps a request as the newest of its run.
func (c captures) save(run string, history []item.Item, body []byte) error {
	dir := filepath.Join(c.dir, run)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	v := captured{History: []string{}, Body: string(body)}
	for _, it := range history {
		v.History = append(v.History, it.Raw())
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, fmt.Sprintf("%04d.json", len(names)+1))
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// all returns the requests of a run in their order.
func (c captures) all(run string) ([]captured, error) {
	names, err := filepath.Glob(filepath.Join(c.dir, run, "*.json")) // sorted
	if err != nil {
		return nil, err
	}
	list := make([]captured, len(names))
	for i, name := range names {
		data, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(data, &list[i])
		}
		if err != nil {
			return nil, fmt.Errorf("pawl: read a captured request: %s: %w", name, err)
		}
	}
	return list, nil
}

// last returns what the model saw in the run's newest request, nil if there was none.
func (c captures) last(run string) ([]item.Item, error) {
	list, err := c.all(run)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return parseItems(list[len(list)-1].History)
}

// Delivery is a request that brought outputs of calls to the model's server.
type Delivery struct {
	// Request counts the run's requests from 1. Previous is the response it continued, if it continued one.
	Request  int    `json:"request"`
	Previous string `json:"previous_response_id,omitempty"`
	// Outputs are the tools whose outputs its own input carried.
	Outputs []string `json:"outputs"`
}

// Deliveries returns the run's requests that carried outputs, read from the captured bodies.
func (d *Desk) Deliveries() ([]Delivery, error) {
	list, err := d.captures.all(d.Ticket.Run())
	if err != nil {
		return nil, err
	}
	var out []Delivery
	for i, c := range list {
		var body struct {
			Previous string      `json:"previous_response_id"`
			Input    []item.Item `json:"input"`
		}
		if err := json.Unmarshal([]byte(c.Body), &body); err != nil {
			return nil, fmt.Errorf("pawl: read captured request %d: %w", i+1, err)
		}
		history, err := parseItems(c.History)
		if err != nil {
			return nil, err
		}
		v := Delivery{Request: i + 1, Previous: body.Previous}
		for _, it := range body.Input {
			if h := it.Head(); h.Type == item.TypeFunctionCallOutput {
				v.Outputs = append(v.Outputs, toolOf(history, h.CallID))
			}
		}
		if len(v.Outputs) > 0 {
			out = append(out, v)
		}
	}
	return out, nil
}

// toolOf finds the tool of a call.
func toolOf(items []item.Item, call string) string {
	for _, it := range items {
		if h := it.Head(); h.Type == item.TypeFunctionCall && h.CallID == call {
			return h.Name
		}
	}
	return call
}

func parseItems(raws []string) ([]item.Item, error) {
	items := make([]item.Item, len(raws))
	for i, raw := range raws {
		it, err := item.ParseString(raw)
		if err != nil {
			return nil, err
		}
		items[i] = it
	}
	return items, nil
}

// responder plays the model for a run and keeps what it was asked.
func (c captures) responder(run string) pawltest.Responder {
	return func(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
		if err := c.save(run, r.History(), r.Body); err != nil {
			return pawltest.ResponsesReply{Refuse: &pawltest.ResponsesError{Status: http.StatusInternalServerError, Message: err.Error()}}
		}
		return answer(r)
	}
}

// transport keeps what is sent to a real server, once that has accepted it.
type transport struct {
	captures captures
	run      string
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/responses") || r.Body == nil {
		return t.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	out.Body = io.NopCloser(bytes.NewReader(body))
	res, err := t.next.RoundTrip(out)
	if err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	if err := t.keep(body); err != nil {
		res.Body.Close()
		return nil, err
	}
	return res, nil
}

func (t *transport) keep(body []byte) error {
	var sent struct {
		Input []item.Item `json:"input"`
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return err
	}
	return t.captures.save(t.run, sent.Input, body)
}
