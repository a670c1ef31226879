// Package cli is the command line of pawl: its commands, what they print and their exit codes. It is the only
// place that reads the environment.
package cli

import (
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
)

// app is one invocation of the command.
type app struct {
	screen *screen
	prompt *prompter
	errors io.Writer
	out    io.Writer
	self   string // how this program is called, for hints
	asked  *cobra.Command

	// Persistent flags.
	store string
	json  bool
}

// Main runs the command line and returns the exit code. args[0] is the program.
func Main(args []string, stdin, stdout, stderr *os.File) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal stops the driving in good order; a second one ends the process at once.
	context.AfterFunc(ctx, stop)

	a := &app{
		screen: newScreen(stdout, isTerminal(stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"),
		errors: stderr,
		out:    stdout,
		self:   callMe(args[0]),
	}
	if isTerminal(stdout) {
		a.screen.width = width(stdout)
	}
	if isTerminal(stdin) && isTerminal(stdout) {
		a.prompt = newPrompter(stdin, a.screen)
	}
	root := a.root()
	root.SetArgs(args[1:])
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return a.finish(ctx, root.ExecuteContext(ctx))
}

func isTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()) }

// width is how many characters a line of the terminal has, 0 if nobody knows.
func width(terminal *os.File) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return windowWidth(terminal)
}

// callMe says how a person who is where we are calls this program: in a clone with go run, else as it was called.
func callMe(arg0 string) string {
	mod, err := os.ReadFile("go.mod")
	if err == nil && strings.HasPrefix(string(mod), "module github.com/pawl-agents/pawl\n") {
		if _, err := os.Stat(filepath.Join("cmd", "pawl", "main.go")); err == nil {
			return "go run ./cmd/pawl"
		}
	}
	if found, err := exec.LookPath(filepath.Base(arg0)); err == nil && found == arg0 {
		return filepath.Base(arg0)
	}
	return quote(arg0)
}

// command is a hint: a command line that works as it is printed.
func (a *app) command(words ...string) string {
	line := a.self
	for _, w := range words {
		line += " " + quote(w)
	}
	if a.store != defaultStore {
		line += " --store " + quote(a.storeName())
	}
	return line
}

// quote quotes a word for a POSIX shell, if it needs that.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// me names the person at the terminal, for the ledger.
func me() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "somebody at the terminal"
}
