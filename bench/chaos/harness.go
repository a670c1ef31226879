package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// The points at which an adapter is killed: when the request arrives that it makes there. Only "after the payment" is
// killed when the request has been carried out.
const (
	atFirstRequest  = "the model is asked"
	atPause         = "the pause is saved"
	beforePayment   = "before the payment"
	afterPayment    = "after the payment"
	atSecondRequest = "the model is asked again"
	atEnd           = "the end is not yet reported"
	nowhere         = "" // for a job without a kill
)

var points = []string{atFirstRequest, atPause, beforePayment, afterPayment, atSecondRequest, atEnd}

// outcome is what came of one job.
type outcome struct {
	effects  int  // payments
	keyed    int  // payments, if the bank had honoured the key
	lost     bool // it ended without a payment, or the model was not told of one
	person   bool // somebody had to look what happened
	stuck    bool
	repeated int // requests to the model beyond the two that it takes
	text     string
}

// job is one payment. It is the harness's side of an adapter.
type job struct {
	point string
	kills int // left

	mu       sync.Mutex
	cmd      *exec.Cmd
	requests int
	told     bool // the model was told of the payment
	effects  int
	keys     map[string]bool
}

// body is what adapters send.
type body struct {
	Outputs []string `json:"outputs"` // what the model is told of its calls
	Key     string   `json:"key"`     // of a payment
}

// reply is what they get.
type reply struct {
	Call string `json:"call,omitempty"` // the id of a call of pay
	Text string `json:"text,omitempty"` // the model's last words, or what the payment returned
}

const (
	paidText = "paid"
	lastText = "The customer has been paid."
)

// ServeHTTP implements http.Handler.
func (j *job) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b body
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var a reply
	at := ""
	switch r.URL.Path {
	case "/model":
		j.requests++
		at = atFirstRequest
		a.Call = fmt.Sprintf("call_%d", j.requests)
		if len(b.Outputs) > 0 {
			at, a = atSecondRequest, reply{Text: lastText}
			j.told = j.told || strings.Contains(b.Outputs[0], paidText)
		}
	case "/paused":
		at = atPause
	case "/pay":
		if j.die(beforePayment) {
			return
		}
		j.effects++
		j.keys[b.Key] = true
		at, a.Text = afterPayment, paidText
	case "/finished":
		at = atEnd
	}
	if !j.die(at) {
		json.NewEncoder(w).Encode(a)
	}
}

// die kills the adapter if this is the point.
func (j *job) die(at string) bool {
	if at != j.point || j.kills == 0 {
		return false
	}
	j.kills--
	j.cmd.Process.Kill()
	return true
}

// The steps of a job.
const (
	stepStart    = "start"    // begin, or find out how it stands
	stepApprove  = "approve"  // approve what waits, and go on
	stepHappened = "happened" // say that a payment in doubt was made, and go on
	stepNot      = "did-not"  // say that it was not
)

// standing is what an adapter says at its end, a line of JSON on its standard output.
type standing struct {
	State string `json:"state"` // waiting, doubt, finished
	Text  string `json:"text"`
}

// tries is how often an operator starts an adapter before the run counts as stuck.
const tries = 8

// play plays one job to its end.
func play(ctx context.Context, s system, point string, kills int) (o outcome, err error) {
	dir, err := os.MkdirTemp("", "chaos")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	j := &job{point: point, kills: kills, keys: map[string]bool{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return o, err
	}
	server := &http.Server{Handler: j}
	defer server.Close()
	go server.Serve(listener)
	step := stepStart
	for range tries {
		st, killed, err := j.run(ctx, s, step, dir, "http://"+listener.Addr().String())
		if err != nil {
			return o, err
		}
		switch {
		case killed: // the same again
		case st.State == "finished":
			return j.outcome(o, st.Text), nil
		case st.State == "waiting":
			step = stepApprove
		case st.State == "doubt":
			o.person = true
			if step = stepNot; j.effects > 0 {
				step = stepHappened
			}
		}
	}
	o.stuck = true
	return j.outcome(o, ""), nil
}

func (j *job) outcome(o outcome, text string) outcome {
	j.mu.Lock()
	defer j.mu.Unlock()
	o.effects, o.keyed, o.repeated, o.text = j.effects, len(j.keys), max(j.requests-2, 0), text
	o.lost = !o.stuck && (j.effects == 0 || !j.told)
	return o
}

// run runs an adapter for one step. An adapter that fails is an error unless it was killed.
func (j *job) run(ctx context.Context, s system, step, dir, url string) (st standing, killed bool, err error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, s.command[0], append(s.command[1:], step, dir, url)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	j.mu.Lock()
	j.cmd = cmd
	err = cmd.Start() // under the lock, so that no request finds a command that has not started
	j.mu.Unlock()
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == -1 && ctx.Err() == nil {
		return st, true, nil
	}
	if err != nil {
		return st, false, fmt.Errorf("%s: %w: %s", step, err, &errs)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &st); err != nil {
		return st, false, fmt.Errorf("%s: %w: %s%s", step, err, &out, &errs)
	}
	return st, false, nil
}
