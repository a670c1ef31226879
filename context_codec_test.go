package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// customer is a context value.
type customer struct {
	Name  string `json:"name"`
	Limit int    `json:"limit"`
}

// knowing is an agent whose tool asks for an approval and notes the context value, and who approved.
func knowing(e *effects) *pawl.Agent {
	return agentWith(byLength(newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done"))), charging("pay", e, func(f *pawl.Func[charge, string]) {
		asking(f)
		f.Effect = pawl.Idempotent
		f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
			e.add("%+v approved by %s", c.Value, c.ApprovedBy)
			return "", nil
		}
	}))
}

// A context value that a codec wrote is there again in another process; another one replaces it, for good, and leaves the
// decisions as they are [S20.1] [S20.2].
func TestContextCodec(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		codec := pawl.JSONContext[customer]()
		for name, tt := range map[string]struct {
			resumes []*pawl.RunOptions
			want    string
		}{
			"recalled":            {[]*pawl.RunOptions{{ContextCodec: codec}}, "{Name:ann Limit:7} approved by bob"},
			"replaced":            {[]*pawl.RunOptions{{ContextCodec: codec, Context: customer{"cid", 9}}}, "{Name:cid Limit:9} approved by bob"},
			"replaced, unwritten": {[]*pawl.RunOptions{{Context: "plain"}}, "plain approved by bob"},
			"replaced before":     {[]*pawl.RunOptions{{ContextCodec: codec, Context: customer{"cid", 9}}, {ContextCodec: codec}}, "{Name:cid Limit:9} approved by bob"},
			"replaced for once":   {[]*pawl.RunOptions{{Context: "plain"}, {ContextCodec: codec}}, "{Name:ann Limit:7} approved by bob"},
		} {
			t.Run(name, func(t *testing.T) {
				var e effects
				state := must(t)(m.run(new(pawl.Runner), t.Context(), knowing(&e), pawl.UserText("go"), &pawl.RunOptions{Context: customer{"ann", 7}, ContextCodec: codec})).State()
				for i, opts := range tt.resumes {
					state = viaJSON(t, state)
					if i == len(tt.resumes)-1 {
						if err := state.Approve(state.Interruptions()[0], "bob"); err != nil {
							t.Fatal(err)
						}
					}
					state = must(t)(m.resume(new(pawl.Runner), t.Context(), knowing(&e), state, opts)).State()
				}
				e.want(t, tt.want)
			})
		}
	})
}

// Without a codec nothing is written.
func TestContextIsNotWrittenWithoutACodec(t *testing.T) {
	for codec, want := range map[pawl.ContextCodec]bool{nil: false, pawl.JSONContext[string](): true} {
		var e effects
		state := must(t)(new(pawl.Runner).Run(t.Context(), knowing(&e), pawl.UserText("go"), &pawl.RunOptions{Context: "hush", ContextCodec: codec})).State()
		if got := strings.Contains(string(marshal(t, state)), "hush"); got != want {
			t.Errorf("codec %v: written %v", codec, got)
		}
	}
}

// Nested runs have the caller's value, unless their options have one.
func TestContextInNestedRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		own  *pawl.RunOptions
		want string
	}{"the caller's": {nil, "ann"}, "own options": {&pawl.RunOptions{}, "ann"}, "its own": {&pawl.RunOptions{Context: "desk"}, "desk"}} {
		t.Run(name, func(t *testing.T) {
			var e effects
			agent := withBilling(byLength(newScript(calling(ask("a", "go")), says("done"))), nil, &pawl.AgentToolOptions{Options: tt.own})
			agent.Tools[0] = pawl.AgentTool(knowing(&e), &pawl.AgentToolOptions{Name: "billing_desk", Options: tt.own})
			res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Context: "ann", ContextCodec: pawl.JSONContext[string]()}))
			state := viaJSON(t, res.State())
			if err := state.Approve(state.Interruptions()[0], "bob"); err != nil {
				t.Fatal(err)
			}
			must(t)(new(pawl.Runner).Resume(t.Context(), agent, state, &pawl.RunOptions{ContextCodec: pawl.JSONContext[string]()}))
			e.want(t, tt.want+" approved by bob")
		})
	}
}

// brokenCodec writes and reads what its functions say.
type brokenCodec struct {
	encode func() ([]byte, error)
	decode func() (any, error)
}

func (c brokenCodec) Encode(any) ([]byte, error) { return c.encode() }
func (c brokenCodec) Decode([]byte) (any, error) { return c.decode() }

