package sweep

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"hash/fnv"
	"sync"
	"testing"
	"time"

	"github.com/pawl-agents/pawl/internal/pgtest"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore/pgstore"
)

var everyPostgres = flag.Int("postgres", 400, "play one of so many points of a store in PostgreSQL; 0 plays none")

// database is a server with one schema for each store of the sweep.
type database struct {
	url string
}

// postgresStore is a store whose clock is that of the sweep: its leases end in fake time.
type postgresStore struct{ *pgstore.Store }

// fakeClock replaces the server's clock by one that a test sets.
const fakeClock = `CREATE TABLE IF NOT EXISTS test_clock (ms bigint);
	INSERT INTO test_clock SELECT 0 WHERE NOT EXISTS (SELECT FROM test_clock);
	CREATE OR REPLACE FUNCTION pawl_now() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT ms FROM test_clock';
	CREATE TABLE IF NOT EXISTS bookings (key text)`

// open opens the store in the schema that belongs to a directory.
func (d *database) open(dir string) (journal.Driver, error) {
	h := fnv.New64a()
	h.Write([]byte(dir))
	schema := fmt.Sprintf("s%x", h.Sum64())
	ctx := context.Background()
	admin, err := sql.Open("pgx", d.url)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	if _, err := admin.ExecContext(ctx, `CREATE SCHEMA IF NOT EXISTS `+schema); err != nil {
		return nil, err
	}
	s, err := pgstore.Open(ctx, d.url+"&pool_max_conns=4&search_path="+schema, nil)
	if err != nil {
		return nil, err
	}
	err = s.Update(ctx, func(ctx context.Context, tx *pgstore.Tx) error {
		_, err := tx.Exec(ctx, fakeClock)
		return err
	})
	return &postgresStore{s}, err
}

// tick sets the store's clock. Who has ended, or has the store's transaction, needs none.
func (s *postgresStore) tick(ctx context.Context) {
	_ = s.Update(ctx, func(ctx context.Context, tx *pgstore.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE test_clock SET ms = $1`, time.Now().UnixMilli())
		return err
	})
}

func (s *postgresStore) Claim(ctx context.Context, run string, req journal.ClaimRequest) (journal.Claim, error) {
	s.tick(ctx)
	return s.Store.Claim(ctx, run, req)
}

func (s *postgresStore) Renew(ctx context.Context, run string, epoch uint64, ttl time.Duration) error {
	s.tick(ctx)
	return s.Store.Renew(ctx, run, epoch, ttl)
}

func (s *postgresStore) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	s.tick(ctx)
	return s.Store.Append(ctx, run, epoch, after, recs, with...)
}

func (s *postgresStore) List(ctx context.Context, q journal.Query) ([]journal.RunInfo, error) {
	s.tick(ctx)
	return s.Store.List(ctx, q)
}

// booked returns the rows of the table of ours.
func (s *postgresStore) booked() (keys []string, err error) {
	err = s.Update(context.Background(), func(ctx context.Context, tx *pgstore.Tx) error {
		rows, err := tx.SQL().QueryContext(ctx, `SELECT key FROM bookings`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var key string
			if err := rows.Scan(&key); err != nil {
				return err
			}
			keys = append(keys, key)
		}
		return rows.Err()
	})
	return keys, err
}

// TestSweepPostgres sweeps every scenario with a store in PostgreSQL.
func TestSweepPostgres(t *testing.T) {
	if *everyPostgres == 0 {
		return
	}
	server, err := pgtest.New("fsync=off", "max_connections=200")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	url, err := server.Create(t.Context(), "sweep")
	if err != nil {
		t.Fatal(err)
	}
	db := &database{url}
	var mu sync.Mutex
	points, violations := 0, 0
	t.Run("scenarios", func(t *testing.T) {
		for _, s := range scenarios() {
			if *scenario != "" && s.Name != *scenario {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				s.Store = db.open
				s.StoreSession = func(store journal.Driver, id string) session.Session {
					return store.(*postgresStore).Session(id)
				}
				if s.Committed != nil {
					s.Committed = func(store journal.Driver) ([]string, error) { return store.(*postgresStore).booked() }
				}
				if s.Only, s.Every = "store", *everyPostgres; *only != "" {
					s.Only, s.Every = *only, 1
				}
				r := pawltest.Sweep(t, s)
				mu.Lock()
				defer mu.Unlock()
				points += r.Points
				violations += len(r.Violations)
			})
		}
	})
	fmt.Printf("sweep on PostgreSQL: %d points, %d violations\n", points, violations)
	if least := 2000; *everyPostgres <= 10 && points < least && *scenario+*only == "" {
		t.Errorf("%d points, want %d", points, least)
	}
}
