package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// all are the systems, with the harness built as it is run.
func all(t *testing.T) []system {
	t.Helper()
	self := filepath.Join(t.TempDir(), "chaos")
	if out, err := exec.Command("go", "build", "-o", self, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	list, err := systems("js")
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if exe, err := os.Executable(); err == nil && list[i].command[0] == exe {
			list[i].command[0] = self
		}
	}
	return list
}

// Every adapter pauses, is approved in another process, pays once, tells the model of it, and ends; asked again, it says
// the same.
func TestResumeWorks(t *testing.T) {
	for _, s := range all(t) {
		t.Run(s.name, func(t *testing.T) {
			o, err := play(t.Context(), s, nowhere, 0)
			want := outcome{effects: 1, keyed: 1, text: lastText}
			if o != want || err != nil {
				t.Errorf("got  %+v, %v\nwant %+v", o, err, want)
			}
		})
	}
}

// Every adapter survives a death that every system should survive: at the pause that it had saved, it pays once.
func TestPauseSurvives(t *testing.T) {
	for _, s := range all(t) {
		t.Run(s.name, func(t *testing.T) {
			o, err := play(t.Context(), s, atPause, 1)
			want := outcome{effects: 1, keyed: 1, text: lastText}
			if o != want || err != nil {
				t.Errorf("got  %+v, %v\nwant %+v", o, err, want)
			}
		})
	}
}

// The harness kills: the adapter dies once, and the model is asked once more.
func TestKills(t *testing.T) {
	for _, s := range all(t) {
		t.Run(s.name, func(t *testing.T) {
			from := time.Now()
			o, err := play(t.Context(), s, atFirstRequest, 1)
			want := outcome{effects: 1, keyed: 1, repeated: 1, text: lastText}
			if o != want || err != nil {
				t.Errorf("got  %+v, %v\nwant %+v (after %v)", o, err, want, time.Since(from))
			}
		})
	}
}
