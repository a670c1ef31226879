package pawltest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Effect is one thing a tool did. A tool fills in what it wants to be told apart by.
type Effect struct {
	Tool string `json:"tool"`
	// Key is the call's idempotency key, CallID the model's id of it, Attempt the attempt.
	Key       string `json:"key,omitempty"`
	CallID    string `json:"call_id,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

// EffectLog records what tools did, one line a time, in a file that neither a run nor its store knows of. It counts
// attempts, not keys, so it tells an effect that happened twice from one that happened once. It outlives the process, and
// any number of goroutines and processes may write to one file.
type EffectLog struct{ path string }

// NewEffectLog returns an empty log in a directory of the test's.
func NewEffectLog(tb testing.TB) *EffectLog {
	tb.Helper()
	return OpenEffectLog(filepath.Join(tb.TempDir(), "effects.jsonl"))
}

// OpenEffectLog returns the log in a file, which the first record makes if there is none. Its directory must exist.
func OpenEffectLog(path string) *EffectLog { return &EffectLog{path: path} }

// Path returns the file, for another process to open.
func (l *EffectLog) Path() string { return l.path }

// Record adds an effect. When it returns nil the effect is in the file and survives the death of the process.
func (l *EffectLog) Record(e Effect) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("pawltest: effect log: %w", err)
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("pawltest: effect log: %w", err)
	}
	_, err = f.Write(append(line, '\n')) // one write, so that lines of other writers do not mix with it
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("pawltest: effect log: %w", err)
	}
	return nil
}

// Effects returns what was recorded, in order.
func (l *EffectLog) Effects() ([]Effect, error) {
	data, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pawltest: effect log: %w", err)
	}
	var list []Effect
	scan := bufio.NewScanner(bytes.NewReader(data))
	scan.Buffer(nil, len(data)+1)
	for scan.Scan() {
		var e Effect
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("pawltest: effect log: %w", err)
		}
		list = append(list, e)
	}
	return list, nil
}

// Count returns how often a tool had an effect. It fails the test if the log cannot be read.
func (l *EffectLog) Count(tb testing.TB, tool string) int {
	tb.Helper()
	effects, err := l.Effects()
	if err != nil {
		tb.Fatal(err)
	}
	n := 0
	for _, e := range effects {
		if e.Tool == tool {
			n++
		}
	}
	return n
}
