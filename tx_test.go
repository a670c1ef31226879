package pawl_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/sqlstore"
)

// txBody is the body of a transactional tool, after it has written its row.
type txBody func(ctx context.Context, tx *sql.Tx, c *pawl.Call) error

// paying is a transactional tool that writes a row of its own.
func paying(e *effects, body txBody, change func(*sqlstore.TxFunc[charge, string])) pawl.Tool {
	f := sqlstore.TxFunc[charge, string]{Name: "pay", Run: func(ctx context.Context, tx *sql.Tx, c *pawl.Call, in charge) (string, error) {
		e.add("pay %d attempt %d", in.Cents, c.Attempt)
		if _, err := tx.ExecContext(ctx, `INSERT INTO paid VALUES (?, ?)`, c.Key, in.Cents); err != nil {
			return "", err
		}
		if body != nil {
			if err := body(ctx, tx, c); err != nil {
				return "", err
			}
		}
		return "paid", nil
	}}
	if change != nil {
		change(&f)
	}
	return sqlstore.NewTxTool(f)
}

// payments makes a store with a table of its own, and returns what stands in it.
func payments(t *testing.T) (*sqlstore.Store, func() int) {
	t.Helper()
	s := openSQLite(t, filepath.Join(t.TempDir(), "runs.db"))
	err := s.Update(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `CREATE TABLE paid (key TEXT PRIMARY KEY, cents INTEGER)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() (n int) {
		t.Helper()
		err := s.View(context.Background(), func(ctx context.Context, tx *sql.Tx) error {
			return tx.QueryRowContext(ctx, `SELECT count(*) FROM paid`).Scan(&n)
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// settledAs returns the outcomes of the first call's attempts, in order.
func settledAs(t *testing.T, store journal.Driver) (list []journal.Outcome) {
	t.Helper()
	recs, err := store.Read(t.Context(), "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs {
		f, err := journal.Decode(rec)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := f.Body.(*journal.Settled); ok && s.ID.P == 0 {
			list = append(list, s.Outcome)
		}
	}
	return list
}

// A transactional tool beside others: its row and its outcome are there, in one commit.
func TestTransactionalTool(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		store, rows := payments(t)
		var e effects
		m := newScript(calling(fc("c1", "pay", `{"cents":5}`), fc("c2", "charge", `{"cents":1}`), fc("c3", "pay", `{"cents":6}`)), says("done"))
		agent := agentWith(m, paying(&e, nil, nil), charging("charge", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
				if c.Tx != nil {
					t.Error("a tool that is not transactional has a transaction")
				}
				return "charged", nil
			}
		}))
		r := pawl.Runner{Store: store}
		sess := store.Session("s")
		res := must(t)(mode.run(&r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess}))
		if diff := cmp.Diff([]string{"c1: paid", "c2: charged", "c3: paid"}, outputs(res.NewItems())); diff != "" || rows() != 2 {
			t.Errorf("%d rows, %s", rows(), diff)
		}
		sameViews(t, res, m, sess)
		replays(t, &r, "r")
	})
}

// A transactional tool works in a store that fails: whichever append or commit gets lost, the row is there once.
func TestTransactionalToolInAFaultyStore(t *testing.T) {
	for _, reply := range []journaltest.Reply{journaltest.Absent, journaltest.Stored} {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("%s %d", reply, n), func(t *testing.T) {
				store, rows := payments(t)
				faulty := journaltest.Faulty(store, journaltest.Plan{n: reply})
				agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done")), paying(new(effects), nil, nil))
				r := pawl.Runner{Store: faulty}
				res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
				if diff := cmp.Diff([]string{"c1: paid"}, outputs(res.NewItems())); diff != "" || rows() != 1 || faulty.Appends() < n {
					t.Errorf("%d rows, %d appends, %s", rows(), faulty.Appends(), diff)
				}
			})
		}
	}
	r := pawl.Runner{Store: journaltest.Faulty(journal.NewMemory(), nil)}
	if _, err := r.Run(t.Context(), agentWith(newScript(), paying(new(effects), nil, nil)), pawl.UserText("pay"), nil); !as[*pawl.ConfigError](err) {
		t.Errorf("without a store that has transactions: %v", err)
	}
}

// However a transactional body ends, the row is there if and only if the ledger says so.
func TestTransactionalOutcomes(t *testing.T) {
	errNo := errors.New("no money")
	for name, tt := range map[string]struct {
		body    txBody
		change  func(*sqlstore.TxFunc[charge, string])
		out     string // the beginning of the output
		rows    int
		settled []journal.Outcome
	}{
		"error":   {body: func(context.Context, *sql.Tx, *pawl.Call) error { return errNo }, out: "The tool failed: no money", settled: []journal.Outcome{journal.ToolFailed}},
		"panic":   {body: func(context.Context, *sql.Tx, *pawl.Call) error { panic("oh") }, out: "The tool failed: ", settled: []journal.Outcome{journal.ToolFailed}},
		"says so": {body: func(context.Context, *sql.Tx, *pawl.Call) error { return pawl.ErrOutcomeUnknown }, out: "The outcome of this tool call is unknown", settled: []journal.Outcome{journal.Unknown}},
		"its text": {body: func(context.Context, *sql.Tx, *pawl.Call) error { return errNo }, out: "sorry", settled: []journal.Outcome{journal.ToolFailed},
			change: func(f *sqlstore.TxFunc[charge, string]) {
				f.OnError = func(context.Context, *pawl.Call, error) string { return "sorry" }
			}},
		"time is up": {body: func(ctx context.Context, _ *sql.Tx, _ *pawl.Call) error { <-ctx.Done(); return ctx.Err() },
			change: func(f *sqlstore.TxFunc[charge, string]) { f.Timeout = 20 * time.Millisecond },
			out:    "The tool did not end in time. Nothing was changed.", settled: []journal.Outcome{journal.ToolFailed}},
		"rolls back": {body: func(_ context.Context, tx *sql.Tx, _ *pawl.Call) error { return tx.Rollback() },
			out: "The tool rolled its transaction back. Nothing was changed.", settled: []journal.Outcome{journal.ToolFailed}},
		"commits": {body: func(_ context.Context, tx *sql.Tx, _ *pawl.Call) error { return tx.Commit() },
			out: "The outcome of this tool call is unknown", rows: 1, settled: []journal.Outcome{journal.Unknown}},
		"cannot be committed": {body: func(ctx context.Context, tx *sql.Tx, _ *pawl.Call) error {
			_, err := tx.ExecContext(ctx, `CREATE TABLE a (id INTEGER PRIMARY KEY);
				CREATE TABLE b (a INTEGER REFERENCES a DEFERRABLE INITIALLY DEFERRED); INSERT INTO b VALUES (1)`)
			return err
		}, out: "The tool's transaction could not be committed. Nothing was changed.", settled: []journal.Outcome{journal.NotExecuted, journal.NotExecuted, journal.ToolFailed}},
	} {
		t.Run(name, func(t *testing.T) {
			store, rows := payments(t)
			var e effects
			agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done")), paying(&e, tt.body, tt.change))
			r := pawl.Runner{Store: store}
			res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
			if out := outputs(res.NewItems()); len(out) != 1 || !strings.HasPrefix(out[0], "c1: "+tt.out) || rows() != tt.rows {
				t.Errorf("%d rows, output %q, want %q", rows(), out, tt.out)
			}
			if got := settledAs(t, store); !slices.Equal(got, tt.settled) {
				t.Errorf("settled as %q, want %q", got, tt.settled)
			}
			replays(t, &r, "r")
		})
	}
}

// The driver stops while a transactional body is at work: nothing of it is there, and the
// call runs again.
func TestTransactionalStops(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		store, rows := payments(t)
		var e effects
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		r := pawl.Runner{Store: store}
		agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done")), paying(&e, func(ctx context.Context, _ *sql.Tx, c *pawl.Call) error {
			if c.Attempt > 1 {
				return nil
			}
			stop()
			<-ctx.Done()
			return ctx.Err()
		}, nil))
		if _, err := mode.run(&r, ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}); !errors.Is(err, context.Canceled) || rows() != 0 {
			t.Fatalf("%d rows, %v", rows(), err)
		}
		res := must(t)(mode.resume(&r, t.Context(), agent, pawl.RunID("r"), nil))
		e.want(t, "pay 5 attempt 1", "pay 5 attempt 2")
		if res.FinalOutput != "done" || rows() != 1 {
			t.Errorf("%d rows, %+v", rows(), res)
		}
		replays(t, &r, "r")
	})
}

// A run that is cancelled just before its transaction has none.
func TestTransactionalCancelled(t *testing.T) {
	plain, rows := payments(t)
	var e effects
	store := &lossy{Store: plain}
	r := pawl.Runner{Store: store}
	store.before = func() {
		if err := r.Cancel(t.Context(), "r", "ann", "no"); err != nil {
			t.Error(err)
		}
	}
	m := newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done"))
	res, err := r.Run(t.Context(), agentWith(m, paying(&e, nil, nil)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
	cancelled(t, &r, nil, m, nil, res, err)
	e.want(t)
	if got := settledAs(t, store); rows() != 0 || !slices.Equal(got, []journal.Outcome{journal.NotExecuted, journal.Dropped}) {
		t.Errorf("%d rows, settled as %q", rows(), got)
	}
}

// Cancel reaches a transactional body at work, which holds the store's only writer: what it wrote is rolled back, and it is
// not entered again.
func TestTransactionalCancelledAtWork(t *testing.T) {
	store, rows := payments(t)
	var e effects
	written := make(chan struct{})
	body := func(ctx context.Context, _ *sql.Tx, _ *pawl.Call) error {
		close(written)
		<-ctx.Done()
		e.add("%v", ctx.Err())
		return ctx.Err()
	}
	m := newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done"))
	agent := agentWith(m, paying(&e, body, func(f *sqlstore.TxFunc[charge, string]) { f.Timeout = time.Hour }))
	r := pawl.Runner{Store: store}
	asked := make(chan error)
	go func() {
		<-written
		asked <- r.Cancel(context.Background(), "r", "ann", "no")
	}()
	res, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
	if err := <-asked; err != nil {
		t.Error(err)
	}
	cancelled(t, &r, nil, m, nil, res, err)
	e.want(t, "pay 5 attempt 1", "context canceled")
	if got := settledAs(t, store); rows() != 0 || got[0] != journal.NotExecuted || got[len(got)-1] != journal.Dropped {
		t.Errorf("%d rows, settled as %q", rows(), got)
	}
}

// A cancellation that cannot be posted leaves the run as it is: the body that was rolled back for it is entered again.
func TestTransactionalCancelledInVain(t *testing.T) {
	store, rows := payments(t)
	var e effects
	written := make(chan struct{})
	body := func(ctx context.Context, _ *sql.Tx, c *pawl.Call) error {
		if c.Attempt > 1 {
			return nil
		}
		close(written)
		<-ctx.Done()
		return ctx.Err()
	}
	m := newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done"))
	agent := agentWith(m, paying(&e, body, func(f *sqlstore.TxFunc[charge, string]) { f.Timeout = time.Hour }))
	r := pawl.Runner{Store: &shut{store}}
	go func() {
		<-written
		if err := r.Cancel(context.Background(), "r", "ann", "no"); !errors.Is(err, errLost) {
			t.Error(err)
		}
	}()
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	e.want(t, "pay 5 attempt 1", "pay 5 attempt 2")
	if res.FinalOutput != "done" || rows() != 1 {
		t.Errorf("%d rows, %+v", rows(), res)
	}
	replays(t, &r, "r")
}

// shut is a store that takes nothing into an inbox.
type shut struct{ *sqlstore.Store }

func (*shut) Post(context.Context, string, journal.Entry) error { return errLost }

// lossy is a store whose transactions go wrong, one after the other.
type lossy struct {
	*sqlstore.Store
	mu      sync.Mutex
	replies []string
	before  func()
}

var errLost = errors.New("the answer was lost")

func (l *lossy) Transact(ctx context.Context, run string, epoch, after uint64, fn func(context.Context, any) ([]journal.Record, error)) error {
	l.mu.Lock()
	if l.before != nil {
		l.before()
	}
	reply := ""
	if len(l.replies) > 0 {
		reply, l.replies = l.replies[0], l.replies[1:]
	}
	l.mu.Unlock()
	switch reply {
	case "busy":
		return sqlstore.ErrBusy
	case "stored":
		if err := l.Store.Transact(ctx, run, epoch, after, fn); err != nil {
			return err
		}
		return errLost
	case "absent":
		err := l.Store.Transact(ctx, run, epoch, after, func(ctx context.Context, tx any) ([]journal.Record, error) {
			_, err := fn(ctx, tx)
			return nil, errors.Join(errLost, err)
		})
		return err
	case "fenced":
		c, err := l.Claim(ctx, run, journal.ClaimRequest{TTL: time.Millisecond, Takeover: epoch})
		if err != nil {
			return err
		}
		if err := l.Release(ctx, run, c.Epoch, journal.Rest{}); err != nil {
			return err
		}
	}
	return l.Store.Transact(ctx, run, epoch, after, fn)
}

// Whatever the store answers to a transaction, the row is there once.
func TestTransactionalStoreFails(t *testing.T) {
	for name, tt := range map[string]struct {
		replies []string
		stops   error // the first drive
		effects []string
		settled []journal.Outcome
	}{
		"committed, and its answer lost":     {replies: []string{"stored"}, effects: []string{"pay 5 attempt 1"}, settled: []journal.Outcome{journal.Done}},
		"not committed":                      {replies: []string{"absent"}, effects: []string{"pay 5 attempt 1", "pay 5 attempt 2"}, settled: []journal.Outcome{journal.NotExecuted, journal.Done}},
		"busy for a while":                   {replies: []string{"busy", "busy"}, effects: []string{"pay 5 attempt 1"}, settled: []journal.Outcome{journal.Done}},
		"busy for long":                      {replies: []string{"busy", "busy", "busy"}, stops: sqlstore.ErrBusy, effects: []string{"pay 5 attempt 2"}, settled: []journal.Outcome{journal.NotExecuted, journal.Done}},
		"another driver took the run before": {replies: []string{"fenced"}, stops: pawl.ErrFenced, effects: []string{"pay 5 attempt 2"}, settled: []journal.Outcome{journal.Done}},
	} {
		t.Run(name, func(t *testing.T) {
			plain, rows := payments(t)
			store := &lossy{Store: plain, replies: tt.replies}
			var e effects
			agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done")), paying(&e, nil, nil))
			r := pawl.Runner{Store: store}
			res, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
			if !errors.Is(err, tt.stops) {
				t.Fatalf("%v, want %v", err, tt.stops)
			}
			if tt.stops != nil {
				var je *pawl.JournalError
				if !errors.As(err, &je) || rows() != 0 {
					t.Errorf("%d rows, %v", rows(), err)
				}
				res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
			}
			e.want(t, tt.effects...)
			if res.FinalOutput != "done" || rows() != 1 {
				t.Errorf("%d rows, %+v", rows(), res)
			}
			if got := settledAs(t, store); !slices.Equal(got, tt.settled) {
				t.Errorf("settled as %q, want %q", got, tt.settled)
			}
			replays(t, &r, "r")
		})
	}
}

// A store that lends no transaction is refused before anything happens.
func TestTransactionalNeedsItsStore(t *testing.T) {
	var e effects
	m := newScript()
	agent := agentWith(m, paying(&e, nil, nil))
	for name, r := range map[string]*pawl.Runner{"none": {}, "memory": {Store: journal.NewMemory()}} {
		_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
		var bad *pawl.ConfigError
		if !errors.As(err, &bad) || bad.Field != "Runner.Store" || len(m.calls()) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	store, _ := payments(t)
	r := pawl.Runner{Store: store}
	agent.Model = newScript(calling(fc("c1", "ask", `{"cents":5}`)))
	agent.Tools = []pawl.Tool{charging("ask", &e, asking)}
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	agent.Tools = append(agent.Tools, paying(&e, nil, nil))
	_, err := new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, res.State()), nil)
	if !errors.As(err, new(*pawl.ConfigError)) {
		t.Errorf("resumed elsewhere: %v", err)
	}
}

// A tool planned as transactional does not run outside the transaction.
func TestTransactionalTurnedOrdinary(t *testing.T) {
	store, rows := payments(t)
	var e effects
	agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done")), paying(&e, nil, func(f *sqlstore.TxFunc[charge, string]) { f.Approve = pawl.AlwaysAsk[charge] }))
	r := pawl.Runner{Store: store}
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
		t.Fatal(err)
	}
	tools := agent.Tools
	agent.Tools = []pawl.Tool{charging("pay", &e, nil)}
	if _, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrToolChanged) {
		t.Errorf("%v", err)
	}
	e.want(t)
	agent.Tools = tools
	must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	e.want(t, "pay 5 attempt 1")
	if rows() != 1 {
		t.Errorf("%d rows", rows())
	}
}

// A transactional tool of a nested run commits with its frame's outcome. An agent that has one
// needs such a store, however deep it is.
func TestNestedTransactionalTool(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		store, rows := payments(t)
		var e effects
		manager, billing := newScript(calling(ask("a", "go")), says("done")), newScript(calling(fc("x", "pay", `{"cents":5}`)), says("billed"))
		agent := withBilling(manager, billing, &pawl.AgentToolOptions{Options: &pawl.RunOptions{Session: store.Session("inner")}}, paying(&e, nil, nil))
		r := &pawl.Runner{Store: store}
		res := must(t)(mode.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: store.Session("outer")}))
		held, err := store.Session("inner").Items(t.Context(), -1)
		if got := texts(held); err != nil || got != "user: go\ncall x\nx: paid\nassistant: billed" || rows() != 1 || res.FinalOutput != "done" {
			t.Errorf("%d rows, %v, the inner session:\n%s", rows(), err, got)
		}
		replays(t, r, "r")
		if _, err := mode.run(&pawl.Runner{}, t.Context(), agent, pawl.UserText("pay"), nil); !as[*pawl.ConfigError](err) {
			t.Errorf("without transactions: %v", err)
		}
	})
}
