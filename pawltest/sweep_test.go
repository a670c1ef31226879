package pawltest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

type amount struct {
	Amount int `json:"amount"`
}

// paying is a scenario of one call of a tool with the given body.
func paying(f pawl.Func[amount, string]) func(body func(*World, context.Context, *pawl.Call) (string, error)) Scenario {
	return func(body func(*World, context.Context, *pawl.Call) (string, error)) Scenario {
		return Scenario{Name: "pay", Input: pawl.UserText("pay"), Session: BatchSession,
			Agent: func(w *World) *pawl.Agent {
				f := f
				f.Name = "pay"
				f.Run = func(ctx context.Context, c *pawl.Call, _ amount) (string, error) { return body(w, ctx, c) }
				return &pawl.Agent{Name: "Desk", Model: w.Model(), Tools: []pawl.Tool{pawl.NewTool(f)}}
			},
			Script: []ScriptedStep{ScriptedItems(item.FunctionCallItem("", "c1", "pay", `{"amount":5}`)), ScriptedText("done")},
			Want:   "done"}
	}
}

func do(w *World, ctx context.Context, c *pawl.Call) (string, error) { return w.Do(ctx, c, "receipt") }

// A sweep that sees nothing would let everything pass: each of these agents or scenarios breaks one promise.
func TestSweepSees(t *testing.T) {
	once := paying(pawl.Func[amount, string]{})
	for name, test := range map[string]struct {
		scenario Scenario
		want     string
	}{
		"two effects": {once(func(w *World, ctx context.Context, c *pawl.Call) (string, error) {
			_, err := w.Do(ctx, c, "receipt")
			again, err2 := w.Do(ctx, c, "receipt")
			return again, errors.Join(err, err2)
		}), "G1: pay c1 took effect 2 times, and may once"},
		"an answer that is not kept": {once(func(w *World, ctx context.Context, c *pawl.Call) (string, error) {
			_, err := w.Do(ctx, c, "receipt")
			return string(rune('a' + w.number)), err
		}), "the replay differs from that without the fault"},
		"a lost answer that is called a failure": {paying(pawl.Func[amount, string]{Effect: pawl.Idempotent})(
			func(w *World, ctx context.Context, c *pawl.Call) (string, error) {
				answer, err := w.Do(ctx, c, "receipt")
				if err != nil {
					err = errors.New("it failed")
				}
				return answer, err
			}), ""},
		"another output": {func() Scenario {
			s := once(do)
			s.Want = "thanks"
			return s
		}(), `the clean run is finished with "done"`},
		"other effects": {func() Scenario {
			s := once(do)
			s.WantEffects = []string{`pay {"amount":6}`}
			return s
		}(), `the clean run has the effects ["pay {\"amount\":5}"]`},
		"a hook of what is not recorded": {once(func(w *World, ctx context.Context, c *pawl.Call) (string, error) {
			w.Told(Moment{Name: "early", In: c.RunContext, Fact: func(journal.Record) bool { return false }})
			return do(w, ctx, c)
		}), "hook: early was told before it was recorded"},
		"a hook that is told twice": {once(func(w *World, ctx context.Context, c *pawl.Call) (string, error) {
			for range 2 {
				w.Told(Moment{Name: "start", In: c.RunContext, Fact: func(r journal.Record) bool { return r.Kind == journal.KindStarted }})
			}
			return do(w, ctx, c)
		}), "hook: start was told 2 times, and no process died"},
		"a question after its answer": {once(func(w *World, ctx context.Context, c *pawl.Call) (string, error) {
			answered := func(r journal.Record) bool { return r.Kind == journal.KindStarted }
			return "receipt", errors.Join(w.Ask(Moment{Kind: Question, Name: "late", In: c.RunContext, Fact: answered}))
		}), "late was asked again after its answer was recorded"},
		"an effect before a verdict": {once(func(w *World, ctx context.Context, c *pawl.Call) (string, error) {
			err := w.Ask(Moment{Kind: InputGuardrail, Name: "topic", In: c.RunContext, Fact: func(journal.Record) bool { return false }})
			answer, err2 := do(w, ctx, c)
			return answer, errors.Join(err, err2)
		}), "pay c1 took effect before the verdict of topic was recorded"},
		"what is withheld": {func() Scenario {
			s := once(do)
			s.Withheld = []string{"receipt"}
			return s
		}(), `"receipt" is withheld, and in the replay`},
		"what is not to be recorded": {func() Scenario {
			s := once(do)
			s.Unrecorded = []string{"receipt"}
			return s
		}(), `"receipt" is withheld, and in the input of the model`},
		"nobody is asked": {func() Scenario {
			s := once(do)
			s.WantAsked = []string{"pay c1"}
			return s
		}(), `the clean run asks about [], want ["pay c1"]`},
		"a script that ends too soon": {func() Scenario {
			s := once(do)
			s.Script = s.Script[:1]
			return s
		}(), "the model was asked beyond its script of 1 steps"},
	} {
		t.Run(name, func(t *testing.T) {
			test.scenario.Every = 9
			r := test.scenario.sweep(t)
			if test.want == "" {
				if len(r.Violations) > 0 {
					t.Errorf("it broke nothing: %s", r.Violations[0])
				}
				return
			}
			if len(r.Violations) == 0 {
				t.Fatalf("nothing was broken in %d points, want %q", r.Points, test.want)
			}
			v := r.Violations[0]
			if !slices.ContainsFunc(v.Problems, func(p string) bool { return strings.HasPrefix(p, test.want) }) {
				t.Errorf("%v, want %q", v.Problems, test.want)
			}
		})
	}
}

