package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/engine/temporal"
	"github.com/pawl-agents/pawl/engine/temporal/internal/devtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	devtest.Stop()
	os.Exit(code)
}

func TestRefund(t *testing.T) {
	address, err := devtest.Server()
	if err != nil {
		t.Fatal(err)
	}
	s, err := open(address, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	w, err := temporal.NewWorker(s.client, s.runner, s.opts)
	if err == nil {
		err = w.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	say := func(in string, args ...string) string {
		t.Helper()
		var out strings.Builder
		if err := s.run(t.Context(), args, strings.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := say("", "pay", "7", "100"); got != "Done: paid 100 cents for order 7.\n" {
		t.Errorf("a small refund: %q", got)
	}
	if got := say("y\n", "pay", "8", "9000"); !strings.HasSuffix(got, `refund {"order":"8","cents":9000}? [y/n] Done: paid 9000 cents for order 8.`+"\n") {
		t.Errorf("an approved refund: %q", got)
	}
	waits := say("", "pay", "9", "9000")
	run := regexp.MustCompile(`refund approve (\S+)`).FindStringSubmatch(waits)
	if run == nil {
		t.Fatalf("a refund that waits: %q", waits)
	}
	say("", "approve", run[1])
	if res, err := s.runner.Resume(t.Context(), nil, pawl.RunID(run[1]), nil); err != nil || res.FinalOutput != "Done: paid 9000 cents for order 9." {
		t.Errorf("%+v, %v", res, err)
	}
	if err := s.run(t.Context(), []string{"pay"}, nil, nil); err == nil {
		t.Error("no usage")
	}
}
