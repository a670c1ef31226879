package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/pawl-agents/pawl/sqlstore"
)

// workerWord as the first argument makes the program a worker.
const workerWord = "worker"

// IsWorker says that a command line is that of a worker.
func IsWorker(args []string) bool { return len(args) > 1 && args[1] == workerWord }

// The files of a campaign.
const (
	runsFile   = "runs.db"
	besideFile = "beside.db"
	effectsDir = "effects"
)

// worker is a process that does what the parent hands it.
type worker struct {
	host   Host
	number int
	url    string
	seed   uint64
	runner *pawl.Runner
	log    effectLog
	// supervise and recover say what it does beside its tasks.
	supervise, recover bool
}

// lease is short, because a worker that seems to be on another host holds its runs for so long after its death.
const lease = 1500 * time.Millisecond

// Work is a worker's whole life.
func Work(ctx context.Context, h Host, args []string) error {
	w, st, box := &worker{host: h}, &store{}, &toolbox{slow: h.slow()}
	var dir, url, engine string
	var parallel int
	f := flag.NewFlagSet(workerWord, flag.ContinueOnError)
	f.IntVar(&w.number, "number", 0, "")
	f.StringVar(&w.url, "url", "", "")
	f.Uint64Var(&w.seed, "seed", 0, "")
	f.StringVar(&dir, "dir", "", "")
	f.StringVar(&url, "postgres", "", "")
	f.StringVar(&engine, "engine", "", "")
	f.IntVar(&parallel, "parallel", 1, "")
	f.StringVar(&st.elsewhere, "elsewhere", "", "")
	f.Int64Var(&st.death.at, "die", 0, "")
	f.BoolVar(&st.death.after, "after", false, "")
	f.BoolVar(&w.supervise, "supervise", false, "")
	f.BoolVar(&w.recover, "recover", false, "")
	f.Var(&box.lie, "lie", "")
	err := f.Parse(args[2:])
	if err != nil {
		return err
	}
	if st.database, err = openDatabase(ctx, url, dir); err != nil {
		return err
	}
	if err := makeBookings(ctx, st.database); err != nil {
		return err
	}
	beside, err := sqlstore.OpenSQLite(filepath.Join(dir, besideFile), &sqlstore.Options{BusyTimeout: time.Minute})
	if err != nil {
		return err
	}
	w.log = effectLog(filepath.Join(dir, effectsDir))
	box.log, box.url, box.worker, box.store = w.log, w.url, w.number, st.database
	st.twice = box.lie == lieLate
	agent := box.agent(openai.New(openai.Options{BaseURL: w.url + "/v1"}).Responses("chaos"))
	w.runner = &pawl.Runner{Store: st, Agents: []*pawl.Agent{agent}, Sessions: conversations{st, beside}.session, Lease: lease}
	stop := func() {}
	if h.engine() {
		stop, err = h.Join(engine, dir, w.runner, whileDriven)
	}
	switch {
	case err != nil:
	case h.engine() && parallel == 0: // it is there for the engine
		<-ctx.Done()
		stop()
	default:
		err = w.live(ctx, parallel)
		stop()
	}
	return errors.Join(err, st.Close(), beside.Close())
}

// live does tasks, and takes up runs for as long as there are any.
func (w *worker) live(ctx context.Context, parallel int) (err error) {
	watching, stop := context.WithCancel(ctx)
	var watch, group sync.WaitGroup
	opts := &pawl.WorkOptions{Poll: 100 * time.Millisecond}
	opts.Parallel, opts.Failed = parallel+1, true
	opts.Options = whileDriven
	opts.Each = func(run pawl.RecoveredRun) { w.tell(watching, run) }
	var worked error
	if w.supervise {
		watch.Go(func() { worked = w.runner.Work(watching, opts) })
	}
	if w.recover && !w.host.engine() {
		group.Go(func() { w.runner.Recover(ctx, &opts.RecoverOptions) }) // what went wrong is told
	}
	for range parallel {
		group.Go(func() { w.loop(ctx) })
	}
	group.Wait()
	stop()
	watch.Wait()
	return worked
}

// tell reports what became of a run that was taken up.
func (w *worker) tell(ctx context.Context, run pawl.RecoveredRun) {
	r := report{Worker: w.number, Run: run.Run}
	w.fill(&r, run.Result, run.Err)
	if err := w.post(ctx, reportPath, r, nil); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
	}
}

// fill says what a task ended with.
func (w *worker) fill(r *report, res *pawl.Result, err error) {
	if res != nil {
		r.Status, r.Deadline = string(res.Status), deadlineOf(res.Interruptions)
		r.Mark = fmt.Sprint(res.Turns)
		for _, in := range res.Interruptions {
			r.Mark += " " + in.ID
		}
	}
	if err != nil {
		r.Problem, r.Text = problemOf(err), err.Error()
	}
}

