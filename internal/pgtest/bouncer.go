//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Bouncer is a PgBouncer in transaction mode before a server.
type Bouncer struct {
	port   int
	log    string
	cmd    *exec.Cmd
	exited chan error
}

// Bounce starts a PgBouncer before the server. An error names what is missing on the machine.
func (s *Server) Bounce() (*Bouncer, error) {
	bin, err := exec.LookPath("pgbouncer")
	if err != nil { // Debian keeps it out of the PATH of users
		if bin, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			return nil, errors.New("missing: pgbouncer (on Debian: apt-get install pgbouncer)")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &Bouncer{port: l.Addr().(*net.TCPAddr).Port, log: filepath.Join(s.dir, "bouncer.log"), exited: make(chan error, 1)}
	l.Close()
	config := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 500
server_idle_timeout = 5
`, s.port, b.port)
	file := filepath.Join(s.dir, "bouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	out, err := os.Create(b.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	b.cmd = exec.Command(bin, file)
	b.cmd.Dir, b.cmd.Stdout, b.cmd.Stderr = s.dir, out, out
	b.cmd.SysProcAttr = attributes()
	b.cmd.SysProcAttr.Credential = s.as
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { b.exited <- b.cmd.Wait() }()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-b.exited:
			return nil, fmt.Errorf("pgbouncer did not start: %v\n%s", err, b.Log())
		default:
		}
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", b.port)); err == nil {
			return b, c.Close()
		}
	}
	b.Close()
	return nil, fmt.Errorf("pgbouncer did not answer\n%s", b.Log())
}

// URL is that of a database of the server, through the pooler.
func (b *Bouncer) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", b.port, database)
}

// Log is what it wrote.
func (b *Bouncer) Log() string {
	text, err := os.ReadFile(b.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Close ends it at once.
func (b *Bouncer) Close() error {
	if err := b.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		return err
	}
	select {
	case <-b.exited:
		return nil
	case <-time.After(time.Minute):
		return errors.New("pgbouncer does not end")
	}
}
