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

	// For tests, where not 0.
	full   int           // timing.Full
	resend time.Duration // resendEvery
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
	switch err := checkBlobs(opts.Blobs, true); {
	case c == nil:
		return nil, &pawl.ConfigError{Field: "NewWorker", Problem: "the client is nil"}
	case r == nil || r.Store == nil:
		return nil, &pawl.ConfigError{Field: "Runner.Store", Problem: "is missing: a worker needs the store in which the runs are begun"}
	case err != nil:
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
		Late: func(run string) { resend(context.Background(), e, r, run) }})
	if err != nil {
		return nil, err
	}
	opts.Temporal.Identity = identity(opts.Temporal.Identity, a.stepper.Self())
	opts.Temporal.WorkerStopTimeout = cmp.Or(opts.Temporal.WorkerStopTimeout, stopTimeout)
	w := worker.New(c, opts.queue(), opts.Temporal)
	register(w, a)
	return &runWorker{Worker: w, stepper: a.stepper, resender: resender{stepper: a.stepper, every: cmp.Or(opts.resend, resendEvery),
		send: func(ctx context.Context, run string) { resend(ctx, e, r, run) }}}, nil
}

// runWorker is a worker that sends again what was not sent, and that lets go of what its stepper
// keeps once it has stopped.
type runWorker struct {
	worker.Worker
	stepper  *pawl.Stepper
	resender resender
}

// Start starts the worker.
func (w *runWorker) Start() error {
	err := w.Worker.Start()
	if err == nil {
		w.resender.start()
	}
	return err
}

// Stop stops the worker.
func (w *runWorker) Stop() {
	w.resender.stop()
	w.Worker.Stop()
	w.stepper.Stop()
}

// Run runs the worker until it is interrupted.
func (w *runWorker) Run(interrupted <-chan any) error {
	w.resender.start()
	defer w.stepper.Stop()
	defer w.resender.stop()
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
