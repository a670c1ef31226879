package sqlstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// storeVariable makes the test binary a process that opens the store it names and
// obeys the commands on its standard input, one a line, with one line each.
const storeVariable = "SQLSTORE_TEST_STORE"

func TestMain(m *testing.M) {
	if path := os.Getenv(storeVariable); path != "" {
		if err := obey(path, os.Stdin, os.Stdout); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func obey(path string, in io.Reader, out io.Writer) error {
	commands := bufio.NewScanner(in)
	var s *Store
	for commands.Scan() {
		command, args, _ := strings.Cut(commands.Text(), " ")
		var run string
		var n, m uint64
		fmt.Sscan(args, &run, &n, &m)
		var answer string
		var err error
		switch command {
		case "open":
			s, err = OpenSQLite(path, &Options{BusyTimeout: time.Minute})
			answer = "open"
		case "claim": // run, takeover
			answer, err = obeyClaim(s, run, n)
		case "append": // run, epoch, after
			answer, err = obeyAppend(s, run, n, m)
		case "write": // run, epoch
			err = obeyWrite(s, out, run, n)
		case "lend": // run, epoch
			err = obeyLend(s, out, run, n)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, answer)
	}
	if s == nil {
		return nil
	}
	return s.Close()
}

func obeyClaim(s *Store, run string, takeover uint64) (string, error) {
	c, err := s.Claim(context.Background(), run, journal.ClaimRequest{Owner: journal.Owner{PID: os.Getpid()}, TTL: time.Hour, Takeover: takeover})
	if claimed, ok := errors.AsType[*journal.ClaimedError](err); ok {
		return fmt.Sprint("claimed by ", claimed.Holder.Owner.PID), nil
	}
	return fmt.Sprint("epoch ", c.Epoch), err
}

func obeyAppend(s *Store, run string, epoch, after uint64) (string, error) {
	recs, items := pair(int(after))
	err := s.Append(context.Background(), run, epoch, after, recs, s.Session(run).Companion(fmt.Sprint(after), items))
	if errors.Is(err, journal.ErrFenced) {
		return "fenced", nil
	}
	return "appended", err
}

// obeyWrite appends until the process is killed, and says how far it is.
func obeyWrite(s *Store, out io.Writer, run string, epoch uint64) error {
	for head := uint64(0); ; head += 2 {
		if answer, err := obeyAppend(s, run, epoch, head); err != nil || answer != "appended" {
			return fmt.Errorf("%s %w", answer, err)
		}
		fmt.Fprintln(out, head+2)
	}
}

// obeyLend stays in a transaction that it was lent, after it has written to it.
func obeyLend(s *Store, out io.Writer, run string, epoch uint64) error {
	return s.Transact(context.Background(), run, epoch, 0, func(ctx context.Context, tx any) ([]journal.Record, error) {
		if err := pay(ctx, tx); err != nil {
			return nil, err
		}
		fmt.Fprintln(out, "paid")
		select {}
	})
}

// pair is what one append adds: two facts, and an item for the session.
func pair(after int) ([]journal.Record, []item.Item) {
	rec := func(n int) journal.Record {
		return journal.Encode(journal.Fact{Time: int64(n), Body: &journal.Confirmed{N: n}}, [16]byte{byte(n)})
	}
	return []journal.Record{rec(after + 1), rec(after + 2)}, []item.Item{item.UserText(fmt.Sprint("batch ", after))}
}

// A process is the test binary at work on a store.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Scanner
}

func startProcess(t *testing.T, path string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), storeVariable+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t, cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return p
}

func (p *process) tell(command ...any) { fmt.Fprintln(p.in, command...) }

func (p *process) hear() string {
	p.t.Helper()
	if !p.answers.Scan() {
		p.t.Fatalf("the process ended: %v", p.answers.Err())
	}
	return p.answers.Text()
}

// number is the number at the end of an answer.
func number(t *testing.T, answer string) uint64 {
	t.Helper()
	words := strings.Fields(answer)
	n, err := strconv.ParseUint(words[len(words)-1], 10, 64)
	if err != nil {
		t.Fatalf("answer %q: %v", answer, err)
	}
	return n
}

