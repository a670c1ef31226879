package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/sqlstore"
)

// verdict compares the witnesses of all runs. Nothing works on the store any more.
func (p *parent) verdict(ctx context.Context) (s summary, err error) {
	runs, err := sqlstore.OpenSQLite(filepath.Join(p.o.dir, runsFile), nil)
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
		l, err := readLedger(records)
		if err != nil {
			return s, fmt.Errorf("run %s: %w", j.plan.Run, err)
		}
		for _, problem := range p.check(j, l, effects) {
			p.violations = append(p.violations, violation{j.plan.Run, problem})
		}
		if j.plan.Mode.holdsSession() {
			said[j.plan.Session] = append(said[j.plan.Session], l.added(len(l.responses))...)
		}
	}
	if err := p.checkSessions(ctx, conversations{&store{Store: runs}, beside}, said); err != nil {
		return s, err
	}
	p.violations = append(p.violations, p.brain.odd...)
	for _, file := range []string{runsFile, besideFile} {
		if err := intact(filepath.Join(p.o.dir, file)); err != nil {
			return s, err
		}
	}
	s.kills, s.runs, s.violations = p.kills, len(p.runs), len(p.violations)
	return s, p.explain(ctx, runs)
}

// readBookings returns how often each call has been booked.
func readBookings(ctx context.Context, store *sqlstore.Store) (map[string]int, error) {
	booked := map[string]int{}
	err := store.View(ctx, func(ctx context.Context, tx *sql.Tx) error {
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

// check compares what a run's ledger says with the effect log and with what the model's server saw.
func (p *parent) check(j *job, l *ledger, effects []effect) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch {
	case l.finished != nil || j.left():
	case len(l.responses) == 0 && !j.begun:
		bad("it has not begun")
	default:
		bad("it neither ended nor waits")
	}
	logged := map[string][]effect{}
	for _, e := range effects {
		logged[e.Call] = append(logged[e.Call], e)
	}
	keys := map[string]string{}
	for n, r := range l.responses {
		if shown, ok := p.brain.seen[r.request]; !ok {
			bad("response %d answers no request", n+1)
		} else if shown != digest(l.history(n)) {
			bad("request %d did not show the model what the ledger says came before response %d", r.request, n+1)
		}
		if l.finished != nil && !r.whole() && !(l.finished.Cancelled && !r.planned) {
			bad("response %d has a call without an output", n+1)
		}
		for _, c := range r.calls {
			if c.settled > 1 {
				bad("call %s was settled %d times", c.id, c.settled)
			}
			for _, problem := range c.check(l, logged[c.id], p.far, p.booked[c.id]) {
				bad("call %s of %s: %s", c.id, c.tool, problem)
			}
			for _, e := range logged[c.id] {
				if other, ok := keys[e.Key]; ok && other != c.id {
					bad("calls %s and %s have one key", c.id, other)
				}
				keys[e.Key] = c.id
			}
			delete(logged, c.id)
		}
	}
	for id := range logged {
		bad("call %s had an effect, and the ledger does not know it", id)
	}
	return problems
}

// check compares a call with what its bodies did.
func (c *call) check(l *ledger, logged []effect, far map[string]int, booked int) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	begun, ended, key := 0, 0, ""
	entered := map[int]bool{}
	for _, e := range logged {
		if key != "" && e.Key != key {
			bad("it has two keys")
		}
		key = e.Key
		if e.At == effectEnd {
			ended++
			continue
		}
		begun++
		switch intended, ok := c.intents[e.Attempt]; {
		case !ok:
			bad("attempt %d was made without an intent", e.Attempt)
		case e.Time < intended:
			bad("attempt %d was made %d ms before its intent", e.Attempt, intended-e.Time)
		case entered[e.Attempt]:
			bad("attempt %d was made twice", e.Attempt)
		}
		entered[e.Attempt] = true
	}
	if c.kind == journal.AtMostOnce && begun > 1 {
		bad("it may happen once, and was begun %d times", begun)
	}
	if c.gate != journal.Allow && begun > 0 && !c.approved && !l.always[c.tool] {
		bad("it ran without an approval")
	}
	if begun > 0 && c.rejected {
		bad("it ran and was rejected")
	}
	want := 0
	if c.kind == journal.Transactional && c.settled > 0 && c.outcome == journal.Done {
		want = 1
	}
	if booked != want {
		bad("it is booked %d times, and its outcome says %d", booked, want)
	}
	return append(problems, c.checkOutput(begun, ended, key, far)...)
}

// checkOutput compares a call's output with what its bodies did.
func (c *call) checkOutput(begun, ended int, key string, far map[string]int) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	o, _ := c.output.FunctionCallOutput()
	switch c.outcome {
	case journal.Done:
		if c.settled == 0 {
			break
		}
		if ended == 0 || !endsWith(o.Text, did(c.tool, key)) {
			bad("its output is %q, and it came to its end %d times", o.Text, ended)
		}
		if c.kind == journal.Idempotent && far[key] == 0 {
			bad("the far side knows nothing of it")
		}
	case journal.Decreed:
		if ended == 0 || !endsWith(o.Text, settledText(key)) { // behind what the reviewer changed
			bad("somebody settled it with %q, and it came to its end %d times", o.Text, ended)
		}
	case journal.Rejected, journal.Dropped:
		if begun > 0 && c.kind != journal.Transactional {
			bad("it was begun %d times, and its output says that it did not run: %q", begun, o.Text)
		}
	case journal.Unknown:
	case journal.ToolFailed:
		if c.kind != journal.Transactional { // which may run out of time, and then nothing of it is left
			bad("it failed: %s", o.Text)
		}
	default:
		bad("it %s: %s", c.outcome, o.Text)
	}
	return problems
}
