package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"
)

// kills is how often TestKill kills at least; those beyond the durable boundaries are at random times.
var kills = flag.Int("kills", 50, "kill the demo at least so often")

// exitKilled is what a shell says of a process that SIGKILL ended.
const exitKilled = 137

// TestKill kills the demo right before and right after each of its durable writes, then at random times, sometimes
// its successor, too, and lets another process go on. Every time there is one refund for each call that was approved,
// one mail, and a session that a model would take.
func TestKill(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute*time.Duration(1+*kills/100))
	defer cancel()
	k := &killer{T: t, ctx: ctx}
	took := k.undisturbed()
	boundaries := k.boundaries(15)
	for _, side := range []string{"before", "after"} {
		// What goes on after a death in the middle of the approved refund is killed at each of its writes.
		for m := 1; k.killedAt("after:refund", fmt.Sprintf("%s:%d", side, m)); m++ {
			boundaries++
		}
	}
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	random := 0
	for random < 10 || boundaries+random < *kills {
		random += k.killedAfter(time.Duration(rnd.Int64N(int64(took))), time.Duration(rnd.Int64N(int64(took))))
	}
	t.Logf("killed at %d durable boundaries and %d random times (seed %d)", boundaries, random, seed)
}

// TestKillOtherConversations does the same, at the boundaries, to runs whose conversation is elsewhere: in a plain session
// that loses an acknowledgement besides, and on the model's server.
func TestKillOtherConversations(t *testing.T) {
	for _, fault := range []string{"session-append", "lost-ack", "unknown-tool"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			k := &killer{T: t, ctx: ctx, fault: fault}
			t.Logf("killed at %d durable boundaries", k.boundaries(15))
		})
	}
}

// boundaries kills at every durable write and returns how many those were, twice each; fewer than least are not
// enough.
func (k *killer) boundaries(least int) (moments int) {
	for _, side := range []string{"before", "after"} {
		n := 1
		for k.killedAt(fmt.Sprintf("%s:%d", side, n), "") {
			n++
		}
		if n <= least {
			k.Fatalf("the demo has only %d durable writes", n-1)
		}
		moments += n - 1
	}
	return moments
}

// killer runs the demo in a directory of its own each time.
type killer struct {
	*testing.T
	ctx   context.Context
	dir   string
	fault string // of the demo, empty for none
}

// scratch makes an empty directory, in memory where there is one: what SIGKILL leaves does not depend on a disk, and
// thousands of syncs do.
func (k *killer) scratch() string {
	k.Helper()
	if k.dir != "" {
		os.RemoveAll(k.dir)
	}
	parent := "/dev/shm"
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "pawl-kill")
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// demo is the command line of the demo.
func (k *killer) demo(more ...string) []string {
	args := []string{"demo", "--yes"}
	if k.fault != "" {
		args = append(args, "--fault", k.fault)
	}
	return append(args, more...)
}

// pawl runs the command and returns its exit code and what it printed.
func (k *killer) pawl(args ...string) (int, string) {
	k.Helper()
	return k.pawlUntil(k.ctx, args...)
}

// pawlUntil is pawl for a process that is killed when ctx ends.
func (k *killer) pawlUntil(ctx context.Context, args ...string) (int, string) {
	k.Helper()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = k.dir, cleanEnv(), &out, &out
	err := cmd.Run()
	if k.ctx.Err() != nil {
		k.Fatal("it takes too long")
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, out.String()
	case errors.As(err, &exit):
		return exitCode(exit), out.String()
	case errors.Is(err, context.DeadlineExceeded): // it was not even started
		return exitKilled, ""
	}
	k.Fatal(err)
	return 0, ""
}

// undisturbed runs a demo that nobody kills and returns how long it took.
func (k *killer) undisturbed() time.Duration {
	k.dir = k.scratch()
	from := time.Now()
	if code, out := k.pawl(k.demo()...); code != 0 {
		k.Fatalf("exit code %d\n%s", code, out)
	}
	took := time.Since(from)
	k.check("ticket-1001", "undisturbed")
	return took
}

// killedAt kills the demo at a write and, unless it is empty, its successor at another. It reports whether the last
// process that was to die did, or ended before it came to that write.
func (k *killer) killedAt(first, second string) bool {
	k.dir = k.scratch()
	when := "demo killed " + first
	code, out := k.pawl(k.demo("--kill-at", first)...)
	if second != "" {
		if code != exitKilled {
			k.Fatalf("%s: exit code %d\n%s", when, code, out)
		}
		when += ", resume killed " + second
		code, out = k.pawl("resume", "ticket-1001", "--yes", "--kill-at", second)
	}
	if code != 0 && code != exitKilled {
		k.Fatalf("%s: exit code %d\n%s", when, code, out)
	}
	k.goOn(when)
	return code == exitKilled
}

