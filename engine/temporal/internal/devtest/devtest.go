// Package devtest starts the Temporal server of tests.
package devtest

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Env names the server: what make temporal-devserver prints.
const Env = "PAWL_TEMPORAL_DEVSERVER"

var stop = func() {}

// Server starts the server, once, and returns its address.
var Server = sync.OnceValues(func() (string, error) {
	path := os.Getenv(Env)
	if path == "" {
		return "", errors.New(Env + " is not set; the tests need the server that make temporal-devserver builds and names")
	}
	cmd := exec.Command(path, "-port", "0")
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, ChildOf()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	stop = func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "READY "); ok {
			return address, nil
		}
	}
	return "", errors.New("the server did not start")
})

// Stop ends the server, if it was started.
func Stop() { stop() }
