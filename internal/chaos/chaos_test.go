package chaos

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/item"
)

func TestMain(m *testing.M) {
	if IsWorker(os.Args) {
		Main(Host{})
	}
	os.Exit(m.Run())
}

// play runs a campaign and returns what it prints.
func play(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	var b bytes.Buffer
	code = Run(t.Context(), Host{}, args, &b, &b)
	return b.String(), code
}

var lastLine = regexp.MustCompile(`(?m)^chaos: (\d+) kills, (\d+) runs, (\d+) effects, (\d+) violations\n\z`)

func TestCampaign(t *testing.T) {
	out, code := play(t, "-duration", "5s", "-dir", t.TempDir())
	last := lastLine.FindStringSubmatch(out)
	if code != 0 || last == nil || last[4] != "0" || slices.Contains(last[1:4], "0") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// The server of the store is killed, too.
func TestCampaignPostgres(t *testing.T) {
	out, code := play(t, "-duration", "15s", "-postgres", "-dir", t.TempDir())
	last := lastLine.FindStringSubmatch(out)
	if code != 0 || last == nil || last[4] != "0" || slices.Contains(last[1:4], "0") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// Whatever is broken on purpose, the campaign says so.
func TestCampaignFindsLies(t *testing.T) {
	for _, tt := range []struct {
		lie  lie
		want string // of what is said
		args []string
	}{
		{lie: liePay, want: "it may happen once, and was begun 2 times"},
		{lie: lieBook, want: "it is booked 1 times, and its outcome says 0"},
		{lie: lieLate, want: "has 2 results"},
		{lie: lieRecover, want: "is said not to have happened"},
		{lie: lieExpiry, want: "ms before its time"},
		{lie: lieDeliver, want: "the result that it took is lost"},
		{lie: lieAlone, want: "it does not come to its end", args: []string{"-patience", "5s"}},
	} {
		t.Run(string(tt.lie), func(t *testing.T) {
			for i := range 8 { // a kill may miss everything that would show the lie, the more so on a machine that is busy
				out, code := play(t, append(tt.args, "-duration", fmt.Sprintf("%ds", 2+2*i), "-lie", string(tt.lie), "-dir", t.TempDir())...)
				if strings.Contains(out, tt.want) {
					if code != 1 {
						t.Errorf("exit code %d", code)
					}
					return
				}
			}
			t.Errorf("no campaign says that %s", tt.want)
		})
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-workers", "0"}, {"now"}, {"-no-such-flag"}, {"-lie", "politely"}} {
		var out bytes.Buffer
		if code := Run(t.Context(), Host{}, args, &out, &out); code != 2 || out.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, &out)
		}
	}
}

func TestUnpaired(t *testing.T) {
	c, o := item.FunctionCallItem("", "c", toolPay, `{}`), item.FunctionOutput("c", "x")
	for _, tt := range []struct {
		history []item.Item
		want    string
	}{
		{[]item.Item{c, o}, ""},
		{[]item.Item{c}, "call c has 0 outputs"},
		{[]item.Item{c, o, o}, "call c has 2 outputs"},
		{[]item.Item{o}, "an output of c, which nobody called, or called twice"},
	} {
		if got := unpaired(tt.history); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
