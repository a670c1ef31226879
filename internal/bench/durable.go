package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	_ "modernc.org/sqlite"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

// durableTurns is the length of a run on disk.
const durableTurns = 50

// durable measures runs in an SQLite file, session in the same file, beside the same rows in as many transactions.
type durable struct {
	dir   string
	store *sqlstore.Store
	bare  *sql.DB
	runs  int
}

func openDurable() (*durable, error) {
	dir, err := os.MkdirTemp(".", "bench-") // here, not in memory as /tmp may be
	if err != nil {
		return nil, err
	}
	d := &durable{dir: dir}
	if d.store, err = sqlstore.OpenSQLite(filepath.Join(dir, "pawl.db"), nil); err != nil {
		return nil, errors.Join(err, d.close())
	}
	if d.bare, err = openBare(filepath.Join(dir, "bare.db")); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *durable) close() error {
	var err error
	if d.store != nil {
		err = d.store.Close()
	}
	if d.bare != nil {
		err = errors.Join(err, d.bare.Close())
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

func openBare(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`
		CREATE TABLE facts (run INTEGER, seq INTEGER, kind TEXT, version INTEGER, frame TEXT, time INTEGER, payload TEXT,
			salt BLOB, hash BLOB, PRIMARY KEY (run, seq));
		CREATE TABLE messages (id INTEGER PRIMARY KEY, session TEXT, data TEXT);
		CREATE INDEX by_session ON messages (session, id);`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// run drives a run of its own in a session of its own.
func (d *durable) run(agent *pawl.Agent, turns int, store journal.Driver, wrap func(*sqlstore.Session) session.Session) (*pawl.Result, error) {
	d.runs++
	r := pawl.Runner{Store: store}
	res, err := r.Run(context.Background(), agent, pawl.UserText(question),
		&pawl.RunOptions{MaxTurns: -1, Session: wrap(d.store.Session(fmt.Sprint("session-", d.runs)))})
	if err != nil {
		return nil, err
	}
	return res, httpRun{turns: turns}.check(res.FinalOutput, res.Turns)
}

func (d *durable) pawl(agent *pawl.Agent) work {
	return func() (int, error) {
		_, err := d.run(agent, durableTurns, d.store, func(s *sqlstore.Session) session.Session { return s })
		return durableTurns + 1, err
	}
}

// floor writes the rows of such a run, in as many transactions as the run took for them.
func (d *durable) floor(agent *pawl.Agent) (work, error) {
	commits, err := d.commits(agent, durableTurns)
	if err != nil {
		return nil, err
	}
	fact, err := d.bare.Prepare(`INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return nil, err
	}
	message, err := d.bare.Prepare(`INSERT INTO messages (session, data) VALUES (?, ?)`)
	if err != nil {
		return nil, err
	}
	return func() (int, error) {
		d.runs++
		seq := 0
		for _, c := range commits {
			if err := c.write(d.bare, fact, message, d.runs, seq); err != nil {
				return 0, err
			}
			seq += len(c.facts)
		}
		return durableTurns + 1, nil
	}, nil
}

// commits returns what a run commits.
func (d *durable) commits(agent *pawl.Agent, turns int) ([]commit, error) {
	rec := &recorder{Driver: d.store}
	_, err := d.run(agent, turns, rec, func(s *sqlstore.Session) session.Session { return recordedSession{s, rec} })
	return rec.commits, err
}

// commit is the rows of one transaction of a run.
type commit struct {
	facts    []journal.Record
	messages []item.Item
}

// write is the transaction.
func (c *commit) write(db *sql.DB, fact, message *sql.Stmt, run, seq int) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert := tx.Stmt(fact)
	for i := range c.facts {
		f := &c.facts[i]
		_, err := insert.Exec(run, seq+i+1, string(f.Kind), f.Version, f.Frame, f.Time, f.Payload, f.Salt[:], f.Hash[:])
		if err != nil {
			return err
		}
	}
	insert = tx.Stmt(message)
	for _, m := range c.messages {
		if _, err := insert.Exec(strconv.Itoa(run), m.Raw()); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// recorder notes what a run commits.
type recorder struct {
	journal.Driver
	batch   []item.Item // of the commit that is being made
	commits []commit
}

func (r *recorder) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	r.commits = append(r.commits, commit{slices.Clone(recs), r.batch})
	r.batch = nil
	return r.Driver.Append(ctx, run, epoch, after, recs, with...)
}

// recordedSession is a session in the recorder's database.
type recordedSession struct {
	*sqlstore.Session
	rec *recorder
}

func (s recordedSession) Store() journal.Driver { return s.rec }

func (s recordedSession) Companion(batchID string, items []item.Item) journal.Companion {
	s.rec.batch = items
	return s.Session.Companion(batchID, items)
}
