package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// bomb explodes when it is written.
type bomb struct{}

func (bomb) MarshalJSON() ([]byte, error) { panic("boom") }

// dud cannot be written.
type dud struct{}

func (dud) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

// bodyReturning makes a tool of any result type.
func bodyReturning[Out any](f func(context.Context, *pawl.Call) (Out, error)) pawl.Tool {
	return pawl.NewTool(pawl.Func[charge, Out]{Name: "charge", Run: func(ctx context.Context, c *pawl.Call, _ charge) (Out, error) { return f(ctx, c) }})
}

func returning[Out any](out Out) pawl.Tool {
	return bodyReturning(func(context.Context, *pawl.Call) (Out, error) { return out, nil })
}

// What the model reads of what a body returned.
func TestToolOutputs(t *testing.T) {
	type receipt struct {
		Number int    `json:"number"`
		Note   string `json:"note,omitempty"`
	}
	image := item.InputImage(item.Image{URL: "https://example.org/a.png"})
	for name, tt := range map[string]struct {
		tool pawl.Tool
		want pawl.Item
	}{
		"text":    {returning("ok <b>"), item.FunctionOutput("c1", "ok <b>")},
		"empty":   {returning(""), item.FunctionOutput("c1", "")},
		"number":  {returning(7), item.FunctionOutput("c1", "7")},
		"struct":  {returning(receipt{7, ""}), item.FunctionOutput("c1", `{"number":7}`)},
		"pointer": {returning(&receipt{7, "x"}), item.FunctionOutput("c1", `{"number":7,"note":"x"}`)},
		"nothing": {returning[*receipt](nil), item.FunctionOutput("c1", "null")},
		"raw":     {returning(json.RawMessage(`{"a": 1}`)), item.FunctionOutput("c1", `{"a":1}`)},
		"list":    {returning([]string{"a"}), item.FunctionOutput("c1", `["a"]`)},
		"part":    {returning(image), item.FunctionOutputParts("c1", image)},
		"parts":   {returning([]item.Part{item.InputText("a"), image}), item.FunctionOutputParts("c1", item.InputText("a"), image)},
		"any":     {returning[any]("text"), item.FunctionOutput("c1", "text")},
	} {
		t.Run(name, func(t *testing.T) {
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			var r pawl.Runner
			res := must(t)(r.Run(t.Context(), agentWith(m, tt.tool), pawl.UserText("pay"), nil))
			if got := res.NewItems()[1]; got != tt.want {
				t.Errorf("output %s, want %s", got, tt.want)
			}
			replays(t, &r, res.Run)
		})
	}
}

// Whatever a body does, its call is answered and the process lives.
func TestToolFailures(t *testing.T) {
	type body = func(context.Context, *pawl.Call) (string, error)
	for name, tt := range map[string]struct {
		tool pawl.Tool
		want string
	}{
		"error":     {bodyReturning(body(func(context.Context, *pawl.Call) (string, error) { return "", errors.New("no funds") })), "The tool failed: no funds"},
		"panic":     {bodyReturning(body(func(context.Context, *pawl.Call) (string, error) { panic("bug") })), `The tool failed: tool "charge" panicked: bug`},
		"nil panic": {bodyReturning(body(func(_ context.Context, c *pawl.Call) (string, error) { return *(*string)(nil), nil })), `The tool failed: tool "charge" panicked: runtime error`},
		"goexit": {bodyReturning(body(func(context.Context, *pawl.Call) (string, error) { runtime.Goexit(); return "", nil })),
			"The outcome of this tool call is unknown"},
		"bad text":     {bodyReturning(body(func(context.Context, *pawl.Call) (string, error) { return "", errors.New("\xff") })), "The tool failed: \uFFFD"},
		"unwritable":   {returning(dud{}), "The tool failed: the tool ran, and its result cannot be written as JSON: "},
		"not JSON":     {returning(func() {}), "The tool failed: the tool ran, and its result cannot be written as JSON: "},
		"writes panic": {returning(bomb{}), `The tool failed: tool "charge" panicked: boom`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			var r pawl.Runner
			res := must(t)(r.Run(t.Context(), agentWith(m, tt.tool), pawl.UserText("pay"), nil))
			if out := outputs(res.NewItems()); len(out) != 1 || !strings.HasPrefix(out[0], "c1: "+tt.want) {
				t.Errorf("output %q, want %q", out, tt.want)
			}
			replays(t, &r, res.Run)
		})
	}
}

