//go:build unix

package enginetest

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"
)

var quiet = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

// newNamespace makes a namespace.
func newNamespace(ctx context.Context, address, name string) error {
	c, err := client.NewNamespaceClient(client.Options{HostPort: address, Logger: quiet})
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Register(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)})
}
