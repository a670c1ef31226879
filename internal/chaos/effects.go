package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The effect log is one file for each run. A tool's body adds a line when it is entered and one when it has done what it
// does; between the two it takes its time. A body that only asks a person adds a line of its own kind.
const (
	effectBegin = "begin"
	effectEnd   = "end"
	effectAsk   = "ask"
)

// effect is a line of the effect log.
type effect struct {
	At      string `json:"at"`
	Tool    string `json:"tool"`
	Call    string `json:"call"` // the model's id of the call, which here is never used twice
	Key     string `json:"key"`
	Attempt int    `json:"attempt"`
	PID     int    `json:"pid"`
	Time    int64  `json:"time"` // Unix milliseconds
}

// effectLog is the directory of the log.
type effectLog string

func (l effectLog) file(run string) string { return filepath.Join(string(l), run+".jsonl") }

// record adds a line. A process may die in the middle of the write, so a line begins with its own newline: what was
// torn does not spoil the next one.
func (l effectLog) record(run string, e effect) error {
	return l.add(run, e, func() error { return nil })
}

// begin is record for the first line of an attempt. The runner enters a body only within its time, and once that is over
// somebody may look here, see that nothing began, and have the call run again. A process that was stopped in between must not
// begin it after all; no library can see to that, but a far side that looks at the clock can.
func (l effectLog) begin(ctx context.Context, run string, e effect) error {
	return l.add(run, e, func() error {
		if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
			return context.DeadlineExceeded
		}
		return nil
	})
}

// add adds a line if, right before, may says that it may.
func (l effectLog) add(run string, e effect, may func() error) error {
	e.PID, e.Time = os.Getpid(), time.Now().UnixMilli()
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(l.file(run), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	line = append(append([]byte{'\n'}, line...), '\n')
	if err = may(); err == nil {
		_, err = f.Write(line)
	}
	return errors.Join(err, f.Close())
}

// read returns the lines of a run. A torn line is none: its writer died before its effect.
func (l effectLog) read(run string) ([]effect, error) {
	data, err := os.ReadFile(l.file(run))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []effect
	for line := range bytes.Lines(data) {
		var e effect
		if json.Unmarshal(line, &e) == nil && e.At != "" {
			list = append(list, e)
		}
	}
	return list, err
}

// happened says what the log has of a call: whether its body was entered, and whether it got to its end.
func (l effectLog) happened(run, call string) (begun, ended bool, err error) {
	list, err := l.read(run)
	for _, e := range list {
		if e.Call == call && e.At != effectAsk {
			begun = true
			ended = ended || e.At == effectEnd
		}
	}
	return begun, ended, err
}

// key returns the key of a call that has begun, empty if it has not.
func (l effectLog) key(run, call string) (string, error) {
	list, err := l.read(run)
	for _, e := range list {
		if e.Call == call {
			return e.Key, nil
		}
	}
	return "", err
}
