package cli

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWidth(t *testing.T) {
	t.Setenv("COLUMNS", "")
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 40}); err != nil {
		t.Fatal(err)
	}
	if got := width(terminal); got != 40 {
		t.Errorf("the terminal has %d columns", got)
	}
	for value, want := range map[string]int{"60": 60, "many": 40, "-1": 40, "0": 40} {
		t.Setenv("COLUMNS", value)
		if got := width(terminal); got != want {
			t.Errorf("COLUMNS=%s: %d, want %d", value, got, want)
		}
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got := windowWidth(file); got != 0 {
		t.Errorf("a file has %d columns", got)
	}
}