// A violation can be played again by the name of its point, and is the same then.
func TestSweepPlaysAPointAgain(t *testing.T) {
	s := paying(pawl.Func[amount, string]{})(func(w *World, ctx context.Context, c *pawl.Call) (string, error) {
		_, err := w.Do(ctx, c, "receipt")
		return string(rune('a' + w.number)), err
	})
	s.Every = 9
	first := s.sweep(t).Violations[0]
	s.Only, s.Every = first.Point, 1
	r := s.sweep(t)
	if r.Points != 1 {
		t.Errorf("%d points were played, want 1", r.Points)
	}
	if diff := cmp.Diff([]Violation{first}, r.Violations); diff != "" {
		t.Errorf("-first +again:\n%s", diff)
	}
	if !strings.Contains(first.Script, "pay c1 takes effect") || !strings.Contains(first.Script, "<-- ") {
		t.Errorf("the script does not tell what happened:\n%s", first.Script)
	}
}

// What a sweep of one call consists of: a boundary or a fault that is lost would be a hole.
func TestSweepIsComplete(t *testing.T) {
	s := paying(pawl.Func[amount, string]{Approve: pawl.AlwaysAsk[amount]})(do)
	s.Every = 50
	r := s.sweep(t)
	kinds := map[BoundaryKind]int{}
	for _, b := range r.Boundaries["store/run"] {
		kinds[b.Kind]++
	}
	want := map[BoundaryKind]int{JournalAppend: 7, ToolIntent: 1, ToolOutcome: 1, ClaimRun: 2, ReleaseRun: 2, ToolEffect: 1, SessionAppend: 3,
		ModelRequest: 2, ModelAcceptance: 2, DecisionPosted: 1}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("boundaries (-want +got):\n%s", diff)
	}
	if len(r.Violations) > 0 {
		t.Errorf("%s", r.Violations[0])
	}
	all := 0
	for row, boundaries := range r.Boundaries {
		if strings.HasPrefix(row, "store") {
			all += 3 * len(faults) * len(boundaries) // live and JSON have these boundaries too, or count them as impossible
		}
	}
	if got := r.Points + r.Left + sum(r.Impossible); got != all {
		t.Errorf("%d points and %v make %d, want %d", r.Points, slices.Sorted(maps.Keys(r.Impossible)), got, all)
	}
}

// Items are read by the exact names of their members (S8.8).
func TestUnpairedReadsExactNames(t *testing.T) {
	items := []item.Item{item.FromTrusted(`{"type":"function_call","call_id":"a","Call_ID":"b","TYPE":"message"}`),
		item.FromTrusted(`{"type":"function_call_output","Call_ID":"b","call_id":"a","output":"x","Type":"message"}`)}
	if got := Unpaired(items); got != nil {
		t.Errorf("problems %q", got)
	}
}

func TestUnpaired(t *testing.T) {
	call := item.FunctionCallItem("fc_1", "c1", "pay", "{}")
	out := item.FunctionOutput("c1", "receipt")
	for name, test := range map[string]struct {
		items []item.Item
		want  []string
	}{
		"sound":          {[]item.Item{item.UserText("pay"), call, out, item.MessageItem("msg_1", "done")}, nil},
		"no output":      {[]item.Item{call}, []string{"the call c1 has no output"}},
		"no call":        {[]item.Item{out}, []string{"the output of c1 has no call before it"}},
		"two outputs":    {[]item.Item{call, out, out}, []string{"the call c1 has two outputs"}},
		"the same twice": {[]item.Item{call, out, call}, []string{"the call c1 has no output", "the call c1 is there twice", "two items have the id fc_1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Unpaired(test.items)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
