package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/internal/chaos"
)

func TestMain(m *testing.M) {
	if chaos.IsWorker(os.Args) {
		chaos.Main(host)
	}
	os.Exit(m.Run())
}

// play runs a campaign and returns what it prints.
func play(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	var b bytes.Buffer
	code = chaos.Run(t.Context(), host, append(args, "-dir", t.TempDir()), &b, &b)
	return b.String(), code
}

var lastLine = regexp.MustCompile(`(?m)^chaos: (\d+) kills, (\d+) runs, (\d+) effects, (\d+) violations\n\z`)

func TestCampaign(t *testing.T) {
	out, code := play(t, "-duration", "10s", "-parallel", "2")
	last := lastLine.FindStringSubmatch(out)
	if code != 0 || last == nil || last[4] != "0" || slices.Contains(last[1:4], "0") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// A tool that is made again although it must not be is found.
func TestCampaignFindsLie(t *testing.T) {
	var out string
	for range 3 { // a campaign may have no payment that dies
		var code int
		out, code = play(t, "-duration", "10s", "-parallel", "2", "-lie", "pay")
		if strings.Contains(out, "it may happen once, and was begun 2 times") {
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			return
		}
	}
	t.Errorf("no campaign says that a payment was made twice; the last:\n%s", out)
}

// What the command pawl decides would not reach the engine.
func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-postgres"}, {"-pawl", "pawl"}} {
		if out, code := play(t, args...); code != 2 || out == "" {
			t.Errorf("%v: exit code %d, %q", args, code, out)
		}
	}
}
