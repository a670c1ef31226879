package pgstore

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// bareFence appends a record as one statement, under an epoch and at a place, and does nothing
// else that a store does.
const bareFence = `WITH u AS (UPDATE bare_runs SET head = head + 1 WHERE id = $1 AND head = $2 AND lease = $3 RETURNING 1)
	INSERT INTO bare_facts SELECT $1, $2, $4, $5 FROM u`

// BenchmarkAppend64 is appends of 64 runs side by side: through the store, which groups them, and
// as a bare loop of fenced statements on as many connections, the floor.
func BenchmarkAppend64(b *testing.B) {
	const runs, conns = 64, 16
	own, err := newServer()
	if err != nil {
		b.Fatal(err)
	}
	defer own.Close()
	url, err := own.Create(b.Context(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	url += fmt.Sprint("&pool_max_conns=", conns)
	each := func(b *testing.B, appendTo func(run int, after uint64) error) {
		var left atomic.Int64
		left.Store(int64(b.N))
		var wg sync.WaitGroup
		for run := range runs {
			wg.Go(func() {
				for after := uint64(0); left.Add(-1) >= 0; after++ {
					if err := appendTo(run, after); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	rec := records(1, 1)
	var tries int
	b.Run("store", func(b *testing.B) {
		tries++
		s := open(b, url)
		names, epochs := make([]string, runs), make([]uint64, runs)
		for i := range runs {
			names[i] = fmt.Sprint(tries, "/", i)
			epochs[i] = claim(b, s, names[i])
		}
		b.ResetTimer()
		each(b, func(run int, after uint64) error { return s.Append(b.Context(), names[run], epochs[run], after, rec) })
	})
	b.Run("bare", func(b *testing.B) {
		tries++
		pool, err := pgxpool.New(b.Context(), url)
		if err != nil {
			b.Fatal(err)
		}
		defer pool.Close()
		if _, err := pool.Exec(b.Context(), `CREATE TABLE IF NOT EXISTS bare_runs (id bigint PRIMARY KEY, head bigint, lease bigint);
			CREATE TABLE IF NOT EXISTS bare_facts (run bigint, seq bigint, kind text, payload text, PRIMARY KEY (run, seq))`); err != nil {
			b.Fatal(err)
		}
		for i := range runs {
			if _, err := pool.Exec(b.Context(), `INSERT INTO bare_runs VALUES ($1, 0, 1)`, tries*runs+i); err != nil {
				b.Fatal(err)
			}
		}
		b.ResetTimer()
		each(b, func(run int, after uint64) error {
			tag, err := pool.Exec(b.Context(), bareFence, tries*runs+run, after, 1, string(rec[0].Kind), rec[0].Payload)
			if err == nil && tag.RowsAffected() != 1 {
				err = fmt.Errorf("run %d at %d: fenced", run, after)
			}
			return err
		})
	})
}
