package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

type merger = func(ctx context.Context, history, input []pawl.Item) ([]pawl.Item, error)

// twoTurns makes a session with two turns of a conversation.
func twoTurns(t *testing.T) (*session.Memory, []pawl.Item) {
	t.Helper()
	s := session.NewMemory("s")
	list := []pawl.Item{item.UserText("one"), fc("c0", "pay", `{}`), item.FunctionOutput("c0", "paid"), item.MessageItem("", "two"), item.UserText("three"), item.MessageItem("", "four")}
	if err := s.Append(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return s, list
}

// What the function returns is what requests begin with, turn by turn; session and replay have
// everything [S13.3].
func TestMergeInput(t *testing.T) {
	note := item.UserText("a note")
	for name, tt := range map[string]struct {
		merge merger
		want  func(h []pawl.Item, in pawl.Item) []pawl.Item
		views int // facts with a view
	}{
		"the newest": {func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) { return append(h[4:], in...), nil },
			func(h []pawl.Item, in pawl.Item) []pawl.Item { return []pawl.Item{h[4], h[5], in} }, 1},
		"the input alone": {func(_ context.Context, _, in []pawl.Item) ([]pawl.Item, error) { return in, nil },
			func(_ []pawl.Item, in pawl.Item) []pawl.Item { return []pawl.Item{in} }, 1},
		"a note between": {func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) {
			return append(append(h, note), in...), nil
		}, func(h []pawl.Item, in pawl.Item) []pawl.Item { return append(append(h, note), in) }, 1},
		"other words": {func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) {
			in[0] = note
			h[0] = item.UserText("changed")
			return append(h[:1], in...), nil
		}, func([]pawl.Item, pawl.Item) []pawl.Item { return []pawl.Item{item.UserText("changed"), note} }, 1},
		"the input first": {func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) { return append(in, h...), nil },
			func(h []pawl.Item, in pawl.Item) []pawl.Item { return append([]pawl.Item{in}, h...) }, 1},
		"twice": {func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) { return append(in, in...), nil },
			func(_ []pawl.Item, in pawl.Item) []pawl.Item { return []pawl.Item{in, in} }, 1},
		"as it is": {func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) { return append(h, in...), nil },
			func(h []pawl.Item, in pawl.Item) []pawl.Item { return append(h, in) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				var e effects
				sess, history := twoTurns(t)
				s := newScript(calling(fc("c1", "pay", `{"cents":1}`)), says("done"))
				agent := agentWith(s, charging("pay", &e, nil))
				store := journal.NewMemory()
				in := item.UserText("go")
				res := must(t)(m.run(&pawl.Runner{Store: store}, t.Context(), agent, pawl.Input{in}, &pawl.RunOptions{ID: "r", Session: sess, MergeInput: tt.merge}))
				first := tt.want(append([]pawl.Item(nil), history...), in)
				second := append(append([]pawl.Item(nil), first...), res.NewItems()[:2]...)
				for i, want := range [][]pawl.Item{first, second} {
					if diff := cmp.Diff(want, s.calls()[i].Input); diff != "" {
						t.Errorf("request %d (-want +got):\n%s", i+1, diff)
					}
				}
				whole := append(append(append([]pawl.Item(nil), history...), in), res.NewItems()...)
				kept, err := sess.Items(t.Context(), -1)
				if diff := cmp.Diff(whole, kept); diff != "" || err != nil {
					t.Errorf("session: %v (-want +got):\n%s", err, diff)
				}
				if diff := cmp.Diff(whole, []pawl.Item(res.ToInputList())); diff != "" {
					t.Errorf("replay (-want +got):\n%s", diff)
				}
				views := 0
				for _, f := range facts(t, store, "r") {
					if l, ok := f.Body.(*journal.Loaded); ok && l.View != nil {
						views++
					}
				}
				if views != tt.views {
					t.Errorf("%d views", views)
				}
			})
		})
	}
}

// It is asked once a run: not without a session, also for an empty one, and not on a resume.
func TestMergeInputIsAskedOnce(t *testing.T) {
	asked := 0
	merge := func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) { asked++; return in, nil }
	must(t)(new(pawl.Runner).Run(t.Context(), agentWith(newScript(says("done"))), pawl.UserText("go"), &pawl.RunOptions{MergeInput: merge}))
	if asked != 0 {
		t.Errorf("asked %d times without a session", asked)
	}
	sess, _ := twoTurns(t)
	s := newScript(failing(&model.Error{Err: model.ErrStreamCut}), says("done"))
	opts := &pawl.RunOptions{Session: sess, MergeInput: merge}
	_, err := new(pawl.Runner).Run(t.Context(), agentWith(s), pawl.UserText("go"), opts)
	must(t)(new(pawl.Runner).Resume(t.Context(), agentWith(s), viaJSON(t, stateOf(t, err)), opts))
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	for i, a := range s.calls() {
		if diff := cmp.Diff([]pawl.Item{item.UserText("go")}, a.Input); diff != "" {
			t.Errorf("request %d (-want +got):\n%s", i+1, diff)
		}
	}
	must(t)(new(pawl.Runner).Run(t.Context(), agentWith(newScript(says("done"))), pawl.UserText("go"), &pawl.RunOptions{Session: session.NewMemory("e"), MergeInput: merge}))
	if asked != 2 {
		t.Errorf("an empty session: asked %d times", asked)
	}
}