// OnError makes the text of an error; what it does wrong is not the run's trouble.
func TestOnError(t *testing.T) {
	for name, tt := range map[string]struct {
		onError func(context.Context, *pawl.Call, error) string
		want    string
	}{
		"text":     {func(_ context.Context, c *pawl.Call, err error) string { return c.Tool + " says " + err.Error() }, "charge says no funds"},
		"empty":    {func(context.Context, *pawl.Call, error) string { return "" }, ""},
		"panic":    {func(context.Context, *pawl.Call, error) string { panic("bug") }, "The tool failed: no funds"},
		"bad text": {func(context.Context, *pawl.Call, error) string { return "\xff" }, "\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			tool := pawl.NewTool(pawl.Func[charge, string]{Name: "charge", OnError: tt.onError,
				Run: func(context.Context, *pawl.Call, charge) (string, error) { return "", errors.New("no funds") }})
			var r pawl.Runner
			res := must(t)(r.Run(t.Context(), agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), tool), pawl.UserText("pay"), nil))
			if out := outputs(res.NewItems()); len(out) != 1 || out[0] != "c1: "+tt.want {
				t.Errorf("output %q, want %q", out, tt.want)
			}
			replays(t, &r, res.Run)
		})
	}
}

// The key of a call is the same over attempts, resumes and processes, and no other call has
// it.
func TestKeys(t *testing.T) {
	keys := map[string][]string{}
	note := func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
		keys[c.Key] = append(keys[c.Key], c.Run+" "+c.ID)
		if c.Attempt == 1 && c.ID == "c2" {
			return "", pawl.ErrOutcomeUnknown
		}
		return "", nil
	}
	run := func(id string) {
		m := newScript(calling(fc("c1", "free", `{"cents":5}`), fc("c2", "free", `{"cents":5}`), fc("c3", "asks", `{"cents":5}`)), calling(fc("c1", "free", `{"cents":5}`)), says("done"))
		agent := agentWith(m, charging("free", nil, func(f *pawl.Func[charge, string]) { f.Effect, f.Run = pawl.Idempotent, note }),
			charging("asks", nil, func(f *pawl.Func[charge, string]) { asking(f); f.Run = note }))
		res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: id, MaxParallelTools: 1}))
		key := res.Interruptions[0].Key
		s := viaJSON(t, res.State())
		if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		must(t)(new(pawl.Runner).Resume(t.Context(), agent, s, &pawl.RunOptions{MaxParallelTools: 1}))
		if got := keys[key]; len(got) != 1 || got[0] != id+" c3" {
			t.Errorf("the key of the interruption is that of %q", got)
		}
	}
	run("r1")
	run("r2")
	if len(keys) != 8 {
		t.Errorf("%d keys of 8 calls", len(keys))
	}
	for key, who := range keys {
		attempts := 1
		if strings.HasSuffix(who[0], "c2") {
			attempts = 2
		}
		if len(who) != attempts || attempts == 2 && who[0] != who[1] {
			t.Errorf("key %s is of %q", key, who)
		}
	}
}

// A body may ask for a time so short that the ledger cannot tell it from none.
func TestTinyTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := charging("charge", nil, func(f *pawl.Func[charge, string]) {
			f.Timeout = time.Nanosecond
			f.Run = func(ctx context.Context, _ *pawl.Call, _ charge) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		})
		start := time.Now()
		var r pawl.Runner
		must(t)(r.Run(t.Context(), agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), tool), pawl.UserText("pay"), nil))
		if took := time.Since(start); took > time.Second {
			t.Errorf("a nanosecond took %v", took)
		}
	})
}

