package main

import (
	"bytes"
	"context"
	"database/sql"
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

// The files of a campaign.
const (
	runsFile   = "runs.db"
	besideFile = "beside.db"
	effectsDir = "effects"
)

// worker is a process that does what the parent hands it.
type worker struct {
	number int
	url    string
	seed   uint64
	runner *pawl.Runner
	log    effectLog
}

// lease is short, because a worker that seems to be on another host holds its runs for so long after its death.
const lease = 1500 * time.Millisecond

// work is a worker's whole life.
func work(ctx context.Context, args []string) error {
	w, st, box := &worker{}, &store{}, &toolbox{}
	var dir string
	var parallel int
	f := flag.NewFlagSet(workerWord, flag.ContinueOnError)
	f.IntVar(&w.number, "number", 0, "")
	f.StringVar(&w.url, "url", "", "")
	f.Uint64Var(&w.seed, "seed", 0, "")
	f.StringVar(&dir, "dir", "", "")
	f.IntVar(&parallel, "parallel", 1, "")
	f.StringVar(&st.elsewhere, "elsewhere", "", "")
	f.Int64Var(&st.death.at, "die", 0, "")
	f.BoolVar(&st.death.after, "after", false, "")
	f.BoolVar(&box.lie, "lie", false, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	opts := &sqlstore.Options{BusyTimeout: time.Minute}
	var err error
	if st.Store, err = sqlstore.OpenSQLite(filepath.Join(dir, runsFile), opts); err != nil {
		return err
	}
	if err := st.Update(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, bookings)
		return err
	}); err != nil {
		return err
	}
	beside, err := sqlstore.OpenSQLite(filepath.Join(dir, besideFile), opts)
	if err != nil {
		return err
	}
	w.log = effectLog(filepath.Join(dir, effectsDir))
	box.log, box.far = w.log, w.url+farPath
	agent := box.agent(openai.New(openai.Options{BaseURL: w.url + "/v1"}).Responses("chaos"))
	w.runner = &pawl.Runner{Store: st, Agents: []*pawl.Agent{agent}, Sessions: conversations{st, beside}.session, Lease: lease}
	var group sync.WaitGroup
	for range parallel {
		group.Go(func() { w.loop(ctx) })
	}
	group.Wait()
	return errors.Join(st.Close(), beside.Close())
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
			time.Sleep(5 * time.Millisecond)
			continue
		}
		r := report{ID: t.ID}
		r.Status, r.Problem, r.Text = w.do(ctx, t)
		if err := w.post(ctx, reportPath, r, nil); err != nil {
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
func (w *worker) do(ctx context.Context, t task) (status, problem, text string) {
	var res *pawl.Result
	var err error
	switch t.Do {
	case doRun:
		res, err = w.runner.Run(ctx, w.runner.Agents[0], t.Plan.input(), w.options(t.Plan))
	case doResume:
		res, err = w.runner.Resume(ctx, nil, pawl.RunID(t.Plan.Run), &pawl.RunOptions{ToolNotFound: pawl.TellModel})
	case doDecide:
		var decisions []pawl.Decision
		if _, decisions, err = w.decisions(ctx, t); err == nil && len(decisions) > 0 {
			err = w.runner.Decide(ctx, t.Plan.Run, decisions...)
			status = statusDecided
		}
	case doDecideAndResume:
		var state *pawl.RunState
		if state, _, err = w.decisions(ctx, t); err == nil {
			res, err = w.runner.Resume(ctx, nil, state, &pawl.RunOptions{ToolNotFound: pawl.TellModel})
		}
	case doCancel:
		err = w.runner.Cancel(ctx, t.Plan.Run, "chaos", "it was in the plan")
		status = statusDecided
	default:
		err = fmt.Errorf("no task is called %q", t.Do)
	}
	if res != nil {
		status = string(res.Status)
	}
	if err != nil {
		problem, text = problemOf(err), err.Error()
	}
	return status, problem, text
}

func (w *worker) options(p plan) *pawl.RunOptions {
	o := &pawl.RunOptions{ID: p.Run, ToolNotFound: pawl.TellModel, MaxParallelTools: p.Turns % 3, AutoPreviousResponseID: p.Mode == modeChain}
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
	problemOther     = "other"
)

func problemOf(err error) string {
	for _, p := range []struct {
		is   error
		word string
	}{
		{pawl.ErrClaimed, problemClaimed}, {pawl.ErrFenced, problemFenced}, {pawl.ErrUnknownRun, problemUnknown}, {pawl.ErrDecided, problemDecided},
		{pawl.ErrCallInFlight, problemInFlight}, {pawl.ErrConflict, problemConflict}, {pawl.ErrNotOpen, problemNotOpen}, {pawl.ErrCancelled, problemCancelled},
		{pawl.ErrDeliveryAmbiguous, problemAmbiguous},
	} {
		if errors.Is(err, p.is) {
			return p.word
		}
	}
	return problemOther
}