// What cannot be sent is an error before any request; the run goes on when it is mended.
func TestMergeInputFails(t *testing.T) {
	bang := errors.New("no answer")
	for name, tt := range map[string]struct {
		merge merger
		want  string
	}{
		"error":           {func(context.Context, []pawl.Item, []pawl.Item) ([]pawl.Item, error) { return nil, bang }, "no answer"},
		"panic":           {func(context.Context, []pawl.Item, []pawl.Item) ([]pawl.Item, error) { panic(bang) }, "reading the session: RunOptions.MergeInput panicked: no answer"},
		"nothing":         {func(context.Context, []pawl.Item, []pawl.Item) ([]pawl.Item, error) { return nil, nil }, "RunOptions.MergeInput: it returned no items"},
		"no item":         {func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) { return append(in, pawl.Item{}), nil }, "RunOptions.MergeInput: item 1 is empty"},
		"a call alone":    {func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) { return append(h[1:2], in...), nil }, `call "c0" without its output`},
		"an output alone": {func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) { return append(h[2:], in...), nil }, "without its call"},
		"an invented call": {func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) {
			return append(in, fc("c9", "pay", `{}`), item.FunctionOutput("c9", "paid")), nil
		}, `a call "c9" that nobody made`},
	} {
		t.Run(name, func(t *testing.T) {
			sess, _ := twoTurns(t)
			s := newScript(says("done"))
			var r pawl.Runner
			_, err := r.Run(t.Context(), agentWith(s), pawl.UserText("go"), &pawl.RunOptions{ID: "r", Session: sess, MergeInput: tt.merge})
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(s.calls()) != 0 {
				t.Fatalf("error %v after %d model calls", err, len(s.calls()))
			}
			res := must(t)(r.Resume(t.Context(), agentWith(s), pawl.RunID("r"), &pawl.RunOptions{Session: sess}))
			sameViews(t, res, s, sess)
		})
	}
}

// An output in the session that no call is waiting for is not sent, and is not among the history
// that is merged. The session keeps it [S13.4].
func TestOutputsThatFitNowhere(t *testing.T) {
	user, call, out := item.UserText("one"), fc("c1", "pay", `{}`), item.FunctionOutput("c1", "paid")
	for name, tt := range map[string]struct{ held, sent []pawl.Item }{
		"no call":         {[]pawl.Item{user, item.FunctionOutput("c9", "stale")}, []pawl.Item{user}},
		"before its call": {[]pawl.Item{out, user, call, out}, []pawl.Item{user, call, out}},
		"twice":           {[]pawl.Item{user, call, out, out}, []pawl.Item{user, call, out}},
		"id used again":   {[]pawl.Item{call, out, call, out, user}, []pawl.Item{call, out, call, out, user}},
		"nothing else":    {[]pawl.Item{out}, nil},
	} {
		for _, merged := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", merged), func(t *testing.T) {
				sess := session.NewMemory("s")
				if err := sess.Append(t.Context(), tt.held); err != nil {
					t.Fatal(err)
				}
				opts := &pawl.RunOptions{Session: sess}
				if merged {
					opts.MergeInput = func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) {
						if diff := cmp.Diff(tt.sent, h, cmpopts.EquateEmpty()); diff != "" {
							t.Errorf("history (-want +got):\n%s", diff)
						}
						return append(h, in...), nil
					}
				}
				s := newScript(says("done"))
				res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s), pawl.UserText("go"), opts))
				in := item.UserText("go")
				if diff := cmp.Diff(append(tt.sent[:len(tt.sent):len(tt.sent)], in), s.calls()[0].Input); diff != "" {
					t.Errorf("request (-want +got):\n%s", diff)
				}
				kept, err := sess.Items(t.Context(), -1)
				if diff := cmp.Diff(append(append(tt.held[:len(tt.held):len(tt.held)], in), res.NewItems()...), kept); diff != "" || err != nil {
					t.Errorf("session: %v (-want +got):\n%s", err, diff)
				}
			})
		}
	}
}

// The model reads the last messages of a long conversation only. The session keeps all of it.
func ExampleRunOptions_mergeInput() {
	ctx := context.Background()
	sess := session.NewMemory("customer-42")
	m := pawltest.NewScriptedModel()
	agent := &pawl.Agent{Name: "Clerk", Model: m}
	last := func(_ context.Context, history, input []pawl.Item) ([]pawl.Item, error) {
		return append(history[max(0, len(history)-2):], input...), nil
	}
	var r pawl.Runner
	for _, text := range []string{"one", "two", "three"} {
		m.Enqueue(pawltest.ScriptedText("You said " + text + "."))
		if _, err := r.Run(ctx, agent, pawl.UserText(text), &pawl.RunOptions{Session: sess, MergeInput: last}); err != nil {
			fmt.Println(err)
			return
		}
	}
	kept, err := sess.Items(ctx, -1)
	for _, c := range m.Calls() {
		fmt.Println("the model read", len(c.Input))
	}
	fmt.Println("the session has", len(kept), err)
	// Output:
	// the model read 1
	// the model read 3
	// the model read 3
	// the session has 6 <nil>
}
