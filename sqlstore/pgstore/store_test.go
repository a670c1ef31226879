package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

func (s *Store) mustExec(t *testing.T, q string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), q, args...); err != nil {
		t.Fatal(err)
	}
}

// Appends that wait for each other share commits; what is wrong with one is its own matter.
func TestGroupCommit(t *testing.T) {
	s := open(t, database(t))
	const runs = 64
	epochs := make([]uint64, runs)
	for i := range runs {
		epochs[i] = claim(t, s, fmt.Sprint(i))
	}
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			run := fmt.Sprint(i)
			for after := range uint64(10) {
				err := s.Append(t.Context(), run, epochs[i], after, records(1, byte(after)))
				if err != nil {
					t.Errorf("append %d of run %s: %v", after, run, err)
				}
				if i%8 > 0 {
					continue
				}
				bad := records(1, 7)
				bad[0].Frame = "no text of a database \x00"
				if err := s.Append(t.Context(), run, epochs[i], after+1, bad); sqlState(err) != "22021" {
					t.Errorf("a bad append of run %s: %v", run, err)
				}
				if err := s.Append(t.Context(), run, epochs[i], after, records(1, 8)); !isConflict(err, after+1) {
					t.Errorf("a second append of run %s: %v", run, err)
				}
			}
		})
	}
	wg.Wait()
	for i := range runs {
		if recs, err := s.Read(t.Context(), fmt.Sprint(i), 0); err != nil || len(recs) != 10 {
			t.Errorf("run %d has %d records, %v", i, len(recs), err)
		}
	}
}

func isConflict(err error, head uint64) bool {
	c, ok := errors.AsType[*journal.ConflictError](err)
	return ok && c.Head == head
}

// Two runs that group differently do not wait for each other for ever: the database ends one
// of the transactions, and its appends are done one by one.
func TestBatchesOfManyProcesses(t *testing.T) {
	url := database(t)
	a, b := open(t, url), open(t, url)
	var wg sync.WaitGroup
	for i := range 32 {
		run := fmt.Sprint(i)
		epoch := claim(t, a, run)
		for _, s := range []*Store{a, b} {
			wg.Go(func() {
				for n := range uint64(20) {
					for {
						err := s.Append(t.Context(), run, epoch, n, records(1, byte(n)))
						head := n + 1
						if c, ok := errors.AsType[*journal.ConflictError](err); ok {
							head = c.Head
						} else if err != nil {
							t.Errorf("run %s: %v", run, err)
						}
						if head > n { // this append is there, or that of the other store
							break
						}
					}
				}
			})
		}
	}
	wg.Wait()
	for i := range 32 {
		if recs, err := a.Read(t.Context(), fmt.Sprint(i), 0); err != nil || len(recs) != 20 {
			t.Errorf("run %d has %d records, %v", i, len(recs), err)
		}
	}
}

