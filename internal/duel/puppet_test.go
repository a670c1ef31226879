//go:build unix

package duel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

// puppetWord as the first argument makes the test binary a puppet.
const puppetWord = "puppet"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == puppetWord {
		if err := dance(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// command is what a puppet is told, one line of JSON each.
type command struct {
	Do  string // start, resume, stream, document, go, release
	Run string
	// Session is the run's session, empty for none.
	Session string
	// Gated asks for approval; OnUnknown is the tool's.
	Gated     bool
	OnUnknown pawl.OnUnknown
	// Document is a run state for "document".
	Document []byte
	// Hold keeps the body until "release". StopAt stops the process there: "intent" or "body".
	Hold   bool
	StopAt string
}

// answer is what a puppet says of a command.
type answer struct {
	Status pawl.Status
	Output string
	// Claimed and Fenced say what kind of error it was.
	Claimed, Fenced bool
	Error           string
}

// The lease and the tool's timeout are short, because others wait for them to run out.
const (
	lease       = time.Second
	toolTimeout = time.Second
)

// world is what a process has to work with.
type world struct {
	store   *stoppingStore
	log     *pawltest.EffectLog
	hold    bool
	stopAt  string
	release chan struct{}
}

const (
	storeFile  = "runs.db"
	logFile    = "effects.jsonl"
	stopIntent = "intent"
	stopBody   = "body"
)

func openWorld(dir string) (*world, error) {
	st, err := sqlstore.OpenSQLite(filepath.Join(dir, storeFile), &sqlstore.Options{BusyTimeout: time.Minute})
	if err != nil {
		return nil, err
	}
	w := &world{log: pawltest.OpenEffectLog(filepath.Join(dir, logFile)), release: make(chan struct{})}
	w.store = &stoppingStore{st, w}
	return w, nil
}

type payment struct {
	Cents int `json:"cents"`
}

// runner returns a runner with the agent that a command is about.
func (w *world) runner(c command) *pawl.Runner {
	pay := pawl.Func[payment, string]{Name: "pay", Timeout: toolTimeout, OnUnknown: c.OnUnknown, Run: w.pay}
	if c.Gated {
		pay.Approve = pawl.AlwaysAsk[payment]
	}
	agent := &pawl.Agent{Name: "Payer", Model: payer{c.Run}, Tools: []pawl.Tool{pawl.NewTool(pay)}}
	return &pawl.Runner{Store: w.store, Agents: []*pawl.Agent{agent}, Lease: lease,
		Sessions: func(id string) session.Session { return w.session(id) }}
}

// session is a session in the store, nil without an id.
func (w *world) session(id string) session.Session {
	if id == "" {
		return nil
	}
	return inStore{w.store.Session(id), w.store}
}

// inStore is a session whose batches commit with the facts of the store.
type inStore struct {
	*sqlstore.Session
	store journal.Driver
}

// Store is the driver whose transactions the session joins.
func (s inStore) Store() journal.Driver { return s.store }

// pay is the body. The log names the process that entered it.
func (w *world) pay(ctx context.Context, c *pawl.Call, _ payment) (string, error) {
	err := w.log.Record(pawltest.Effect{Tool: c.Tool, Key: c.Key, CallID: c.ID, Attempt: c.Attempt, Arguments: strconv.Itoa(os.Getpid())})
	if err != nil {
		return "", err
	}
	if w.stopAt == stopBody {
		stopped()
		return paid(c.Key), nil // whatever the time is now
	}
	if w.hold {
		select {
		case <-w.release:
		case <-ctx.Done():
		}
	}
	return paid(c.Key), nil
}

func paid(key string) string { return "paid under " + key }

// payer is a model that pays once and then says so.
type payer struct{ run string }

func (payer) Info() model.Info { return model.Info{Provider: "duel", Name: "payer"} }

func (p payer) Call(_ context.Context, req *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
	for _, it := range req.Input.Items() {
		if o, err := it.FunctionCallOutput(); err == nil {
			return &model.Response{Items: []item.Item{item.MessageItem("", "The answer was: "+o.Text)}}, nil
		}
	}
	return &model.Response{Items: []item.Item{item.FunctionCallItem("", "call_"+p.run, "pay", `{"cents":5}`)}}, nil
}

// dance does what standard input says until it ends.
func dance(dir string) error {
	w, err := openWorld(dir)
	if err != nil {
		return err
	}
	commands := json.NewDecoder(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	start := make(chan struct{})
	for {
		var c command
		if err := commands.Decode(&c); err != nil {
			return nil
		}
		switch c.Do {
		case "go":
			close(start)
			start = make(chan struct{})
		case "release":
			w.release <- struct{}{}
		default:
			w.hold, w.stopAt = c.Hold, c.StopAt
			runner, at := w.runner(c), start
			if err := out.Encode(answer{}); err != nil { // it is ready
				return err
			}
			go func() {
				<-at
				out.Encode(w.do(runner, c))
			}()
		}
	}
}

func (w *world) do(r *pawl.Runner, c command) (a answer) {
	ctx := context.Background()
	var res *pawl.Result
	var err error
	switch c.Do {
	case "start":
		res, err = r.Run(ctx, r.Agents[0], pawl.UserText("pay"), &pawl.RunOptions{ID: c.Run, Session: w.session(c.Session)})
	case "resume":
		res, err = r.Resume(ctx, nil, pawl.RunID(c.Run), nil)
	case "stream":
		for ev, streamErr := range r.ResumeStream(ctx, nil, pawl.RunID(c.Run), nil) {
			if done, ok := ev.(*pawl.Done); ok {
				res = done.Result
			}
			err = streamErr
		}
	case "document":
		var state *pawl.RunState
		if state, err = pawl.ParseRunState(c.Document); err == nil {
			res, err = r.Resume(ctx, nil, state, nil)
		}
	}
	if res != nil {
		a.Status, a.Output = res.Status, res.FinalOutput
	}
	if err != nil {
		a.Error, a.Claimed, a.Fenced = err.Error(), errors.Is(err, pawl.ErrClaimed), errors.Is(err, pawl.ErrFenced)
	}
	return a
}

// puppet is a process that does what it is told.
type puppet struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	says chan answer
}

func newPuppet(t *testing.T, dir string) *puppet {
	t.Helper()
	cmd := exec.Command(os.Args[0], puppetWord, dir)
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
	p := &puppet{t, cmd, in, make(chan answer, 4)}
	go func() {
		defer close(p.says)
		for dec := json.NewDecoder(bufio.NewReader(out)); ; {
			var a answer
			if dec.Decode(&a) != nil {
				return
			}
			p.says <- a
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		for range p.says { // the pipe is read to its end before Wait closes it
		}
		cmd.Wait()
	})
	return p
}

func (p *puppet) tell(c command) {
	p.t.Helper()
	if err := json.NewEncoder(p.in).Encode(c); err != nil {
		p.t.Fatal(err)
	}
}

// patience is how long an answer may take on a machine that is busy.
const patience = 2 * time.Minute

func (p *puppet) hear() answer {
	p.t.Helper()
	select {
	case a, ok := <-p.says:
		if !ok {
			p.t.Fatal("the process ended")
		}
		return a
	case <-time.After(patience):
		p.t.Fatal("the process does not answer")
	}
	return answer{}
}

// ready tells a command and waits until "go" is all that is missing.
func (p *puppet) ready(c command) {
	p.t.Helper()
	p.tell(c)
	p.hear()
}

// does has the puppet do something now, and returns its answer.
func (p *puppet) does(c command) answer {
	p.t.Helper()
	p.ready(c)
	p.tell(command{Do: "go"})
	return p.hear()
}
