package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudo terminal (pts(4)). What is written to the first file is typed, what is printed can be
// read from it; the second is the terminal's end for a process.
func openTerminal(t *testing.T) (*os.File, *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// person types answers when questions appear.
type person struct {
	*testing.T
	dir    string
	master *os.File
	cmd    *exec.Cmd
	seen   string
}

// sit starts the command in a terminal of its own.
func sit(t *testing.T, dir string, env []string, args ...string) *person {
	t.Helper()
	master, slave := openTerminal(t)
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = dir, cleanEnv(env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	// A test that waits for what does not come ends with the process.
	watchdog := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	t.Cleanup(func() { watchdog.Stop() })
	return &person{T: t, dir: dir, master: master, cmd: cmd}
}

// at waits until the text appears behind what was seen before, and types the answer.
func (p *person) at(text, answer string) {
	p.Helper()
	buf := make([]byte, 4096)
	for !strings.Contains(p.seen, text) {
		n, err := p.master.Read(buf)
		p.seen += string(buf[:n])
		if err != nil {
			p.Fatalf("%q does not come: %v; on the screen:\n%s", text, err, p.seen)
		}
	}
	p.seen = p.seen[strings.Index(p.seen, text)+len(text):]
	if _, err := p.master.WriteString(answer); err != nil {
		p.Fatal(err)
	}
}

// leaves waits for the end of the process, checks its exit code and returns what was left to see.
func (p *person) leaves(code int) string {
	p.Helper()
	rest, err := io.ReadAll(p.master)
	if err != nil && !errors.Is(err, syscall.EIO) { // how a terminal without a process ends
		p.Fatal(err)
	}
	text := p.seen + string(rest)
	_ = p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.Fatalf("exit code %d, want %d\n%s", got, code, text)
	}
	return text
}

// refunds are the amounts that the shop has booked.
func (p *person) refunds() string {
	p.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.dir, "pawl-demo", "shop.db"))
	if err != nil {
		p.Fatal(err)
	}
	defer db.Close()
	got, err := column(db, `SELECT cents FROM refunds ORDER BY cents`)
	if err != nil {
		p.Fatal(err)
	}
	return strings.Join(got, " ")
}

func TestNarrowTerminal(t *testing.T) {
	p := sit(t, t.TempDir(), []string{"COLUMNS=40", "NO_COLOR=1"}, "demo", "--yes")
	if text := strings.ReplaceAll(p.leaves(0), "\r\n", "\n"); !strings.Contains(text, "  files     ./pawl-demo: pawl.db (the\n            runs), shop.db (a shop with\n") ||
		!strings.Contains(text, "\n  in session  1\n") {
		t.Errorf("on the screen:\n%s", text)
	}
}

