// Package devtest starts the Temporal server of tests.
package devtest

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Env names the server: what make temporal-devserver prints.
const Env = "PAWL_TEMPORAL_DEVSERVER"

var (
	dir    string
	port   int
	server *exec.Cmd
)

// Server starts the server, once, and returns its address. What it keeps is in a file until Stop.
var Server = sync.OnceValues(func() (address string, err error) {
	if os.Getenv(Env) == "" {
		return "", errors.New(Env + " is not set; the tests need the server that make temporal-devserver builds and names")
	}
	if dir, err = os.MkdirTemp("", "pawl-temporal-"); err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	return start()
})

func start() (address string, err error) {
	server = exec.Command(os.Getenv(Env), "-port", strconv.Itoa(port), "-db", filepath.Join(dir, "temporal.db"))
	server.Stderr, server.SysProcAttr = os.Stderr, ChildOf()
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		return "", err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "READY "); ok {
			return address, nil
		}
	}
	return "", errors.New("the server did not start")
}

// Stop ends the server, if it was started.
func Stop() {
	if server == nil {
		return
	}
	server.Process.Signal(os.Interrupt)
	server.Wait()
	os.RemoveAll(dir)
}