// The tools of a turn may end the run.
func TestToolUse(t *testing.T) {
	turn := calling(fc("c1", "look", `{"cents":1}`), fc("c2", "charge", `{"cents":2}`), fc("c3", "ask", `{"cents":3}`))
	for name, tt := range map[string]struct {
		use    pawl.ToolUse
		reject bool
		final  string
		calls  int
		seen   []string
	}{
		"again":                 {final: "done", calls: 2},
		"first":                 {use: pawl.StopOnFirstTool(), final: "receipt 1", calls: 1},
		"named":                 {use: pawl.StopAtTools("charge"), final: "receipt 2", calls: 1},
		"the first named":       {use: pawl.StopAtTools("ask", "charge"), final: "receipt 2", calls: 1},
		"named, asked":          {use: pawl.StopAtTools("ask"), final: "receipt 3", calls: 1},
		"named, rejected":       {use: pawl.StopAtTools("ask"), reject: true, final: "done", calls: 2},
		"named, not called":     {use: pawl.StopAtTools("other"), final: "done", calls: 2},
		"decided":               {use: pawl.DecideToolUse(nil), final: "c1=receipt 1 c2=receipt 2 c3=receipt 3 ", calls: 1},
		"decided, one rejected": {use: pawl.DecideToolUse(nil), reject: true, final: "c1=receipt 1 c2=receipt 2 ", calls: 1},
	} {
		for _, how := range []string{"live", "json"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				var e effects
				m := newScript(turn, says("done"))
				agent := agentWith(m, charging("look", &e, nil), charging("charge", &e, nil), charging("ask", &e, asking), charging("other", &e, nil))
				agent.ToolUse = tt.use
				if strings.HasPrefix(name, "decided") {
					agent.ToolUse = pawl.DecideToolUse(func(_ context.Context, rc *pawl.RunContext, results []pawl.ToolResult) (pawl.ToolUseDecision, error) {
						text := ""
						for _, res := range results {
							text += res.CallID + "=" + res.Output + " "
						}
						if rc.Turn != 1 || rc.Agent != agent {
							t.Errorf("%+v", rc)
						}
						return pawl.ToolUseDecision{Final: true, Output: text}, nil
					})
				}
				r := &pawl.Runner{}
				res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), nil))
				s := res.State()
				if how == "json" {
					s, r = viaJSON(t, s), &pawl.Runner{}
				}
				in := s.Interruptions()[0]
				var err error
				if tt.reject {
					err = s.Reject(in, "ann", "")
				} else {
					err = s.Approve(in, "ann")
				}
				if err != nil {
					t.Fatal(err)
				}
				res = must(t)(r.Resume(t.Context(), agent, s, nil))
				if res.FinalOutput != tt.final || len(m.calls()) != tt.calls {
					t.Errorf("%q after %d calls", res.FinalOutput, len(m.calls()))
				}
				sameViews(t, res, m, nil)
				if got := replays(t, r, res.Run).Result(); got.FinalOutput != tt.final {
					t.Errorf("stored: %q", got.FinalOutput)
				}
			})
		}
	}
}

