package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/sqlstore"
)

// verdict compares the witnesses of all runs. Nothing works on the store any more.
func (p *parent) verdict(ctx context.Context) (s summary, err error) {
	runs, err := openDatabase(ctx, p.outages.url, p.o.dir)
	if err != nil {
		return s, err
	}
	defer runs.Close()
	beside, err := sqlstore.OpenSQLite(filepath.Join(p.o.dir, besideFile), nil)
	if err != nil {
		return s, err
	}
	defer beside.Close()
	if p.booked, err = readBookings(ctx, runs); err != nil {
		return s, err
	}
	said := map[string][]item.Item{} // session -> what its runs added
	for _, j := range p.runs {
		records, err := runs.Read(ctx, j.plan.Run, 0)
		if err != nil {
			return s, err
		}
		effects, err := p.log.read(j.plan.Run)
		if err != nil {
			return s, err
		}
		s.effects += len(slices.DeleteFunc(slices.Clone(effects), func(e effect) bool { return e.At != effectBegin }))
		l, err := readLedger(records, p.o.host)
		if err != nil {
			return s, fmt.Errorf("run %s: %w", j.plan.Run, err)
		}
		for _, problem := range p.check(j, l, effects) {
			p.violations = append(p.violations, violation{j.plan.Run, problem})
		}
		p.seen.add(l.seen)
		if j.plan.Mode.holdsSession() {
			said[j.plan.Session] = append(said[j.plan.Session], l.added(len(l.responses))...)
		}
	}
	if err := p.checkSessions(ctx, conversations{&store{database: runs}, beside}, said); err != nil {
		return s, err
	}
	p.violations = append(p.violations, p.brain.odd...)
	files := []string{besideFile}
	if p.outages.url == "" {
		files = append(files, runsFile)
	}
	for _, file := range files {
		if err := intact(filepath.Join(p.o.dir, file)); err != nil {
			return s, err
		}
	}
	p.count()
	s.kills, s.runs, s.violations = p.kills, len(p.runs), len(p.violations)
	return s, p.explain(ctx, runs)
}

// count prints what the campaign came upon. That it came upon too little is a violation, too.
func (p *parent) count() {
	p.seen.booked = len(p.booked)
	for _, c := range p.parcels {
		if c.taken {
			p.seen.delivered++
		}
	}
	if p.outages.server != nil {
		fmt.Fprintf(p.out, "chaos: the server was killed %d times\n", p.outages.count)
	}
	fmt.Fprintf(p.out, "chaos: %v\n", &p.seen)
	for _, what := range p.seen.missing(p.o.duration, p.o.host) {
		p.violations = append(p.violations, violation{"campaign", what})
	}
}

// readBookings returns how often each call has been booked.
func readBookings(ctx context.Context, store database) (map[string]int, error) {
	booked := map[string]int{}
	err := store.update(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT call FROM bookings`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var call string
			if err := rows.Scan(&call); err != nil {
				return err
			}
			booked[call]++
		}
		return rows.Err()
	})
	return booked, err
}

// checkSessions compares the rows of every session with what its runs added to it.
func (p *parent) checkSessions(ctx context.Context, find conversations, said map[string][]item.Item) error {
	for _, id := range slices.Sorted(maps.Keys(said)) {
		rows, err := find.session(id).Items(ctx, -1)
		if err != nil {
			return err
		}
		if problem := differ(rows, said[id]); problem != "" {
			runs := p.sessions[id]
			p.violations = append(p.violations, violation{runs[len(runs)-1], fmt.Sprintf("session %s: %s", id, problem)})
		}
	}
	return nil
}

// differ says where the rows of a session are not what its runs added to it.
func differ(rows, said []item.Item) string {
	for i := range max(len(rows), len(said)) {
		var have, want string
		if i < len(rows) {
			have = rows[i].Raw()
		}
		if i < len(said) {
			want = said[i].Raw()
		}
		if have != want {
			return fmt.Sprintf("row %d is %q, and its runs say %q", i, have, want)
		}
	}
	return ""
}

// intact says what SQLite finds wrong with a database.
func intact(path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	var answer string
	if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&answer); err != nil {
		return err
	}
	if answer != "ok" {
		return errors.New(path + ": " + answer)
	}
	return nil
}