// Processes that open a new file at once and claim the same runs: every claim has
// one winner, also a takeover, and the one before is fenced.
func TestProcessesContend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	var all []*process
	for range 3 {
		all = append(all, startProcess(t, path))
	}
	// contest gives all the same command and returns the winner and its epoch.
	contest := func(command ...any) (winner *process, epoch uint64) {
		t.Helper()
		for _, p := range all {
			p.tell(command...)
		}
		answers := map[*process]string{}
		for _, p := range all {
			answers[p] = p.hear()
			if strings.HasPrefix(answers[p], "epoch ") {
				if winner != nil {
					t.Fatalf("two winners of %v", command)
				}
				winner, epoch = p, number(t, answers[p])
			}
		}
		if winner == nil {
			t.Fatalf("nobody won %v: %v", command, answers)
		}
		for p, answer := range answers {
			if want := fmt.Sprint("claimed by ", winner.cmd.Process.Pid); p != winner && answer != want {
				t.Errorf("the answer to a loser of %v is %q, want %q", command, answer, want)
			}
		}
		return winner, epoch
	}
	for _, p := range all {
		p.tell("open")
	}
	for _, p := range all {
		if got := p.hear(); got != "open" {
			t.Fatal(got)
		}
	}
	for round := range 20 {
		run := fmt.Sprint("run", round)
		first, epoch := contest("claim", run, 0)
		first.tell("append", run, epoch, 0)
		if got := first.hear(); got != "appended" {
			t.Fatal(got)
		}
		second, next := contest("claim", run, epoch)
		if next != epoch+1 {
			t.Errorf("epoch %d after %d", next, epoch)
		}
		first.tell("append", run, epoch, 2)
		if got := first.hear(); got != "fenced" {
			t.Errorf("append under the old epoch: %s", got)
		}
		second.tell("append", run, next, 2)
		if got := second.hear(); got != "appended" {
			t.Errorf("append under the new epoch: %s", got)
		}
	}
}

// A process killed at any moment leaves what it had committed, whole, with the
// session to match, and at most one commit more.
func TestKillLeavesPrefix(t *testing.T) {
	for kill := range 10 {
		path := filepath.Join(t.TempDir(), "pawl.db")
		p := startProcess(t, path)
		p.tell("open")
		p.hear()
		p.tell("claim", "run", 0)
		epoch := number(t, p.hear())
		p.tell("write", "run", epoch)
		var acknowledged uint64
		for range 1 + 3*kill {
			acknowledged = number(t, p.hear())
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for p.answers.Scan() { // what it had said before it died
			acknowledged = number(t, p.answers.Text())
		}
		p.cmd.Wait()
		checkPrefix(t, path, acknowledged)
	}
}

func checkPrefix(t *testing.T, path string, acknowledged uint64) {
	t.Helper()
	s := open(t, path, nil)
	recs, err := s.Read(t.Context(), "run", 0)
	if err != nil {
		t.Fatal(err)
	}
	head := uint64(len(recs))
	if head != acknowledged && head != acknowledged+2 {
		t.Fatalf("%d facts, %d were acknowledged", head, acknowledged)
	}
	var wantRecs []journal.Record
	var wantItems []item.Item
	for after := 0; after < len(recs); after += 2 {
		recs, items := pair(after)
		wantRecs, wantItems = append(wantRecs, recs...), append(wantItems, items...)
	}
	if !slices.Equal(recs, wantRecs) {
		t.Errorf("facts %v\nwant  %v", recs, wantRecs)
	}
	if items, err := s.Session("run").Items(t.Context(), -1); err != nil || !slices.Equal(items, wantItems) {
		t.Errorf("items %v, %v\nwant  %v", items, err, wantItems)
	}
	if got := query[string](t, s.read, `PRAGMA integrity_check`); got != "ok" {
		t.Errorf("integrity_check: %s", got)
	}
	claimed, ok := errors.AsType[*journal.ClaimedError](func() error {
		_, err := s.Claim(t.Context(), "run", journal.ClaimRequest{TTL: time.Hour})
		return err
	}())
	if !ok {
		t.Fatal("the claim of the killed process is gone")
	}
	c, err := s.Claim(t.Context(), "run", journal.ClaimRequest{TTL: time.Hour, Takeover: claimed.Holder.Epoch})
	if err != nil || c.Head != head {
		t.Fatalf("takeover: %+v, %v", c, err)
	}
	if got, err := obeyAppend(s, "run", c.Epoch, head); got != "appended" || err != nil {
		t.Errorf("append after the takeover: %s, %v", got, err)
	}
}

// A process that dies between what a tool wrote and the commit leaves neither that nor the
// outcome, and the next one does both.
func TestKillInTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s := open(t, path, nil)
	ledgerTable(t, s)
	p := startProcess(t, path)
	p.tell("open")
	p.hear()
	p.tell("claim", "run", 0)
	epoch := number(t, p.hear())
	p.tell("lend", "run", epoch)
	if got := p.hear(); got != "paid" {
		t.Fatal(got)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.cmd.Wait()
	c, err := s.Claim(t.Context(), "run", journal.ClaimRequest{TTL: time.Hour, Takeover: epoch})
	if err != nil || c.Head != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	if got := query[int](t, s.read, `SELECT count(*) FROM paid`); got != 0 {
		t.Errorf("%d payments, and no fact", got)
	}
	recs, _ := pair(0)
	err = s.Transact(t.Context(), "run", c.Epoch, 0, func(ctx context.Context, tx any) ([]journal.Record, error) { return recs, pay(ctx, tx) })
	if got := query[int](t, s.read, `SELECT count(*) FROM paid`); got != 1 || err != nil {
		t.Errorf("%d payments, %v", got, err)
	}
	if got, err := s.Read(t.Context(), "run", 0); err != nil || !slices.Equal(got, recs) {
		t.Errorf("the run has %v, %v", got, err)
	}
}
