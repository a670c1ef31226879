//go:build unix

// Package pgtest runs a PostgreSQL server of its own for tests: a new cluster in a temporary
// directory, on a free port of the loopback interface, which is gone at the end.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Server is a server with a cluster of its own. Its methods belong to one goroutine.
type Server struct {
	bin, dir string
	port     int
	settings []string
	as       *syscall.Credential // nil: whoever runs the test
	log      *os.File
	cmd      *exec.Cmd
	exited   chan error
}

// New makes a cluster and starts its server, with settings as "name=value". An error names
// what is missing on the machine.
func New(settings ...string) (*Server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, settings: settings}
	if err := s.init(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// find returns the directory of the newest server on the machine: Debian keeps those out of
// PATH.
func find() (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("missing: a PostgreSQL server (on Debian: apt-get install postgresql)")
}

func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

func (s *Server) init() (err error) {
	if s.dir, err = os.MkdirTemp("", "pawl-pg"); err != nil {
		return err
	}
	if os.Getuid() == 0 { // the server refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(s.dir, uid, gid); err != nil {
			return err
		}
	}
	init := s.command("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C")
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	if s.log, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		return err
	}
	return s.Start()
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = attributes()
	cmd.SysProcAttr.Credential = s.as
	return cmd
}

// Start starts the server, after Kill or Stop, and waits until it answers.
func (s *Server) Start() error {
	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port), "-k", s.dir, "-h", "127.0.0.1"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	cmd := s.command("postgres", args...)
	cmd.Stdout, cmd.Stderr = s.log, s.log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.exited = cmd, make(chan error, 1)
	go func(exited chan<- error) { exited <- cmd.Wait() }(s.exited)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-s.exited:
			s.cmd = nil
			return fmt.Errorf("the server did not start: %v\n%s", err, s.Log())
		default:
		}
		if s.command("pg_isready", "-q", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port)).Run() == nil {
			return nil
		}
	}
	return fmt.Errorf("the server did not answer\n%s", s.Log())
}

// Kill ends the server with SIGKILL, and with it whatever it was doing.
func (s *Server) Kill() error {
	pid := s.cmd.Process.Pid
	if err := s.end(syscall.SIGKILL); err != nil {
		return err
	}
	// Its processes end when they notice; a new server waits for that.
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if !hasChildren(s.data(), pid) {
			return os.Remove(filepath.Join(s.data(), "postmaster.pid"))
		}
	}
	return errors.New("processes of the killed server are left")
}

// hasChildren reports whether processes work in the data directory.
func hasChildren(dir string, except int) bool {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	return slices.ContainsFunc(links, func(link string) bool {
		to, err := os.Readlink(link)
		return err == nil && to == dir && link != fmt.Sprintf("/proc/%d/cwd", except)
	})
}

// StopImmediate ends the server without a checkpoint, as pg_ctl -m immediate does.
func (s *Server) StopImmediate() error { return s.end(syscall.SIGQUIT) }

func (s *Server) end(sig syscall.Signal) error {
	if s.cmd == nil {
		return errors.New("the server does not run")
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		return err
	}
	select {
	case <-s.exited:
		s.cmd = nil
		return nil
	case <-time.After(time.Minute):
		return errors.New("the server does not end")
	}
}

// Close ends the server and removes its cluster.
func (s *Server) Close() error {
	var err error
	if s.cmd != nil {
		err = s.StopImmediate()
	}
	if s.log != nil {
		s.log.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// URL is that of a database of the server.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Create makes an empty database and returns its URL.
func (s *Server) Create(ctx context.Context, database string) (string, error) {
	cmd := s.command("createdb", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "postgres", "-T", "template0", database)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("createdb: %w\n%s", err, bytes.TrimSpace(out))
	}
	return s.URL(database), ctx.Err()
}

// Log is what the server wrote.
func (s *Server) Log() string {
	b, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}
