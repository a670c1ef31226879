package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// Defaults of Options.
const (
	DefaultTaskQueue = "pawl"
	DefaultHeartbeat = 10 * time.Second
	DefaultTimeout   = time.Hour
)

// Options are the options of an engine and of its workers, which must agree on TaskQueue, Prefix and Namespace. The zero
// value is all defaults.
type Options struct {
	// TaskQueue is the queue of the workflows and their activities; empty means DefaultTaskQueue.
	TaskQueue string
	// Prefix stands before the id of a run in the id of its workflow. Stores whose runs may have the
	// same ids need different ones in a namespace.
	Prefix string
	// Namespace tells the engines of a store apart that have several; empty means "default". It is
	// the client's.
	Namespace string
	// Blobs keeps what is larger than 64 KB. The client needs DataConverter with the same; without,
	// the outcome of an effect has at most 1 MB.
	Blobs Blobs
	// Bus brings deltas to those who stream. Nil means that a stream has no deltas.
	Bus Bus
	// Synchronous makes Decide, Cancel and AddInput wait up to two seconds until the workflow has
	// taken the message. Without a worker the message is sent all the same.
	Synchronous bool
	// Heartbeat is after how long without a sign of life a worker is taken for lost; 0 means
	// DefaultHeartbeat. It is a matter of the workers.
	Heartbeat time.Duration
	// Timeout bounds an activity that is no tool; 0 means DefaultTimeout. Tools have their own. It
	// is a matter of the workers.
	Timeout time.Duration
}

// timing is what the activities of a worker take.
type timing struct {
	Heartbeat, Timeout, Grace time.Duration
	// Full is the number of events above which a workflow is continued as a new one.
	Full int
}

func (o Options) timing(grace time.Duration) timing {
	// A body ends at its deadline, then has its grace, and its outcome is stored.
	return timing{cmp.Or(o.Heartbeat, DefaultHeartbeat), cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(grace, pawl.DefaultGrace) + time.Minute, fullEvents}
}

func (o Options) queue() string { return cmp.Or(o.TaskQueue, DefaultTaskQueue) }

func (o Options) name() string { return "temporal/" + cmp.Or(o.Namespace, "default") }

// Engine has the workflows of runs. It is safe for concurrent use.
type Engine struct {
	client client.Client
	opts   Options

	mu   sync.Mutex
	over map[string]time.Time // when a workflow of which somebody waits for the run was first seen to be over
}

var _ pawl.Engine = (*Engine)(nil)

// New returns the engine for Runner.Engine.
func New(c client.Client, opts Options) *Engine { return &Engine{client: c, opts: opts} }

// Name names the engine in claims.
func (e *Engine) Name() string { return e.opts.name() }

// Check says whether blobs can be read, as far as the Blobs can tell: a *pawl.ConfigError.
func (e *Engine) Check() error { return checkBlobs(e.opts.Blobs, false) }

// Start starts the workflow of a run, unless there is one.
func (e *Engine) Start(ctx context.Context, run string) error {
	_, err := e.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: e.opts.Prefix + run, TaskQueue: e.opts.queue(),
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
		WorkflowExecutionErrorWhenAlreadyStarted: true}, workflowName, runInput{Run: run})
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if err == nil || errors.As(err, &started) {
		return nil
	}
	return fmt.Errorf("pawl: starting the workflow of run %s: %w", run, err)
}

// synchronous is how long a message waits for an answer.
const synchronous = 2 * time.Second

// Tell sends messages as signals, or, to wait until they are taken, as updates.
func (e *Engine) Tell(ctx context.Context, run string, messages []journal.Entry) error {
	var large error // it is not to keep the others, as a cancellation, from the run
	for _, m := range messages {
		if size := encode1(m.Body).size(); e.opts.Blobs == nil && size > maxPayload {
			large = needsBlobs(fmt.Sprintf("a message of %d bytes", size))
			continue
		}
		if e.opts.Synchronous && e.update(ctx, run, m) {
			continue
		}
		if err := e.signal(ctx, run, messageName, encodeMessage(m)); err != nil {
			if !errors.Is(err, pawl.ErrUnknownRun) {
				err = fmt.Errorf("%w; the message is in the store, and sent again", err)
			}
			return err
		}
	}
	return large
}

