//go:build unix

package enginetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pawl-agents/pawl/engine/temporal/internal/devtest"
)

// server is the development server, which keeps everything in a file.
type server struct {
	file    string
	address string // empty before the first start
	cmd     *exec.Cmd
}

// start starts the server, where it was if it was killed, and waits until it is ready.
func (s *server) start() error {
	path := os.Getenv("PAWL_TEMPORAL_DEVSERVER")
	if path == "" {
		return errors.New("PAWL_TEMPORAL_DEVSERVER does not name the server: use make enginetest, or make temporal-devserver, which prints its path")
	}
	_, port, _ := strings.Cut(s.address, ":")
	if port == "" {
		port = "0"
	}
	s.cmd = exec.Command(path, "-port", port, "-db", s.file, "-log", "fatal")
	s.cmd.Stderr, s.cmd.SysProcAttr = os.Stderr, devtest.ChildOf()
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ready := strings.CutPrefix(strings.TrimSpace(line), "READY ")
	if !ready {
		return fmt.Errorf("the server says %q: %w", line, err)
	}
	s.address = address
	return nil
}

// kill kills the server with SIGKILL.
func (s *server) kill() error {
	err := s.cmd.Process.Signal(syscall.SIGKILL)
	_ = s.cmd.Wait() // it was killed
	return err
}

var quiet = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

// newNamespace makes a namespace.
func (s *server) newNamespace(ctx context.Context, name string) error {
	c, err := client.NewNamespaceClient(client.Options{HostPort: s.address, Logger: quiet})
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Register(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)})
}
