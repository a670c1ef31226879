package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/cmd/pawl/internal/agentfile"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
	"github.com/pawl-agents/pawl/sqlstore/pgstore"
	"github.com/spf13/cobra"
)

const workLong = `Drives the runs of an agent that is written down in a YAML file, until it is told to end: those that "submit" put
into the store, that were decided, whose time has come, or whose process is gone. Any number of workers share a
store; each run is driven by one of them.

On SIGTERM or Ctrl-C it takes up nothing more, lets what it drives go on for --drain, and leaves the rest to others.`

func (a *app) workCommand() *cobra.Command {
	var o pawl.WorkOptions
	var listen string
	cmd := &cobra.Command{
		Use:   "work FILE",
		Short: "Drive the runs of an agent, as one of many workers",
		Long:  workLong,
		Args:  cobra.ExactArgs(1),
		RunE: a.do(func(cmd *cobra.Command, args []string) (any, error) {
			if len(o.Queues) == 0 {
				o.Queues = nil
			}
			if listen != "" && !a.isDatabase() {
				return nil, &usageError{errors.New("--listen is for a store in PostgreSQL")}
			}
			return a.work(cmd.Context(), args[0], listen, &o)
		}),
	}
	cmd.Flags().IntVar(&o.Parallel, "max", pawl.DefaultParallel, "drive at most so many `runs` at a time")
	cmd.Flags().IntVar(&o.MaxPerQueue, "max-per-queue", 0, "drive at most so many `runs` of one queue at a time")
	cmd.Flags().StringArrayVar(&o.Queues, "queue", nil, "take runs of this `queue` only; may be given several times")
	cmd.Flags().DurationVar(&o.Poll, "poll", pawl.DefaultPoll, "look for runs so often")
	cmd.Flags().DurationVar(&o.Drain, "drain", 10*time.Second, "how long runs may go on when the worker is to end")
	cmd.Flags().StringVar(&listen, "listen", "", "`URL` of the PostgreSQL server itself, to hear of decisions at once where --store goes through a pooler")
	cmd.Flags().BoolVar(&o.Failed, "retry-failed", false, "try runs that failed again")
	return cmd
}

// agentOf reads the agent of a file. A mistake in it is one of the command line.
func agentOf(path string) (*pawl.Agent, *agentfile.File, error) {
	agent, file, err := agentfile.Agent(path, os.LookupEnv)
	var wrong *agentfile.Error
	if errors.As(err, &wrong) || errors.Is(err, os.ErrNotExist) {
		err = &usageError{err}
	}
	return agent, file, err
}

// worked is what a worker did.
type worked struct {
	Finished int `json:"finished"`
	Waiting  int `json:"waiting"`
	Failed   int `json:"failed"`
}

func (a *app) work(ctx context.Context, path, listen string, o *pawl.WorkOptions) (any, error) {
	agent, file, err := agentOf(path)
	if err != nil {
		return nil, err
	}
	if err := file.CheckModel(); err != nil {
		return nil, &usageError{err}
	}
	st, err := a.makeStore(ctx, listen)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	w := &watch{app: a, ctx: ctx}
	o.Each = w.tell
	r := &pawl.Runner{Store: st, Agents: []*pawl.Agent{agent}, Sessions: func(id string) session.Session { return sessionOf(st, id) }}
	a.screen.head("%s works on %s", agent.Name, a.storeName())
	if err := r.Work(ctx, o); err != nil {
		var wrong *pawl.ConfigError
		if errors.As(err, &wrong) {
			err = &usageError{err}
		}
		return nil, err
	}
	a.screen.line("%d runs finished, %d times one began to wait, %d times one could not go on.", w.done.Finished, w.done.Waiting, w.done.Failed)
	return w.done, nil
}

// watch is what a worker shows of what it does.
type watch struct {
	*app
	ctx   context.Context // ends when the worker is to
	done  worked
	store string // the trouble with the store that was shown last
}

