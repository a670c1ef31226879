package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/models/openai"
)

// httpRun is a run over HTTP: its shape, and how it is driven.
type httpRun struct {
	turns, calls  int
	chain, stream bool
}

// pawl returns the run as Pawl drives it, each with a Runner of its own.
func (h httpRun) pawl(s *server) work {
	agent := &pawl.Agent{Name: "Bench", Instructions: pawl.Text(instructions), Tools: []pawl.Tool{lookupTool()},
		Model: openai.New(openai.Options{BaseURL: s.url(h.turns, h.calls), APIKey: "sk-bench"}).Responses("gpt-bench")}
	opts := &pawl.RunOptions{MaxTurns: -1, AutoPreviousResponseID: h.chain}
	return func() (int, error) {
		var r pawl.Runner
		var res *pawl.Result
		var err error
		if h.stream {
			res, err = pawl.Collect(r.Stream(context.Background(), agent, pawl.UserText(question), opts))
		} else {
			res, err = r.Run(context.Background(), agent, pawl.UserText(question), opts)
		}
		if err != nil {
			return 0, err
		}
		return h.turns + 1, h.check(res.FinalOutput, res.Turns)
	}
}

func (h httpRun) check(final string, turns int) error {
	if final != answer || turns != h.turns+1 {
		return fmt.Errorf("the run ended with %q after %d turns", final, turns)
	}
	return nil
}

// floor returns the run as the smallest honest loop drives it: net/http and encoding/json, no library.
func (h httpRun) floor(s *server) work {
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	return func() (int, error) {
		l := &loop{httpRun: h, client: client, url: s.url(h.turns, h.calls) + "/responses"}
		final, n, err := l.run()
		if err != nil {
			return 0, err
		}
		return h.turns + 1, h.check(final, n)
	}
}

// loop is a hand-written agent loop. Its body is a head, the items so far, and a suffix.
type loop struct {
	httpRun
	client *http.Client
	url    string
	head   int
	body   []byte
}

// reply is what the loop reads of a response.
type reply struct {
	ID     string            `json:"id"`
	Output []json.RawMessage `json:"output"`
}

// replyItem is what the loop reads of an item.
type replyItem struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Arguments string `json:"arguments"`
	Content   []struct {
		Text string `json:"text"`
	} `json:"content"`
}

func (l *loop) run() (final string, turns int, err error) {
	l.body = append(l.body, `{"model":"gpt-bench","instructions":`+quoted(instructions)+
		`,"tools":[{"type":"function","name":"`+toolName+`","description":"`+toolText+`","parameters":`+toolSchema+`,"strict":true}],"input":[`...)
	l.head = len(l.body)
	l.add([]byte(`{"type":"message","role":"user","content":` + quoted(question) + `}`))
	previous := ""
	for turns = 1; ; turns++ {
		res, err := l.ask(previous)
		if err != nil {
			return "", turns, err
		}
		if l.chain {
			previous, l.body = res.ID, l.body[:l.head]
		}
		final, done, err := l.act(res.Output)
		if done || err != nil {
			return final, turns, err
		}
	}
}

// add appends an item to the body.
func (l *loop) add(raw []byte) {
	if len(l.body) > l.head {
		l.body = append(l.body, ',')
	}
	l.body = append(l.body, raw...)
}

// ask sends the body and reads the answer.
func (l *loop) ask(previous string) (*reply, error) {
	items := len(l.body)
	l.body = append(l.body, ']')
	if previous != "" {
		l.body = append(l.body, `,"previous_response_id":"`+previous+`"`...)
	}
	if l.stream {
		l.body = append(l.body, `,"stream":true`...)
	}
	l.body = append(l.body, '}')
	req, err := http.NewRequest(http.MethodPost, l.url, bytes.NewReader(l.body))
	if err != nil {
		return nil, err
	}
	l.body = l.body[:items]
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer sk-bench")
	res, err := l.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, errors.New(res.Status)
	}
	if l.stream {
		return readStream(res.Body)
	}
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	r := &reply{}
	return r, json.Unmarshal(data, r)
}

// act keeps the items, runs the calls and keeps their outputs.
func (l *loop) act(items []json.RawMessage) (final string, done bool, err error) {
	var outputs [][]byte
	for _, raw := range items {
		if !l.chain {
			l.add(raw)
		}
		var it replyItem
		if err := json.Unmarshal(raw, &it); err != nil {
			return "", false, err
		}
		if it.Type == "message" {
			return it.Content[0].Text, true, nil
		}
		out, err := runTool(it.CallID, it.Arguments)
		if err != nil {
			return "", false, err
		}
		outputs = append(outputs, out)
	}
	for _, out := range outputs {
		l.add(out)
	}
	return "", false, nil
}

// runTool parses the arguments, runs the tool and writes the output's item.
func runTool(callID, args string) ([]byte, error) {
	var in lookupArgs
	if err := json.Unmarshal([]byte(args), &in); err != nil {
		return nil, err
	}
	out, err := lookup(in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(outputItem{"function_call_output", callID, out})
}

// readStream reads server-sent events until the last. Every event is parsed, as a loop must that shows deltas.
func readStream(body io.Reader) (*reply, error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	var shown strings.Builder
	var last *reply
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var ev struct {
			Type     string `json:"type"`
			Delta    string `json:"delta"`
			Response reply  `json:"response"`
		}
		if err := json.Unmarshal(data, &ev); err != nil {
			return nil, err
		}
		shown.WriteString(ev.Delta)
		if ev.Type == "response.completed" {
			last = &ev.Response
		}
	}
	if last == nil {
		return nil, errors.New("the stream broke off")
	}
	return last, lines.Err()
}
