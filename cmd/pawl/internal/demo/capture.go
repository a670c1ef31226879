package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// last returns what the model saw in the run's newest request, nil if there was none.
func (c captures) last(run string) ([]item.Item, error) {
	names, err := filepath.Glob(filepath.Join(c.dir, run, "*.json"))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	data, err := os.ReadFile(names[len(names)-1]) // Glob sorts
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var v captured
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("%s: %w", names[len(names)-1], err)
	}
	return parseItems(v.History)
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
	var sent struct {
		Input []json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(body, &sent); err == nil {
		err = t.keep(sent.Input, body)
	}
	if err != nil {
		res.Body.Close()
		return nil, err
	}
	return res, nil
}

func (t *transport) keep(input []json.RawMessage, body []byte) error {
	raws := make([]string, len(input))
	for i := range input {
		raws[i] = string(input[i])
	}
	items, err := parseItems(raws)
	if err != nil {
		return err
	}
	return t.captures.save(t.run, items, body)
}