// tell says what became of a run, and counts it. Without a run it is of the store, which is looked at again and again.
func (w *watch) tell(run pawl.RecoveredRun) {
	a, id := w.app, printable(run.Run)
	if run.Run != "" {
		w.store = ""
	}
	switch {
	case run.Run == "":
		if trouble := trouble(run.Err); trouble != w.store {
			w.store = trouble
			a.screen.line("the store  %s", printable(trouble))
		}
	case run.Result == nil && w.ctx.Err() != nil && errors.Is(run.Err, context.Canceled):
		a.screen.line("%s  left, for other workers", id)
	case run.Result == nil:
		w.done.Failed++
		a.screen.line("%s  failed  %s", id, printable(strings.TrimPrefix(run.Err.Error(), "pawl: ")))
	case run.Result.Waiting():
		w.done.Waiting++
		a.screen.line("%s  waiting", id)
		for _, in := range run.Result.Interruptions {
			for i, command := range a.deciders(in, len(run.Result.Interruptions)) {
				a.screen.command(answers(in.Kind)[i], command)
			}
		}
	default:
		w.done.Finished++
		a.screen.line("%s  %s  %s", id, run.Result.Status, printable(fmt.Sprint(run.Result.FinalOutput)))
	}
}

// trouble is what is wrong with the store, whatever it was asked.
func trouble(err error) string {
	for _, known := range []error{pgstore.ErrUnreachable, pgstore.ErrAccess, sqlstore.ErrBusy, sqlstore.ErrAccess} {
		if errors.Is(err, known) {
			return strings.TrimPrefix(known.Error(), "pawl: ") + "; it is asked again"
		}
	}
	return strings.TrimPrefix(err.Error(), "pawl: ")
}

const submitLong = `Puts a run of the agent in FILE into the store, for a worker ("work") to drive, and prints its id. With --id it may be
repeated: the same id with the same text is the same run.`

// submitted is a run that was put into the store.
type submitted struct {
	Run string `json:"run"`
}

func (a *app) submitCommand() *cobra.Command {
	var o pawl.RunOptions
	var at, sessionID string
	cmd := &cobra.Command{
		Use:   "submit FILE TEXT",
		Short: "Put a run into the store for a worker",
		Long:  submitLong,
		Args:  cobra.ExactArgs(2),
		RunE: a.do(func(cmd *cobra.Command, args []string) (any, error) {
			var err error
			if o.StartAt, err = timeOf(at, time.Now()); err != nil {
				return nil, &usageError{err}
			}
			return a.submit(cmd.Context(), args[0], args[1], sessionID, &o)
		}),
	}
	cmd.Flags().StringVar(&o.ID, "id", "", "the run's `id`; one is made up if absent")
	cmd.Flags().StringVar(&o.Queue, "queue", "", "the `queue` that it shares its turn with, for example the tenant")
	cmd.Flags().IntVar(&o.Priority, "priority", 0, "runs of a higher `number` come first")
	cmd.Flags().StringVar(&at, "at", "", "begin it then: a `time` like 2030-01-31T09:00:00Z, or a duration from now like 1h30m")
	cmd.Flags().StringVar(&sessionID, "session", "", "the `id` of the session in the store that it goes on with")
	return cmd
}

// timeOf reads a time, or a duration from now.
func timeOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		err = fmt.Errorf("--at %s: it is neither a time like %s nor a duration like 1h30m", text, now.UTC().Format(time.RFC3339))
	}
	return at, err
}

func (a *app) submit(ctx context.Context, path, text, sessionID string, o *pawl.RunOptions) (any, error) {
	agent, file, err := agentOf(path)
	if err != nil {
		return nil, err
	}
	st, err := a.makeStore(ctx, "")
	if err != nil {
		return nil, err
	}
	defer st.Close()
	o.MaxTurns = file.MaxTurns
	if sessionID != "" {
		o.Session = sessionOf(st, sessionID)
	}
	run, err := (&pawl.Runner{Store: st}).Submit(ctx, agent, pawl.UserText(text), o)
	if err != nil {
		return nil, err
	}
	a.screen.line("%s", printable(run))
	a.screen.command("drive", a.command("work", path))
	a.screen.command("look", a.command("show", run))
	return submitted{run}, nil
}

// makeStore opens the store, and makes it where there is none. A database is listened to at another URL if there is one.
func (a *app) makeStore(ctx context.Context, listen string) (store, error) {
	if a.isDatabase() {
		return a.openDatabase(ctx, pgstore.Options{ListenURL: listen})
	}
	if _, err := os.Stat(a.store); errors.Is(err, os.ErrNotExist) {
		if filepath.Ext(a.store) == ".db" {
			return sqlstore.OpenSQLite(a.store, nil)
		}
		if err := os.MkdirAll(a.store, 0o700); err != nil {
			return nil, err
		}
	}
	return sqlstore.OpenSQLite(a.storePath(), nil)
}

// sessionOf is a session that the store has.
func sessionOf(st store, id string) session.Session {
	switch st := st.(type) {
	case *sqlstore.Store:
		return st.Session(id)
	case *pgstore.Store:
		return st.Session(id)
	}
	return nil
}