// A tool that cannot be offered says why, and every run of its agent does, before anything
// happens.
func TestToolMistakes(t *testing.T) {
	run := func(context.Context, *pawl.Call, charge) (string, error) { return "", nil }
	raw := func(context.Context, *pawl.Call) (string, error) { return "", nil }
	type free struct {
		Any map[string]any `json:"any"`
	}
	for name, tt := range map[string]struct {
		tool pawl.Tool
		want string
	}{
		"zero":         {pawl.Tool{}, "has no body"},
		"no body":      {pawl.NewTool(pawl.Func[charge, string]{Name: "x"}), `tool "x": has no Run function`},
		"raw, no body": {pawl.NewRawTool(pawl.RawFunc{Name: "x", Schema: `{"type":"object"}`}), `tool "x": has no Run function`},
		"raw, two bodies": {pawl.NewRawTool(pawl.RawFunc{Name: "x", Schema: `{"type":"object"}`, Run: raw, RunAny: func(context.Context, *pawl.Call) (any, error) { return "", nil }}),
			`tool "x": has Run and RunAny`},
		"no name":          {pawl.NewTool(pawl.Func[charge, string]{Run: run}), "the name must be"},
		"bad name":         {pawl.NewTool(pawl.Func[charge, string]{Name: "a b", Run: run}), "the name must be"},
		"long name":        {pawl.NewTool(pawl.Func[charge, string]{Name: strings.Repeat("a", 65), Run: run}), "the name must be"},
		"negative timeout": {pawl.NewTool(pawl.Func[charge, string]{Name: "x", Run: run, Timeout: -1}), "timeout is negative"},
		"no such class":    {pawl.NewTool(pawl.Func[charge, string]{Name: "x", Run: run, Effect: "twice"}), `no effect class "twice"`},
		"no such unknown":  {pawl.NewTool(pawl.Func[charge, string]{Name: "x", Run: run, OnUnknown: "panic"}), `no OnUnknown "panic"`},
		"map":              {pawl.NewTool(pawl.Func[free, string]{Name: "x", Run: func(context.Context, *pawl.Call, free) (string, error) { return "", nil }}), "Any: "},
		"not an object":    {pawl.NewTool(pawl.Func[[]int, string]{Name: "x", Run: func(context.Context, *pawl.Call, []int) (string, error) { return "", nil }}), "not a JSON object"},
		"interface":        {pawl.NewTool(pawl.Func[any, string]{Name: "x", Run: func(context.Context, *pawl.Call, any) (string, error) { return "", nil }}), `tool "x"`},
		"raw, no schema":   {pawl.NewRawTool(pawl.RawFunc{Name: "x", Run: raw}), `tool "x"`},
		"raw, no JSON":     {pawl.NewRawTool(pawl.RawFunc{Name: "x", Run: raw, Schema: "{"}), `tool "x"`},
		"raw, not strict":  {pawl.NewRawTool(pawl.RawFunc{Name: "x", Run: raw, Schema: `{"type":"object","additionalProperties":{"type":"string"}}`}), `tool "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.tool.Err(); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "pawl: ") {
				t.Errorf("Err: %v, want %q", err, tt.want)
			}
			tt.tool.Name()
			tt.tool.Schema()
			m := newScript()
			_, err := new(pawl.Runner).Run(t.Context(), agentWith(m, tt.tool), pawl.UserText("go"), nil)
			var bad *pawl.ConfigError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) || len(m.calls()) > 0 {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

// A raw tool reads its arguments itself, and is offered and checked as it says.
func TestRawTool(t *testing.T) {
	schema := `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`
	for name, f := range map[string]pawl.RawFunc{
		"strict": {Name: "open", Schema: schema},
		"loose":  {Name: "open", Schema: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`, Loose: true},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			f.Run = func(_ context.Context, c *pawl.Call) (string, error) {
				got = append(got, c.Arguments)
				return "opened", nil
			}
			tool := pawl.NewRawTool(f)
			if err := tool.Err(); err != nil {
				t.Fatal(err)
			}
			m := newScript(calling(fc("c1", "open", `{"path":1}`), fc("c2", "open", `{"path": "a"}`)), says("done"))
			var r pawl.Runner
			res := must(t)(r.Run(t.Context(), agentWith(m, tool), pawl.UserText("go"), nil))
			if diff := cmp.Diff([]string{`{"path": "a"}`}, got); diff != "" {
				t.Error(diff)
			}
			if out := outputs(res.NewItems()); len(out) != 2 || !strings.HasPrefix(out[0], "c1: The arguments cannot be used: ") || out[1] != "c2: opened" {
				t.Errorf("outputs %q", out)
			}
		})
	}
}

// A tool without parameters takes empty arguments, in the forms models send.
func TestNoParameters(t *testing.T) {
	type none struct{}
	for _, args := range []string{"", " ", "\n", "{}", " { } "} {
		t.Run(fmt.Sprintf("%q", args), func(t *testing.T) {
			ran := 0
			tool := pawl.NewTool(pawl.Func[none, string]{Name: "now", Run: func(context.Context, *pawl.Call, none) (string, error) { ran++; return "12:00", nil }})
			res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(newScript(calling(fc("c1", "now", args)), says("done")), tool), pawl.UserText("go"), nil))
			if out := outputs(res.NewItems()); ran != 1 || out[0] != "c1: 12:00" {
				t.Errorf("ran %d times: %q", ran, out)
			}
		})
	}
}

// A call that is answered without its body, whatever the cause, has no intent.
func TestNoIntentWithoutBody(t *testing.T) {
	var e effects
	w := &watched{Driver: journal.NewMemory()}
	m := newScript(calling(fc("c1", "charge", `x`), fc("c2", "none", `{}`), fc("c3", "deny", `{"cents":1}`)), says("done"))
	agent := agentWith(m, charging("charge", &e, nil), charging("deny", &e, rule(func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { return pawl.Deny, nil })))
	must(t)((&pawl.Runner{Store: w}).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ToolNotFound: pawl.TellModel}))
	if w.has(func(b journal.Body) bool {
		i, ok := b.(*journal.Intended)
		return ok && i.ID.Kind == journal.EffectTool
	}) {
		t.Error("a call that never ran has an intent")
	}
	e.want(t)
}