// deadlineOf is when the first of some approvals expires.
func deadlineOf(list []pawl.Interruption) (first time.Time) {
	for _, in := range list {
		if !in.Expires.IsZero() && (first.IsZero() || in.Expires.Before(first)) {
			first = in.Expires
		}
	}
	return first
}

// loop does one task after another until the parent has no more.
func (w *worker) loop(ctx context.Context) {
	for {
		var t task
		if err := w.post(ctx, taskPath, w.number, &t); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			return
		}
		switch t.Do {
		case doQuit:
			return
		case doIdle:
			time.Sleep(5 * time.Millisecond * time.Duration(w.host.slow()))
			continue
		}
		if err := w.post(ctx, reportPath, w.do(ctx, t), nil); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			return
		}
	}
}

func (w *worker) post(ctx context.Context, path string, body, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if into == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(into)
}

// do does one task. The status is the run's, as far as the worker knows it.
func (w *worker) do(ctx context.Context, t task) report {
	r := report{ID: t.ID, Worker: w.number, Run: t.Plan.Run}
	var res *pawl.Result
	var err error
	switch t.Do {
	case doRun:
		if t.ID%3 == 0 { // whoever comes first goes on with it
			r.Status = string(pawl.StatusRunning)
			_, err = w.runner.Submit(ctx, w.runner.Agents[0], t.Plan.input(), w.options(t.Plan))
			break
		}
		res, err = w.runner.Run(ctx, w.runner.Agents[0], t.Plan.input(), w.options(t.Plan))
	case doResume:
		res, err = w.runner.Resume(ctx, nil, pawl.RunID(t.Plan.Run), w.driving())
	case doDecide:
		var decisions []pawl.Decision
		var state *pawl.RunState
		if state, decisions, err = w.decisions(ctx, t); err != nil {
			break
		}
		if res = state.Result(); len(decisions) > 0 {
			res, r.Status = nil, statusDecided
			err = w.runner.Decide(ctx, t.Plan.Run, decisions...)
		}
	case doDecideAndResume:
		var state *pawl.RunState
		if state, _, err = w.decisions(ctx, t); err == nil {
			res, err = w.runner.Resume(ctx, nil, state, w.driving())
		}
	case doCancel:
		r.Status = statusDecided
		err = w.runner.Cancel(ctx, t.Plan.Run, "chaos", "it was in the plan")
	case doDeliver:
		r.Interruption, err = w.deliver(ctx, t)
	case doLook:
		var state *pawl.RunState
		if state, err = w.runner.State(ctx, t.Plan.Run); err == nil {
			res = state.Result()
		}
	default:
		err = fmt.Errorf("no task is called %q", t.Do)
	}
	w.fill(&r, res, err)
	return r
}

// whileDriven are the options of whoever drives a run.
func whileDriven(string) *pawl.RunOptions { return &pawl.RunOptions{ToolNotFound: pawl.TellModel} }

// driving are the options to give with a call: on an engine nobody here drives the run.
func (w *worker) driving() *pawl.RunOptions {
	if w.host.engine() {
		return &pawl.RunOptions{}
	}
	return whileDriven("")
}

func (w *worker) options(p plan) *pawl.RunOptions {
	o := w.driving()
	o.ID, o.MaxParallelTools, o.AutoPreviousResponseID = p.Run, p.Turns%3, p.Mode == modeChain
	switch {
	case p.Mode == modeConversation:
		o.ConversationID = p.Session
	case p.Mode.holdsSession():
		o.Session = w.runner.Sessions(p.Session)
	}
	return o
}

// The words for what a task may end with. Any other error is a problemOther.
const (
	problemClaimed   = "claimed"
	problemFenced    = "fenced"
	problemUnknown   = "unknown-run"
	problemDecided   = "decided"
	problemNotOpen   = "not-open"
	problemInFlight  = "in-flight"
	problemConflict  = "conflict"
	problemCancelled = "cancelled"
	problemAmbiguous = "ambiguous"
	problemExpired   = "expired"
	problemOther     = "other"
)

func problemOf(err error) string {
	for _, p := range []struct {
		is   error
		word string
	}{
		{pawl.ErrClaimed, problemClaimed}, {pawl.ErrFenced, problemFenced}, {pawl.ErrUnknownRun, problemUnknown}, {pawl.ErrDecided, problemDecided},
		{pawl.ErrCallInFlight, problemInFlight}, {pawl.ErrConflict, problemConflict}, {pawl.ErrNotOpen, problemNotOpen}, {pawl.ErrCancelled, problemCancelled},
		{pawl.ErrDeliveryAmbiguous, problemAmbiguous}, {pawl.ErrApprovalExpired, problemExpired},
	} {
		if errors.Is(err, p.is) {
			return p.word
		}
	}
	return problemOther
}