// update reports whether the workflow has taken a message in time.
func (e *Engine) update(ctx context.Context, run string, m journal.Entry) bool {
	ctx, cancel := context.WithTimeout(ctx, synchronous)
	defer cancel()
	h, err := e.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: e.opts.Prefix + run, UpdateID: m.Key, UpdateName: messageName,
		Args: []any{encodeMessage(m)}, WaitForStage: client.WorkflowUpdateStageCompleted})
	return err == nil && h.Get(ctx, nil) == nil
}

func (e *Engine) signal(ctx context.Context, run, name string, arg any) error {
	err := e.client.SignalWorkflow(ctx, e.opts.Prefix+run, "", name, arg)
	var gone *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &gone):
		return fmt.Errorf("%w: Temporal has no open workflow %s", pawl.ErrUnknownRun, run)
	}
	return fmt.Errorf("pawl: a signal to the workflow of run %s: %w", run, err)
}

// Resume sends a signal.
func (e *Engine) Resume(ctx context.Context, run string, rec journal.Record, token string) error {
	f, err := journal.Decode(rec)
	if err != nil {
		return err
	}
	return e.signal(ctx, run, resumeName, resumeInput{Token: token, Fact: encode(f)})
}

// queryTimeout bounds a question to a workflow, which needs a worker.
const queryTimeout = 2 * time.Second

// Stopped asks the workflow. One that ended before its run, or that Temporal does not have any more, will
// not go on either.
func (e *Engine) Stopped(ctx context.Context, run, token string) *pawl.EngineError {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	answer, err := e.client.QueryWorkflowWithOptions(ctx, &client.QueryWorkflowWithOptionsRequest{WorkflowID: e.opts.Prefix + run, QueryType: stateName,
		QueryRejectCondition: enumspb.QUERY_REJECT_CONDITION_NOT_OPEN})
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return endedEarly(run, "Temporal has it no more; resume the run to begin another")
	case err != nil:
		return nil
	case answer.QueryRejected == nil:
	case answer.QueryRejected.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return e.ended(ctx, run)
	case e.staysOver(run):
		return endedEarly(run, "the namespace had a run of that id, of another store or of one that is gone; use another id, or Options.Prefix")
	default:
		return nil
	}
	var s runState
	if answer.QueryResult.Get(&s) != nil || s.Text == "" || token != "" && !slices.Contains(s.Tokens, token) {
		return nil
	}
	return &pawl.EngineError{Code: s.Code, Text: s.Text}
}

// overFor is how long a workflow is over before its run should be. The store shows the end first, and
// whoever waits has read it long before then.
const overFor = 3 * time.Second

// staysOver notes that a workflow is over, and reports whether it has been for so long.
func (e *Engine) staysOver(run string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for run, at := range e.over { // nobody waits for it any more
		if time.Since(at) > time.Minute {
			delete(e.over, run)
		}
	}
	first, seen := e.over[run]
	if seen {
		return time.Since(first) >= overFor
	}
	if e.over == nil {
		e.over = make(map[string]time.Time)
	}
	e.over[run] = time.Now()
	return false
}

// endedCode is that of a workflow that has ended before its run.
const endedCode = "workflow_ended"

func endedEarly(run, why string) *pawl.EngineError {
	return &pawl.EngineError{Code: endedCode, Text: fmt.Sprintf("pawl: the workflow of run %s has ended before the run: %s", run, why)}
}

// ended says why a workflow has ended before its run.
func (e *Engine) ended(ctx context.Context, run string) *pawl.EngineError {
	err := e.client.GetWorkflow(ctx, e.opts.Prefix+run, "").Get(ctx, nil)
	switch app, ok := errors.AsType[*sdk.ApplicationError](err); {
	case err == nil || ctx.Err() != nil: // another has begun meanwhile
		return nil
	case ok && app.Type() == stopType:
		var code string
		var again bool
		if app.Details(&code, &again) != nil {
			code = endedCode
		}
		return &pawl.EngineError{Code: code, Text: app.Message()}
	}
	return endedEarly(run, err.Error()+"; resume the run to begin another")
}

// Listen reads the bus.
func (e *Engine) Listen(ctx context.Context, run string, show func(pawl.Event)) {
	if e.opts.Bus != nil {
		e.opts.Bus.Subscribe(ctx, run, show)
	}
}