// Bytes that somebody changed are noticed.
func TestDamagedRows(t *testing.T) {
	for name, tt := range map[string]struct{ damage, want string }{
		"a payload":      {`UPDATE pawl_facts SET payload = '{}' WHERE seq = 2`, "number 2"},
		"a salt":         {`UPDATE pawl_facts SET salt = '\x00' WHERE seq = 1`, "salt of 1"},
		"a fact is gone": {`DELETE FROM pawl_facts WHERE seq = 2`, "fact 2 is missing"},
		"the last":       {`DELETE FROM pawl_facts WHERE seq = 3`, "up to 2 of 3"},
		"an entry":       {`UPDATE pawl_inbox SET payload = '{"n":9}'`, "inbox"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, database(t))
			if err := s.Append(t.Context(), "run", claim(t, s, "run"), 0, records(3, 1)); err != nil {
				t.Fatal(err)
			}
			if err := s.Post(t.Context(), "run", journal.Entry{Key: "k", Body: records(1, 2)[0]}); err != nil {
				t.Fatal(err)
			}
			s.mustExec(t, tt.damage)
			_, err := s.Read(t.Context(), "run", 0)
			if err == nil {
				_, err = s.Inbox(t.Context(), "run")
			}
			if !errors.Is(err, journal.ErrCorrupt) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		before string
		want   error
	}{
		"another program's table": {`CREATE TABLE pawl_meta (x int)`, journal.ErrForeignStore},
		"no meta":                 {`CREATE TABLE pawl_runs (x int)`, journal.ErrForeignStore},
		"a table of facts":        {`CREATE TABLE pawl_facts (x int)`, journal.ErrForeignStore},
		"a function":              {`CREATE FUNCTION pawl_now() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'`, journal.ErrForeignStore},
		"other sessions":          {`CREATE TABLE agent_sessions (x int)`, journal.ErrForeignStore},
		"another application":     {`CREATE TABLE pawl_meta (application text, version int, store text); INSERT INTO pawl_meta VALUES ('x', 1, 'y')`, journal.ErrForeignStore},
		"a newer one": {`CREATE TABLE pawl_meta (application text, version int, store text);
			INSERT INTO pawl_meta VALUES ('github.com/pawl-agents/pawl', 99, 'y')`, journal.ErrNewerStore},
	} {
		t.Run(name, func(t *testing.T) {
			url := database(t)
			execIn(t, url, tt.before)
			if s, err := Open(t.Context(), url, nil); !errors.Is(err, tt.want) {
				t.Errorf("Open: %v, want %v", err, tt.want)
				if err == nil {
					s.Close()
				}
			}
		})
	}
	t.Run("commits that do not wait", func(t *testing.T) {
		url := database(t)
		role := "hasty" + url[strings.LastIndex(url, "=")+1:] // a role is the whole server's, a schema the test's
		execIn(t, url, fmt.Sprintf(`CREATE ROLE %[1]s SUPERUSER LOGIN; ALTER ROLE %[1]s SET synchronous_commit = off`, role))
		url = strings.Replace(url, "postgres@", role+"@", 1)
		if _, err := Open(t.Context(), url, nil); !errors.Is(err, ErrUnsafe) {
			t.Errorf("Open: %v", err)
		}
		s, err := Open(t.Context(), url, &Options{UnsafeAsyncCommit: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	})
	t.Run("transactions that do not see what others commit", func(t *testing.T) {
		for level, want := range map[string]error{"repeatable%20read": ErrUnsafe, "serializable": ErrUnsafe, "read%20uncommitted": nil} {
			s, err := Open(t.Context(), database(t)+"&default_transaction_isolation="+level, nil)
			if !errors.Is(err, want) {
				t.Errorf("Open with %s: %v", level, err)
			}
			if err == nil {
				s.Close()
			}
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		if _, err := Open(t.Context(), "postgres://postgres@127.0.0.1:1/x", nil); !errors.Is(err, ErrUnreachable) {
			t.Errorf("Open: %v", err)
		}
	})
	t.Run("no such user", func(t *testing.T) {
		url := strings.Replace(database(t), "postgres@", "nobody@", 1)
		if _, err := Open(t.Context(), url, nil); !errors.Is(err, ErrAccess) {
			t.Errorf("Open: %v", err)
		}
	})
	t.Run("no URL", func(t *testing.T) {
		_, err := Open(t.Context(), "postgres://%zz", nil)
		if _, ok := errors.AsType[*pawl.ConfigError](err); !ok || !strings.HasPrefix(err.Error(), "pawl: ") {
			t.Errorf("Open: %v", err)
		}
	})
	t.Run("no such database", func(t *testing.T) {
		if _, err := Open(t.Context(), server.URL("absent"), nil); !errors.Is(err, ErrNoStore) || errors.Is(err, ErrUnreachable) {
			t.Errorf("Open: %v", err)
		}
	})
	t.Run("no store", func(t *testing.T) {
		url := database(t)
		for range 2 { // the first makes nothing either
			if _, err := Open(t.Context(), url, &Options{Existing: true}); !errors.Is(err, ErrNoStore) {
				t.Errorf("Open: %v", err)
			}
		}
		open(t, url)
		s, err := Open(t.Context(), url, &Options{Existing: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	})
	t.Run("another database to listen at", func(t *testing.T) {
		other := database(t)
		open(t, other)
		_, err := Open(t.Context(), database(t), &Options{ListenURL: other})
		if e, ok := errors.AsType[*pawl.ConfigError](err); !ok || e.Field != "Options.ListenURL" {
			t.Errorf("Open: %v", err)
		}
	})
}

// Processes that start together make the tables once.
func TestOpenAtOnce(t *testing.T) {
	url := database(t)
	backends := make([]string, 8)
	var wg sync.WaitGroup
	for i := range backends {
		wg.Go(func() { backends[i] = open(t, url).Backend() })
	}
	wg.Wait()
	for _, b := range backends {
		if b != backends[0] || !strings.HasPrefix(b, "postgres/") {
			t.Errorf("the backends are %q", backends)
			break
		}
	}
}

// What is acknowledged is there after a crash of the server; what is not may be.
func TestServerCrash(t *testing.T) {
	own, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	url, err := own.Create(t.Context(), "crash")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, url)
	epoch := claim(t, s, "run")
	var known uint64
	for round := range 6 {
		stop := make(chan error, 1)
		go func() {
			time.Sleep(50 * time.Millisecond)
			if round%2 == 0 {
				stop <- own.Kill()
				return
			}
			stop <- own.StopImmediate()
		}()
		for {
			if err := s.Append(t.Context(), "run", epoch, known, records(1, byte(known))); err != nil {
				break
			}
			known++
		}
		if err := <-stop; err != nil {
			t.Fatal(err)
		}
		if err := own.Start(); err != nil {
			t.Fatal(err)
		}
		recs, err := readAgain(t.Context(), s, "run")
		if err != nil {
			t.Fatal(err)
		}
		if n := uint64(len(recs)); n != known && n != known+1 {
			t.Fatalf("round %d: %d records, %d were acknowledged", round, n, known)
		}
		known = uint64(len(recs))
	}
	if known == 0 {
		t.Error("nothing was ever acknowledged")
	}
}

// readAgain reads with a pool whose connections a crash has ended.
func readAgain(ctx context.Context, s *Store, run string) (recs []journal.Record, err error) {
	for range 20 {
		if recs, err = s.Read(ctx, run, 0); err == nil {
			break
		}
	}
	return recs, err
}

func TestClosed(t *testing.T) {
	s := open(t, database(t))
	epoch := claim(t, s, "run")
	s.Close()
	if err := s.Append(t.Context(), "run", epoch, 0, records(1, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("Append: %v", err)
	}
	if _, err := s.Read(t.Context(), "run", 0); !errors.Is(err, ErrClosed) {
		t.Errorf("Read: %v", err)
	}
}
