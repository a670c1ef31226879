package cli

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func readDocs(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// The page has every command and every flag that the help texts show.
func TestDocsCommands(t *testing.T) {
	page := readDocs(t)
	for _, cmd := range (&app{self: "pawl"}).root().Commands() {
		if cmd.Name() != "help" && cmd.Name() != "completion" && !strings.Contains(page, "| `pawl "+cmd.Use+"` |") {
			t.Errorf("docs/cli.md does not have the command %q", cmd.Use)
		}
		visible(cmd, func(f *pflag.Flag) {
			if !strings.Contains(page, "`--"+f.Name) {
				t.Errorf("docs/cli.md does not have the flag --%s of %s", f.Name, cmd.Name())
			}
		})
	}
}

func visible(cmd *cobra.Command, f func(*pflag.Flag)) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			f(flag)
		}
	})
}

// The page has the exit codes as the help text has them, and the codes of errors as the command prints them.
func TestDocsCodes(t *testing.T) {
	page := readDocs(t)
	for _, line := range regexp.MustCompile(`(?m)^  (\d+) +(.*)$`).FindAllStringSubmatch(exitCodes, -1) {
		if row := fmt.Sprintf("| %s | %s |", line[1], line[2]); !strings.Contains(page, row) {
			t.Errorf("docs/cli.md does not have the row %q", row)
		}
	}
	want := map[int][]string{exitFailed: {"failed"}, exitUsage: {"usage"}, exitInterrupted: {"interrupted"}}
	for _, k := range kinds {
		if !slices.Contains(want[k.exit], k.code) {
			want[k.exit] = append(want[k.exit], k.code)
		}
	}
	for exit, codes := range want {
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| %d \\| (`.*`) \\|$", exit)).FindStringSubmatch(page)
		if row == nil {
			t.Errorf("docs/cli.md has no error codes for exit %d", exit)
			continue
		}
		got := strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ")
		slices.Sort(got)
		slices.Sort(codes)
		if !slices.Equal(got, codes) {
			t.Errorf("docs/cli.md has the codes %v for exit %d, want %v", got, exit, codes)
		}
	}
}
