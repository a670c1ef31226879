package temporal

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/pawl-agents/pawl"
)

// unstarted is an engine whose workflows are started by the test.
type unstarted struct{ *Engine }

func (unstarted) Start(context.Context, string) error { return nil }

func (unstarted) Stopped(context.Context, string, string) *pawl.EngineError { return nil }

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

func looking(n *int) pawl.Tool {
	return pawl.NewTool(pawl.Func[struct{}, string]{Name: "look", Description: "Looks.", Effect: pawl.ReadOnly,
		Run: func(context.Context, *pawl.Call, struct{}) (string, error) {
			*n++
			return "seen", nil
		}})
}

func testActivities(t *testing.T, r *pawl.Runner) *activities {
	t.Helper()
	a := &activities{timing: Options{}.timing(0)}
	var err error
	if a.stepper, err = pawl.NewStepper(r, pawl.StepperOptions{Engine: Options{}.name()}); err != nil {
		t.Fatal(err)
	}
	return a
}

func registerActivities(env interface {
	RegisterActivityWithOptions(any, activity.RegisterOptions)
}, a *activities) {
	for name, f := range a.all() {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}
