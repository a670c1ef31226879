package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/sqlstore"
	"github.com/pawl-agents/pawl/sqlstore/pgstore"
)

type store interface {
	journal.Driver
	Close() error
}

func isDatabase(path string) bool { return strings.HasPrefix(path, "postgres:") }

func openStore(ctx context.Context, path string) (store, error) {
	if isDatabase(path) {
		return pgstore.Open(ctx, path, nil)
	}
	return sqlstore.OpenSQLite(path, &sqlstore.Options{BusyTimeout: time.Minute})
}

// desk is an agent whose one tool asks a person.
func desk() *pawl.Agent {
	type order struct {
		Order int `json:"order"`
		Cents int `json:"cents"`
	}
	refund := pawl.NewTool(pawl.Func[order, string]{Name: "refund", Description: "Refunds an order.", Effect: pawl.Idempotent, Approve: pawl.AlwaysAsk[order],
		Run: func(context.Context, *pawl.Call, order) (string, error) { return "refunded", nil }})
	return &pawl.Agent{Name: "Desk", Instructions: pawl.Text("Settle refunds."), Model: clerk{}, Tools: []pawl.Tool{refund}}
}

// clerk is a model that makes one call and then says so.
type clerk struct{}

func (clerk) Info() model.Info { return model.Info{} }

func (clerk) Call(_ context.Context, req *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
	for _, it := range req.Input.Items() {
		if it.Type() == item.TypeFunctionCall {
			return &model.Response{Items: []item.Item{item.MessageItem("", "Refunded.")}}, nil
		}
	}
	return &model.Response{Items: []item.Item{item.FunctionCallItem("", "call_1", "refund", `{"order":7,"cents":6000}`)}}, nil
}

func name(i int) string { return fmt.Sprintf("run-%06d", i) }

// fill stores so many runs that wait for a decision: copies of one that really does. It returns what they wait for.
func fill(ctx context.Context, path string, n int) (call string, err error) {
	seed := pawl.Runner{Store: journal.NewMemory()}
	res, err := seed.Run(ctx, desk(), pawl.UserText("Order 7 came broken. "+strings.Repeat("It is a lamp. ", 20)), &pawl.RunOptions{ID: "seed"})
	if err != nil {
		return "", err
	}
	if !res.Waiting() || len(res.Interruptions) != 1 {
		return "", fmt.Errorf("the first run is %s", res.Status)
	}
	records, err := seed.Store.Read(ctx, "seed", 0)
	if err != nil {
		return "", err
	}
	call = res.Interruptions[0].ID
	if isDatabase(path) {
		return call, copyRuns(ctx, path, n, records)
	}
	st, err := sqlstore.OpenSQLite(path, &sqlstore.Options{Sync: sqlstore.UnsafeSyncOff, BusyTimeout: time.Minute})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range 64 { // they share commits
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := wait(ctx, st, name(i), records); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return call, context.Cause(ctx)
}

// copyRuns writes the rows of the runs, which is faster than the store would be.
func copyRuns(ctx context.Context, url string, n int, records []journal.Record) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	now := time.Now().UnixMilli()
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"pawl_runs"}, []string{"id", "run", "number", "created", "updated", "head", "epoch", "due", "agent"},
		pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			return []any{i + 1, name(i), i + 1, now, now, len(records), 1, journal.Never.UnixMilli(), desk().Name}, nil
		}))
	if err != nil {
		return err
	}
	var of []journal.Record
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"pawl_facts"}, []string{"run", "seq", "kind", "version", "frame", "time", "payload", "salt", "hash"},
		pgx.CopyFromSlice(n*len(records), func(i int) ([]any, error) {
			run, seq := i/len(records), i%len(records)
			if seq == 0 {
				var err error
				if of, err = renamed(name(run), records); err != nil {
					return nil, err
				}
			}
			r := &of[seq]
			return []any{run + 1, seq + 1, string(r.Kind), r.Version, r.Frame, r.Time, r.Payload, r.Salt[:], r.Hash[:]}, nil
		}))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT setval('pawl_order', $1::bigint), setval(pg_get_serial_sequence('pawl_runs', 'id'), $1::bigint)", n)
	if err == nil {
		_, err = conn.Exec(ctx, "VACUUM ANALYZE")
	}
	return err
}

// renamed are the records under another id.
func renamed(run string, records []journal.Record) ([]journal.Record, error) {
	first, err := journal.Decode(records[0])
	if err != nil {
		return nil, err
	}
	started := *first.Body.(*journal.Started)
	started.Run = run
	first.Body = &started
	return append([]journal.Record{journal.Encode(first, records[0].Salt)}, records[1:]...), nil
}

// wait stores a copy of the records as a run that waits.
func wait(ctx context.Context, st store, run string, records []journal.Record) error {
	copied, err := renamed(run, records)
	if err != nil {
		return err
	}
	c, err := st.Claim(ctx, run, journal.ClaimRequest{TTL: time.Hour})
	if err != nil {
		return err
	}
	if err := st.Append(ctx, run, c.Epoch, 0, copied); err != nil {
		return err
	}
	return st.Release(ctx, run, c.Epoch, journal.Rest{Due: journal.Never})
}