func TestTerminal(t *testing.T) {
	const question = "Approve it? [y]es, [n]o, [e]dit:"
	type step struct{ at, answer string }
	for name, tt := range map[string]struct {
		steps   []step
		exit    int
		refunds string
		want    string // on the screen, behind the last step
	}{
		"yes":            {[]step{{question, "y\n"}}, 0, "690 6250", "Refunded $6.90 and $62.50"},
		"first nonsense": {[]step{{question, "maybe\n"}, {question, "\n"}, {question, "YES\n"}}, 0, "690 6250", "Refunded $6.90 and $62.50"},
		"no":             {[]step{{question, "n\n"}, {"Why not?", "no photo\n"}}, 0, "690", "no photo"},
		"no, silently":   {[]step{{question, "no\n"}, {"Why not?", "\n"}}, 0, "690", "The rest was not approved"},
		"edit":           {[]step{{question, "e\n"}, {"order [5321]:", "\n"}, {"cents [6250]:", "5100\n"}, {"reason [", "half of it\n"}}, 0, "690 5100", "$51.00"},
		"edit, mistyped": {[]step{{question, "e\n"}, {"order [5321]:", "\n"}, {"cents [6250]:", "many\n"}, {"cents [6250]:", "5200\n"}, {"reason [", "\n"}}, 0, "690 5200", "$52.00"},
		"edit, too little": {[]step{{question, "e\n"}, {"order [5321]:", "\n"}, {"cents [6250]:", "-5\n"}, {"reason [", "\n"},
			{"That does not fit: the arguments for 3.2#0: cents: expected an integer of at least 1, got -5", ""},
			{question, "e\n"}, {"order [5321]:", "\n"}, {"cents [6250]:", "5300\n"}, {"reason [", "\n"}}, 0, "690 5300", "cents=5300, order=5321, reason=\"artic... (edited)  1 "},
		"end of input":     {[]step{{question, "\x04"}}, 3, "690", "pawl approve ticket-1001"},
		"Ctrl-C":           {[]step{{question, "\x03"}}, 130, "690", "pawl resume ticket-1001"},
		"Ctrl-C in answer": {[]step{{question, "n\n"}, {"Why not?", "\x03"}}, 130, "690", "pawl resume ticket-1001"},
	} {
		t.Run(name, func(t *testing.T) {
			p := sit(t, t.TempDir(), nil, "demo")
			for _, s := range tt.steps {
				p.at(s.at, s.answer)
			}
			if rest := p.leaves(tt.exit); !strings.Contains(rest, tt.want) {
				t.Errorf("%q is not on the screen:\n%s", tt.want, rest)
			}
			if got := p.refunds(); got != tt.refunds {
				t.Errorf("refunds of %s, want %s", got, tt.refunds)
			}
		})
	}
}

func TestTerminalInDoubt(t *testing.T) {
	const question = "Did it happen? [y]es, [n]o: run it again, [u]nknown: tell the model:"
	for name, tt := range map[string]struct {
		kill  string
		steps [][2]string
		mails string
		want  string
	}{
		"it happened":  {"after:mail", [][2]string{{question, "y\n"}, {"What did it return?", "sent\n"}}, "1", "send_mail: sent"},
		"it did not":   {"before:mail", [][2]string{{question, "no\n"}}, "1", "send_mail: sent"},
		"nobody knows": {"after:mail", [][2]string{{question, "?\n"}, {question, "u\n"}}, "1", "send_mail: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(binary, "demo", "--yes", "--kill-at", tt.kill)
			cmd.Dir, cmd.Env = dir, cleanEnv()
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exitCode(exit) != exitKilled {
				t.Fatalf("the demo was not killed: %v", err)
			}
			p := sit(t, dir, nil, "resume", "ticket-1001")
			for _, s := range tt.steps {
				p.at(s[0], s[1])
			}
			if rest := p.leaves(0); !strings.Contains(rest, tt.want) {
				t.Errorf("%q is not on the screen:\n%s", tt.want, rest)
			}
			db, err := sql.Open("sqlite", filepath.Join(dir, "pawl-demo", "shop.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if got, err := column(db, `SELECT count(*) FROM mails`); err != nil || got[0] != tt.mails {
				t.Errorf("%v mails, want %s, %v", got, tt.mails, err)
			}
		})
	}
}

// Colours are for terminals, and only for people who want them.
func TestColours(t *testing.T) {
	for name, tt := range map[string]struct {
		env    []string
		colour bool
	}{
		"terminal":      {nil, true},
		"NO_COLOR":      {[]string{"NO_COLOR=1"}, false},
		"dumb terminal": {[]string{"TERM=dumb"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := sit(t, t.TempDir(), tt.env, "demo", "--yes")
			if got := strings.Contains(p.leaves(0), "\x1b["); got != tt.colour {
				t.Errorf("colours: %v, want %v", got, tt.colour)
			}
		})
	}
}

// A terminal that asks for JSON is not asked anything.
func TestTerminalJSON(t *testing.T) {
	p := sit(t, t.TempDir(), nil, "demo", "--json")
	if rest := p.leaves(3); !strings.Contains(rest, `"code": "waiting"`) || strings.Contains(rest, "Approve it?") {
		t.Errorf("on the screen:\n%s", rest)
	}
}