// A codec that cannot write or read keeps a run from starting, or from going on [S20.3].
func TestContextCodecFails(t *testing.T) {
	broken := errors.New("broken")
	store := &counting{Driver: journal.NewMemory()}
	r := &pawl.Runner{Store: store}
	var e effects
	for name, tt := range map[string]struct {
		encode func() ([]byte, error)
		is     func(error) bool
	}{
		"error":     {func() ([]byte, error) { return nil, broken }, is(broken)},
		"panic":     {func() ([]byte, error) { panic(broken) }, as[*pawl.PanicError]},
		"nothing":   {func() ([]byte, error) { return nil, nil }, as[*pawl.ContextError]},
		"not UTF-8": {func() ([]byte, error) { return []byte("\xff"), nil }, as[*pawl.ContextError]},
	} {
		_, err := r.Run(t.Context(), knowing(&e), pawl.UserText("go"), &pawl.RunOptions{ID: name, Context: "x", ContextCodec: brokenCodec{encode: tt.encode}})
		if !as[*pawl.ContextError](err) || !tt.is(err) || store.writes != 0 {
			t.Errorf("%s: %v, %d writes", name, err, store.writes)
		}
	}
	res := must(t)(r.Run(t.Context(), knowing(&e), pawl.UserText("go"), &pawl.RunOptions{ID: "r", Context: "ann", ContextCodec: pawl.JSONContext[string]()}))
	state := res.State()
	if err := state.Approve(res.Interruptions[0], "bob"); err != nil {
		t.Fatal(err)
	}
	before := store.writes
	for name, opts := range map[string]*pawl.RunOptions{
		"no codec":           nil,
		"error":              {ContextCodec: brokenCodec{decode: func() (any, error) { return nil, broken }}},
		"panic":              {ContextCodec: brokenCodec{decode: func() (any, error) { panic(broken) }}},
		"another type":       {ContextCodec: pawl.JSONContext[customer]()},
		"cannot be replaced": {ContextCodec: pawl.JSONContext[customer](), Context: 7},
	} {
		_, err := r.Resume(t.Context(), knowing(&e), state, opts)
		if want := name == "no codec"; as[*pawl.ConfigError](err) != want || as[*pawl.ContextError](err) == want || stateOf(t, err).Run() != "r" || store.writes != before {
			t.Errorf("%s: %v, %d writes", name, err, store.writes-before)
		}
	}
	e.want(t)
	must(t)(r.Resume(t.Context(), knowing(&e), state, &pawl.RunOptions{ContextCodec: pawl.JSONContext[string]()}))
	must(t)(r.Resume(t.Context(), knowing(&e), pawl.RunID("r"), nil)) // it has ended
	e.want(t, "ann approved by bob")
}

// A run that is only to be cancelled needs no codec.
func TestContextOfACancelledRun(t *testing.T) {
	var e effects
	var r pawl.Runner
	must(t)(r.Run(t.Context(), knowing(&e), pawl.UserText("go"), &pawl.RunOptions{ID: "r", Context: "ann", ContextCodec: pawl.JSONContext[string]()}))
	if err := r.Cancel(t.Context(), "r", "bob", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(t.Context(), knowing(&e), pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrCancelled) {
		t.Error(err)
	}
}

// JSON is read as it was written, and what would be lost is an error.
func TestJSONContext(t *testing.T) {
	for name, tt := range map[string]struct {
		codec pawl.ContextCodec
		text  string
		want  any
	}{
		"struct":         {pawl.JSONContext[customer](), `{"name":"ann","limit":7}`, customer{"ann", 7}},
		"pointer":        {pawl.JSONContext[*customer](), `{"name":"ann","limit":7}`, &customer{"ann", 7}},
		"map":            {pawl.JSONContext[map[string]int](), `{"a":1}`, map[string]int{"a": 1}},
		"member is new":  {pawl.JSONContext[customer](), `{"name":"ann"}`, customer{Name: "ann"}},
		"member is gone": {pawl.JSONContext[customer](), `{"name":"ann","limit":7,"street":"x"}`, nil},
		"another type":   {pawl.JSONContext[customer](), `7`, nil},
		"more":           {pawl.JSONContext[int](), `7 8`, nil},
		"cut short":      {pawl.JSONContext[customer](), `{"name":`, nil},
	} {
		got, err := tt.codec.Decode([]byte(tt.text))
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.want != nil) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if text, err := pawl.JSONContext[customer]().Encode(&customer{}); err == nil {
		t.Errorf("%s", text)
	}
}

// Wherever the process dies, the value is there when the run goes on: by resuming it, by starting it again, and when it is recovered.
func TestContextAfterACrash(t *testing.T) {
	codec := pawl.JSONContext[customer]()
	agent := func(e *effects) *pawl.Agent {
		a := knowing(e)
		a.Tools = []pawl.Tool{charging("pay", e, func(f *pawl.Func[charge, string]) {
			f.Effect = pawl.Idempotent
			f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) { return c.Value.(customer).Name, nil }
		})}
		return a
	}
	start := func(r *pawl.Runner) (*pawl.Result, error) {
		return r.Run(t.Context(), agent(new(effects)), pawl.UserText("go"), &pawl.RunOptions{ID: "r", Context: customer{"ann", 7}, ContextCodec: codec})
	}
	for name, resume := range map[string]func(r *pawl.Runner, run string) (*pawl.Result, error){
		"resume": func(r *pawl.Runner, run string) (*pawl.Result, error) {
			return r.Resume(t.Context(), agent(new(effects)), pawl.RunID(run), &pawl.RunOptions{ContextCodec: codec})
		},
		"run": func(r *pawl.Runner, run string) (*pawl.Result, error) {
			return r.Run(t.Context(), agent(new(effects)), pawl.UserText("go"), &pawl.RunOptions{ID: run, ContextCodec: codec})
		},
		"recover": func(r *pawl.Runner, run string) (*pawl.Result, error) {
			r.Agents = []*pawl.Agent{agent(new(effects))}
			err := r.Recover(t.Context(), &pawl.RecoverOptions{Options: func(string) *pawl.RunOptions { return &pawl.RunOptions{ContextCodec: codec} }})
			if err != nil {
				return nil, err
			}
			return r.Resume(t.Context(), nil, pawl.RunID(run), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			atEachAppend(t, start, resume, func(t *testing.T, res *pawl.Result) {
				if diff := cmp.Diff([]string{"c1: ann"}, outputs(res.NewItems())); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}
