package temporal

import (
	"cmp"
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-agents/pawl"
)

// WorkerOptions are the options of a worker. The zero value is all defaults.
type WorkerOptions struct {
	Options
	// RunOptions are the options of a run that do not travel, as pawl.StepperOptions.Options.
	RunOptions func(run string) *pawl.RunOptions
	// Temporal are the SDK's: slots, versioning and so on. Behind its Identity the worker names its
	// process, so that the next one can tell whether it is gone. A WorkerStopTimeout of 0 means a second.
	Temporal worker.Options

	full int // for tests: timing.Full
}

// The most bytes of the outcome of an effect, with and without blobs. A payload above 2 MB is an
// error after which an activity would be tried again, so it is not left to the server.
const (
	maxOutcome     = 64 << 20
	maxOutcomeBare = 1 << 20
)

// stopTimeout is how long a worker that stops lets what it has begun come to its end before it
// cancels it. A workflow takes milliseconds; without an answer the server waits 10 s for it.
const stopTimeout = time.Second

// NewWorker returns a worker of the SDK that carries out runs of the runner: with its Agents,
// Sessions and Store. Its Engine is not used. An error is a *pawl.ConfigError.
func NewWorker(c client.Client, r *pawl.Runner, opts WorkerOptions) (worker.Worker, error) {
	if err := checkBlobs(opts.Blobs, true); err != nil {
		return nil, err
	}
	most := maxOutcomeBare
	a := &activities{timing: opts.timing(r.Grace), bus: opts.Bus, client: c}
	if opts.full > 0 {
		a.timing.Full = opts.full
	}
	if opts.Blobs != nil {
		most, a.spill = maxOutcome, DataConverter(opts.Blobs)
	}
	e := New(c, opts.Options)
	var err error
	a.stepper, err = pawl.NewStepper(r, pawl.StepperOptions{Engine: opts.name(), Options: opts.RunOptions, MaxOutcome: most,
		Late: func(run string) { tellLate(e, r, run) }})
	if err != nil {
		return nil, err
	}
	opts.Temporal.Identity = identity(opts.Temporal.Identity, a.stepper.Self())
	opts.Temporal.WorkerStopTimeout = cmp.Or(opts.Temporal.WorkerStopTimeout, stopTimeout)
	w := worker.New(c, opts.queue(), opts.Temporal)
	register(w, a)
	return &stopping{w, a.stepper}, nil
}

// stopping is a worker that lets go of what its stepper keeps once it has stopped.
type stopping struct {
	worker.Worker
	stepper *pawl.Stepper
}

// Stop stops the worker.
func (w *stopping) Stop() {
	w.Worker.Stop()
	w.stepper.Stop()
}

// Run runs the worker until it is interrupted.
func (w *stopping) Run(interrupted <-chan any) error {
	defer w.stepper.Stop()
	return w.Worker.Run(interrupted)
}

// register says what a worker can do.
func register(w worker.Registry, a *activities) {
	w.RegisterWorkflowWithOptions(a.timing.runWorkflow, workflow.RegisterOptions{Name: workflowName})
	for name, f := range a.all() {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// all are the activities by their names.
func (a *activities) all() map[string]any {
	return map[string]any{performName: a.perform, openName: a.open, factsName: a.facts, closeName: a.close}
}

// tellLate brings a late result to the workflow. If that fails, it is found when the run rests.
func tellLate(e *Engine, r *pawl.Runner, run string) {
	ctx, cancel := context.WithTimeout(context.Background(), blobTimeout)
	defer cancel()
	if r.Store == nil {
		return
	}
	if entries, err := r.Store.Inbox(ctx, run); err == nil && len(entries) > 0 {
		_ = e.Tell(ctx, run, entries)
	}
}
