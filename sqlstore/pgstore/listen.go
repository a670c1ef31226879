package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

var _ journal.Listener = (*Store)(nil)

// checkListen refuses to listen at another database than that of the store: nothing would ever be heard.
func (s *Store) checkListen(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, s.listens.Copy())
	if err != nil {
		return fault("connect to Options.ListenURL", err)
	}
	defer conn.Close(ctx)
	if backend, err := backendOf(ctx, conn); err != nil || backend != s.backend {
		return &pawl.ConfigError{Field: "Options.ListenURL", Problem: "is not the database of the store"}
	}
	return nil
}

// Listen implements journal.Listener, on a connection of its own. Behind PgBouncer in
// transaction mode nothing is heard; see Options.ListenURL.
func (s *Store) Listen(ctx context.Context, posted func()) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, s.listens.Copy())
	if err != nil {
		return fault("connect", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, `LISTEN pawl_inbox`); err != nil {
		return fault("listen", err)
	}
	for {
		posted()
		if _, err := conn.WaitForNotification(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fault("listen", err)
		}
	}
}
