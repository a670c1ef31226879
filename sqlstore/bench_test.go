package sqlstore

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// turn is what one commit of a turn appends: three facts, and two items for the
// session.
func turn() ([]journal.Record, []item.Item) {
	it := item.FunctionOutput("call_1", strings.Repeat("x", 400))
	rec := func(b journal.Body) journal.Record {
		return journal.Encode(journal.Fact{Time: 1764400000000, Body: b}, [16]byte{1})
	}
	return []journal.Record{
		rec(&journal.Settled{ID: journal.EffectID{Kind: journal.EffectTool, N: 1, A: 1}, Output: it}),
		rec(&journal.Confirmed{N: 1, Upto: 4}),
		rec(&journal.Prepared{N: 2, Upto: 4, Same: 1}),
	}, []item.Item{it, it}
}

func openBench(b *testing.B) *Store {
	s, err := OpenSQLite(filepath.Join(b.TempDir(), "bench.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// appender returns a function that appends turns to a run of its own.
func appender(b *testing.B, ctx context.Context, s *Store, run string, inSession bool) func() error {
	claim, err := s.Claim(ctx, run, journal.ClaimRequest{TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	recs, items := turn()
	conversation := s.Session(run)
	var head uint64
	return func() error {
		var with []journal.Companion
		if inSession {
			with = append(with, conversation.Companion(fmt.Sprint(run, "/", head), items))
		}
		err := s.Append(ctx, run, claim.Epoch, head, recs, with...)
		head += uint64(len(recs))
		return err
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, inSession := range []bool{false, true} {
		b.Run(fmt.Sprintf("session=%v", inSession), func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			add := appender(b, ctx, openBench(b), "run", inSession)
			for b.Loop() {
				if err := add(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBare is the floor of BenchmarkAppend: the same rows in a transaction of
// the same database, nothing else.
func BenchmarkBare(b *testing.B) {
	for _, inSession := range []bool{false, true} {
		b.Run(fmt.Sprintf("session=%v", inSession), func(b *testing.B) {
			ctx := b.Context()
			s := openBench(b)
			if _, err := s.write.Exec(`INSERT INTO pawl_runs (id, run, created, updated) VALUES (1, 'run', 1, 1)`); err != nil {
				b.Fatal(err)
			}
			recs, items := turn()
			head := 0
			for b.Loop() {
				if err := bare(ctx, s, head, recs, items, inSession); err != nil {
					b.Fatal(err)
				}
				head += len(recs)
			}
		})
	}
}

func bare(ctx context.Context, s *Store, head int, recs []journal.Record, items []item.Item, inSession bool) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	exec := func(q string, args ...any) {
		if err == nil {
			_, err = tx.Stmt(s.writing[q]).Exec(args...)
		}
	}
	for i, r := range recs {
		exec(sqlFact, factID(1, uint64(head+i+1)), string(r.Kind), r.Version, r.Frame, r.Time, r.Payload, r.Salt[:], r.Hash[:])
	}
	if inSession {
		exec(sqlTouchSession, "run")
		for _, it := range items {
			exec(sqlMessage, "run", it.Raw())
		}
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// BenchmarkAppendParallel has 64 runs append at once.
func BenchmarkAppendParallel(b *testing.B) {
	s := openBench(b)
	var n atomic.Int64
	b.SetParallelism(32) // times GOMAXPROCS
	b.RunParallel(func(pb *testing.PB) {
		add := appender(b, b.Context(), s, fmt.Sprint("run", n.Add(1)), true)
		for pb.Next() {
			if err := add(); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	s := openBench(b)
	add := appender(b, b.Context(), s, "run", false)
	for range 1000 {
		if err := add(); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if recs, err := s.Read(b.Context(), "run", 0); err != nil || len(recs) != 3000 {
			b.Fatal(len(recs), err)
		}
	}
}
