// Package devtest starts the Temporal server of tests.
package devtest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// Env names the server: what make temporal-devserver prints.
const Env = "PAWL_TEMPORAL_DEVSERVER"

// Instance is a server that keeps what it has in a file. Its methods belong to one goroutine.
type Instance struct {
	// File is where it keeps what it has, Address where it is once it was started.
	File, Address string

	cmd *exec.Cmd
}

// Start starts the server, where it was if it ran before, and waits until it is ready.
func (s *Instance) Start() error {
	path := os.Getenv(Env)
	if path == "" {
		return errors.New(Env + " does not name the server that make temporal-devserver builds and whose path it prints")
	}
	_, port, _ := strings.Cut(s.Address, ":")
	if port == "" { // a port of its choice might be somebody else's when it is started again
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		_, port, _ = strings.Cut(l.Addr().String(), ":")
		l.Close()
	}
	s.cmd = exec.Command(path, "-port", port, "-db", s.File, "-log", "fatal")
	s.cmd.Stderr, s.cmd.SysProcAttr = os.Stderr, ChildOf()
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.cmd = nil
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ready := strings.CutPrefix(strings.TrimSpace(line), "READY ")
	if !ready {
		return errors.Join(fmt.Errorf("the server says %q: %w", line, err), s.Kill())
	}
	s.Address = address
	return nil
}

// Kill ends the server with SIGKILL.
func (s *Instance) Kill() error { return s.end(syscall.SIGKILL) }

// Stop lets the server end by itself. One that does not run is stopped.
func (s *Instance) Stop() error { return s.end(os.Interrupt) }

func (s *Instance) end(sig os.Signal) error {
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Signal(sig)
	_ = s.cmd.Wait() // it was killed, or says what it did not come to
	s.cmd = nil
	return err
}

var shared Instance

// Server starts a server that the tests of a package share, once, and returns its address. What it keeps is in a file until Stop.
var Server = sync.OnceValues(func() (address string, err error) {
	dir, err := os.MkdirTemp("", "pawl-temporal-")
	if err != nil {
		return "", err
	}
	shared.File = filepath.Join(dir, "temporal.db")
	err = shared.Start()
	return shared.Address, err
})

// Stop ends the server that Server started, if it did.
func Stop() {
	if shared.File == "" {
		return
	}
	_ = shared.Stop()
	os.RemoveAll(filepath.Dir(shared.File))
}
