package pawl_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/session"
)

// appends counts what is appended to a session.
type appends struct {
	session.Session
	sizes []int
}

func (s *appends) Append(ctx context.Context, items []pawl.Item) error {
	s.sizes = append(s.sizes, len(items))
	return s.Session.Append(ctx, items)
}

// What a guardrail withholds is not appended, and where that is everything, nothing is [M10.2].
func TestTripAppendsNothing(t *testing.T) {
	var e effects
	a := &pawl.Agent{Name: "Desk", Model: newScript(says("a secret")), OutputGuardrails: []pawl.OutputGuardrail{onOutput("secrets", &e, "a secret")}}
	chat := &appends{Session: session.NewMemory("chat")}
	_, err := new(pawl.Runner).Run(t.Context(), a, pawl.UserText("hi"), &pawl.RunOptions{Session: chat})
	if _, ok := errors.AsType[*pawl.TripwireError](err); !ok {
		t.Fatalf("error %v, want a tripwire", err)
	}
	if diff := cmp.Diff([]int{1}, chat.sizes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