// killedAfter kills the demo after a while, and its successor after another. It returns how many it killed.
func (k *killer) killedAfter(first, second time.Duration) (killed int) {
	k.dir = k.scratch()
	when := fmt.Sprintf("killed after %v and %v", first, second)
	kill := func(d time.Duration, args ...string) {
		ctx, cancel := context.WithTimeout(k.ctx, d) // its end is SIGKILL
		defer cancel()
		code, out := k.pawlUntil(ctx, args...)
		switch code {
		case exitKilled:
			killed++
		case 0, 4, 5: // too late to kill; or the first was killed before it made a store, or a run
		default:
			k.Fatalf("%s: exit code %d\n%s", when, code, out)
		}
	}
	kill(first, k.demo()...)
	kill(second, "resume", "ticket-1001", "--yes")
	k.goOn(when)
	return killed
}

// goOn resumes the run in another process and looks at what it left. A run that had not begun starts again.
func (k *killer) goOn(when string) {
	k.Helper()
	run := "ticket-1001"
	code, out := k.pawl("resume", run, "--yes")
	if code == 4 || code == 5 {
		k.noTrace(when)
		code, out = k.pawl(k.demo("--json")...)
		run = startedRun(k, out)
	}
	if code != 0 {
		k.Fatalf("%s: exit code %d\n%s", when, code, out)
	}
	k.check(run, when)
}

func startedRun(k *killer, out string) string {
	k.Helper()
	var doc struct{ Result struct{ Run string } }
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		k.Fatalf("%v\n%s", err, out)
	}
	return doc.Result.Run
}

// noTrace checks that a run which never began did nothing.
func (k *killer) noTrace(when string) {
	k.Helper()
	if _, err := os.Stat(filepath.Join(k.dir, "pawl-demo", "shop.db")); errors.Is(err, os.ErrNotExist) {
		return // it died before there was a shop
	}
	db := k.open("shop.db")
	defer db.Close()
	for _, table := range []string{"refunds", "mails"} {
		got, err := column(db, `SELECT count(*) FROM `+table)
		if err != nil && strings.Contains(err.Error(), "no such table") {
			continue // it died before the shop had anything
		}
		if err != nil || got[0] != "0" {
			k.Fatalf("%s: a run that never began left %s in %s, %v", when, got, table, err)
		}
	}
}

func (k *killer) open(file string) *sql.DB {
	k.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(k.dir, "pawl-demo", file)+"?_pragma=busy_timeout(5000)")
	if err != nil {
		k.Fatal(err)
	}
	return db
}

// check looks at the shop's and the session's rows.
func (k *killer) check(run, when string) {
	k.Helper()
	shop, store := k.open("shop.db"), k.open("pawl.db")
	defer shop.Close()
	defer store.Close()
	for query, want := range map[string]string{
		`SELECT count(*) || ' refunds of ' || count(DISTINCT call) || ' calls' FROM refunds WHERE run = ?`: "2 refunds of 2 calls",
		`SELECT sum(cents < 5000) || ' below the limit' FROM refunds WHERE run = ?`:                        "1 below the limit",
		`SELECT count(*) || ' mail' FROM mails WHERE run = ?`:                                              "1 mail",
	} {
		got, err := column(shop, query, run)
		if err != nil || strings.Join(got, "\n") != want {
			k.Fatalf("%s: %s: got %q, want %q, %v", when, query, got, want, err)
		}
	}
	var rows []string
	var err error
	switch k.fault {
	case "":
		rows, err = column(store, `SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id`, run)
	case "unknown-tool":
		return // the conversation is on the server, which refuses what a session must not hold
	default:
		rows, err = column(shop, `SELECT item FROM conversations WHERE session = ? ORDER BY id`, "shop/"+run)
	}
	if err == nil {
		err = validSession(rows)
	}
	if err != nil {
		k.Fatalf("%s: the session: %v\n%s", when, err, strings.Join(rows, "\n"))
	}
}

// validSession checks that a conversation begins with the customer, ends with an answer, and has one output behind
// each call.
func validSession(rows []string) error {
	type message struct {
		Type, Role, Name string
		CallID           string `json:"call_id"`
		ID               string
	}
	calls, outputs, ids := map[string]string{}, map[string]bool{}, map[string]bool{}
	refunds := 0
	var m message
	for i, row := range rows {
		m = message{}
		if err := json.Unmarshal([]byte(row), &m); err != nil {
			return err
		}
		if m.ID != "" && ids[m.ID] {
			return fmt.Errorf("item %d: id %s again", i, m.ID)
		}
		ids[m.ID] = true
		switch {
		case i == 0 && m.Role != "user":
			return errors.New("it does not begin with the customer")
		case m.Type == "function_call":
			if calls[m.CallID] != "" {
				return fmt.Errorf("item %d: call %s again", i, m.CallID)
			}
			calls[m.CallID] = m.Name
			if m.Name == "refund" {
				refunds++
			}
		case m.Type == "function_call_output":
			if calls[m.CallID] == "" || outputs[m.CallID] {
				return fmt.Errorf("item %d: output of %s without its call, or again", i, m.CallID)
			}
			outputs[m.CallID] = true
		}
	}
	switch {
	case len(outputs) != len(calls):
		return fmt.Errorf("%d calls and %d outputs", len(calls), len(outputs))
	case refunds != 2:
		return fmt.Errorf("%d calls of refund", refunds)
	case m.Role != "assistant":
		return errors.New("it does not end with an answer")
	}
	return nil
}
