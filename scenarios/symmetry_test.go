package scenarios

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// symmetric is a case that has to go the same way blocking and as a stream.
type symmetric struct {
	name  string
	steps []pawltest.ResponsesStep
	play  func(*kit)
	// want is how it ends, see kit.summary. It keeps the case from being about nothing.
	want string
}

// Streaming changes nothing but what is shown meanwhile: whatever a run is made of, the bytes of its requests, its session,
// what its tools did, what the caller got and what it used are the same [G3], and hooks are told the same and change nothing.
// What streams show of a run is what a watch of it shows [S12.1]. Ids and the clock are fixed.
func TestSymmetry(t *testing.T) {
	cases := slices.Concat(plainCases(), toolCases(), doubtCases(), approvalCases(), failureCases(), outputCases(), handoffCases(),
		nestedCases(), managedCases(), sessionCases(), guardCases(), handlerCases(), addedCases())
	names := map[string]bool{}
	differences := 0
	for _, c := range cases {
		if names[c.name] {
			t.Errorf("two cases are named %q", c.name)
		}
		names[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			different := func(what string, a, b trail) {
				if diff := gocmp.Diff(a, b); diff != "" {
					differences++
					t.Errorf("%s (-without +with):\n%s", what, diff)
				}
			}
			plain, told := c.in(t, run, false), c.in(t, run, true)
			different("a stream differs", plain, c.in(t, stream, false))
			different("a stream with hooks differs", told, c.in(t, stream, true))
			told.Told = nil
			different("a run with hooks differs", plain, told)
		})
	}
	fmt.Printf("symmetry: %d cases, %d differences\n", len(cases), differences)
	if len(cases) < 60 {
		t.Errorf("%d cases, want 60", len(cases))
	}
}

// trail is what a case leaves.
type trail struct {
	Requests []string // bodies, without whether to stream
	Session  []string
	Did      []string // what tools did
	Outcomes []seen
	// Watched is what a watch of the run shows of items, tools and agents, and Told what hooks were told; in any order,
	// because tools end in any order.
	Watched, Told []string
}

// in plays a case in a mode, with or without hooks, with a clock of its own.
func (c symmetric) in(t *testing.T, m mode, hooked bool) (got trail) {
	synctest.Test(t, func(t *testing.T) {
		server := pawltest.NewResponsesServer(t, &pawltest.ResponsesOptions{Steps: c.steps, InMemory: true})
		k := &kit{T: t, mode: m, server: server, session: session.NewMemory("chat")}
		k.agent = k.named("Desk")
		k.opts = &pawl.RunOptions{ID: "run", Session: k.session}
		if hooked {
			k.opts.Hooks = k.hooks()
		}
		c.play(k)
		if got := k.summary(); got != c.want {
			t.Errorf("%s: it ended %q, want %q (%s)", m, got, c.want, k.last.Error)
		}
		got = k.trail()
	})
	return got
}

// kit is what cases are made of.
type kit struct {
	*testing.T
	mode    mode
	server  *pawltest.ResponsesServer
	session *session.Memory
	runner  pawl.Runner
	agent   *pawl.Agent
	opts    *pawl.RunOptions
	last    *outcome
	seen    []seen

	shown     []string // what streams of the run showed that is recorded
	elsewhere bool     // somebody else closed the run, which no stream of its own shows

	mu   sync.Mutex
	did  []string
	told []string
}

// hooks note what they are told.
func (k *kit) hooks() *pawl.Hooks {
	tells := func(format string, args ...any) { k.told = append(k.told, fmt.Sprintf(format, args...)) }
	return &pawl.Hooks{
		AgentStart: func(_ context.Context, ev *pawl.AgentStart) { tells("%s starts in turn %d", ev.Agent.Name, ev.Turn) },
		AgentEnd:   func(_ context.Context, ev *pawl.AgentEnd) { tells("%s ends with %v", ev.Agent.Name, ev.Output) },
		ModelStart: func(_ context.Context, ev *pawl.ModelStart) {
			tells("%s asks in turn %d: %d items", ev.Agent.Name, ev.Turn, len(ev.Input))
		},
		ModelEnd: func(_ context.Context, ev *pawl.ModelEnd) { tells("%s is answered: %v", ev.Agent.Name, ev.Items) },
		Handoff:  func(_ context.Context, ev *pawl.HandoffDone) { tells("%s to %s", ev.From.Name, ev.To.Name) },
		ToolStart: func(_ context.Context, ev *pawl.ToolStart) {
			tells("%s starts %s, attempt %d", ev.Tool, ev.ID, ev.Attempt)
		},
		ToolEnd: func(_ context.Context, ev *pawl.ToolEnd) { tells("%s ends %s: %s", ev.Tool, ev.ID, ev.Output) },
	}
}

func (k *kit) trail() trail {
	got := trail{Outcomes: k.seen, Did: slices.Sorted(slices.Values(k.did)), Told: slices.Sorted(slices.Values(k.told))}
	got.Watched = k.watch()
	if k.mode == stream && !k.elsewhere {
		if diff := gocmp.Diff(k.shown, got.Watched); diff != "" {
			k.Errorf("a watch does not show what the streams showed (-streams +watch):\n%s", diff)
		}
	}
	slices.Sort(got.Watched)
	for _, r := range k.server.Requests() {
		body := bytes.Replace(r.Body, []byte(`"stream":true,`), nil, 1)
		got.Requests = append(got.Requests, string(bytes.Replace(body, []byte(`,"stream":true`), nil, 1)))
	}
	items, err := k.session.Items(k.Context(), -1)
	if err != nil {
		k.Error(err)
	}
	for _, it := range items {
		got.Session = append(got.Session, it.Raw())
	}
	return got
}

// summary says how the last call ended: the run's status, and the final output, the calls it asks about, or the errors.
func (k *kit) summary() string {
	var rest []string
	for _, in := range k.last.Interruptions {
		rest = append(rest, in.Kind+" "+in.CallID)
	}
	if k.last.Final != "" {
		rest = append(rest, k.last.Final)
	}
	rest = append(rest, k.last.Errors...)
	return strings.TrimSpace(string(k.last.Status) + " " + strings.Join(rest, ", "))
}

// named is an agent that asks the server.
func (k *kit) named(name string, tools ...pawl.Tool) *pawl.Agent {
	return &pawl.Agent{Name: name, Instructions: pawl.Text("Serve as " + name + "."), Tools: tools, Model: k.model()}
}

func (k *kit) model() model.Model {
	return openai.New(openai.Options{APIKey: "sk", BaseURL: k.server.URL(), HTTPClient: k.server.Client()}).Responses("gpt-test")
}

// does notes what a tool did.
func (k *kit) does(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.did = append(k.did, fmt.Sprintf(format, args...))
}

// tool is a tool that notes that it ran, and returns its name.
func (k *kit) tool(name string, change ...func(*pawl.Func[arguments, string])) pawl.Tool {
	f := pawl.Func[arguments, string]{Name: name, Description: "For tests.",
		Run: func(_ context.Context, c *pawl.Call, in arguments) (string, error) {
			k.does("%s %s %d, attempt %d, key %s", name, c.ID, in.Amount, c.Attempt, c.Key)
			return name, nil
		}}
	for _, c := range change {
		c(&f)
	}
	return pawl.NewTool(f)
}

// gated makes a tool ask.
func gated(f *pawl.Func[arguments, string]) { f.Approve = pawl.AlwaysAsk[arguments] }

// fails makes a tool fail.
func fails(err error) func(*pawl.Func[arguments, string]) {
	return func(f *pawl.Func[arguments, string]) {
		f.Run = func(context.Context, *pawl.Call, arguments) (string, error) { return "", err }
	}
}

// start starts the run.
func (k *kit) start(text string) *kit { return k.startWith(item.UserText(text)) }

func (k *kit) startWith(input ...item.Item) *kit {
	if k.mode == stream {
		return k.note(k.collect(k.runner.Stream(k.Context(), k.agent, input, k.opts)))
	}
	return k.note(k.runner.Run(k.Context(), k.agent, input, k.opts))
}

// resume goes on, after some decisions.
func (k *kit) resume(decisions ...decision) *kit {
	for _, d := range decisions {
		made, err := d.on(k.last.state.Result().Interruptions)
		if err == nil {
			err = k.last.state.Decide(made)
		}
		if err != nil {
			k.Fatal(err)
		}
	}
	return k.resumeFrom(k.last.state)
}

func (k *kit) resumeFrom(from pawl.Resumable) *kit {
	opts := *k.opts
	opts.ID, opts.ConversationID, opts.PreviousResponseID, opts.AutoPreviousResponseID = "", "", "", false
	if k.mode == stream {
		return k.note(k.collect(k.runner.ResumeStream(k.Context(), k.agent, from, &opts)))
	}
	return k.note(k.runner.Resume(k.Context(), k.agent, from, &opts))
}

// collect reads a stream and notes what it shows of the run.
func (k *kit) collect(events iter.Seq2[pawl.Event, error]) (*pawl.Result, error) {
	ours, first := false, false // of the run; shown at the beginning of every stream
	return pawl.Collect(func(yield func(pawl.Event, error) bool) {
		for ev, err := range events {
			if begun, is := ev.(*pawl.RunStarted); is {
				ours, first = begun.Run == "run", begun.Resumed
			} else if text := recorded(ev); text != "" {
				if ours && !first {
					k.shown = append(k.shown, text)
				}
				first = false
			}
			if !yield(ev, err) {
				return
			}
		}
	})
}

// watch returns what a watch shows of the run up to its end, or up to where nothing more happens.
func (k *kit) watch() (list []string) {
	ctx, cancel := context.WithTimeout(k.Context(), time.Hour)
	defer cancel()
	k.runner.Agents = []*pawl.Agent{k.agent}
	for ev, err := range k.runner.Watch(ctx, "run", pawl.Cursor{}) {
		if err != nil {
			break
		}
		if text := recorded(ev.Event); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// recorded says what an event tells of the ledger, nothing of one that a stream and a watch show in ways of their own.
func recorded(ev pawl.Event) string {
	switch ev := ev.(type) {
	case *pawl.ItemCreated:
		return fmt.Sprintf("turn %d: %s %s", ev.Turn, ev.Name, ev.Item.Raw())
	case *pawl.ToolStarted:
		return fmt.Sprintf("%s %s, attempt %d, key %s", ev.Tool, ev.CallID, ev.Attempt, ev.Key)
	case *pawl.AgentUpdated:
		return "now " + cmp.Or(ev.Agent.Name, ev.Agent.Key)
	case *pawl.Nested:
		if text := recorded(ev.Event); text != "" {
			return fmt.Sprintf("%s %v: %s", ev.Call, ev.Route, text)
		}
	}
	return ""
}

func (k *kit) note(res *pawl.Result, err error) *kit {
	k.last = newOutcome(res, err)
	k.seen = append(k.seen, k.last.seen)
	return k
}

// has puts items in the session.
func (k *kit) has(items ...item.Item) {
	if err := k.session.Append(k.Context(), items); err != nil {
		k.Fatal(err)
	}
}

// answers is a step of the model.
func answers(output ...item.Item) pawltest.ResponsesStep {
	return pawltest.ResponsesStep{Reply: pawltest.ReplyItems(output...)}
}

// refusing is a step whose request the server refuses.
func refusing(status int) pawltest.ResponsesStep {
	return pawltest.ResponsesStep{Reply: pawltest.ResponsesReply{Refuse: &pawltest.ResponsesError{Status: status, Message: "no"}}}
}

func script(steps ...pawltest.ResponsesStep) []pawltest.ResponsesStep { return steps }

// once is the script of one turn with calls and an answer.
func once(calls ...item.Item) []pawltest.ResponsesStep {
	return script(answers(calls...), answers(says("done")))
}

func plainCases() []symmetric {
	begin := func(k *kit) { k.start("go") }
	with := func(status, reason string, output ...item.Item) []pawltest.ResponsesStep {
		s := answers(output...)
		s.Reply.Status, s.Reply.IncompleteReason = status, reason
		return script(s)
	}
	unreported := answers(says("done"))
	unreported.Reply.NoUsage = true
	unnamed := answers(says("done"))
	unnamed.Reply.NoID = true
	future := item.FromTrusted(`{"type":"future_thing","id":"ft_1","zz":1.50}`)
	refusal := item.FromTrusted(`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"I will not."}]}`)
	temperature, tokens := 0.25, int64(99)
	return []symmetric{
		{"a message", script(answers(says("done"))), begin, "finished done"},
		{"no output", script(answers()), begin, "finished"},
		{"reasoning", script(answers(thinks("rs_1"), says("done"))), begin, "finished done"},
		{"two messages", script(answers(says("one"), says("two"))), begin, "finished two"},
		{"odd characters", script(answers(says("<a href=\"x\">&\u2028\u00e9\U0001F980</a>"))), begin, "finished <a href=\"x\">&\u2028\u00e9\U0001F980</a>"},
		{"an item nobody knows", script(answers(future, says("done"))), begin, "finished done"},
		{"a refusal", script(answers(refusal)), begin, "failed"},
		{"usage not reported", script(unreported), begin, "finished done"},
		{"a response without id", script(unnamed), begin, "finished done"},
		{"incomplete", with("incomplete", "max_output_tokens", says("do")), begin, "failed incomplete"},
		{"filtered", with("incomplete", "content_filter", says("do")), begin, "failed incomplete"},
		{"several items of input", script(answers(says("done"))), func(k *kit) {
			k.startWith(item.UserText("one"), says("two"), call("c9", "t"), item.FunctionOutput("c9", "o"), item.UserText("three"))
		}, "finished done"},
		{"settings", script(answers(says("done"))), func(k *kit) {
			k.agent.Settings = &pawl.ModelSettings{Temperature: &temperature, Metadata: map[string]string{"b": "2", "a": "1"}}
			k.opts.Settings = &pawl.ModelSettings{MaxTokens: &tokens}
			k.start("go")
		}, "finished done"},
		{"instructions of the turn", once(call("c1", "t")), func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("t")}
			k.agent.Instructions = func(_ context.Context, rc *pawl.RunContext) (string, error) {
				return fmt.Sprint("Turn ", rc.Turn, " of ", rc.Run), nil
			}
			k.start("go")
		}, "finished done"},
		{"instructions fail, then not", script(answers(says("done"))), func(k *kit) {
			asked := 0
			k.agent.Instructions = func(context.Context, *pawl.RunContext) (string, error) {
				if asked++; asked == 1 {
					return "", errors.New("no file")
				}
				return "Now.", nil
			}
			k.start("go").resume()
		}, "finished done"},
	}
}

func toolCases() []symmetric {
	one := func(change ...func(*pawl.Func[arguments, string])) func(*kit) {
		return func(k *kit) { k.agent.Tools = []pawl.Tool{k.tool("t", change...)}; k.start("go") }
	}
	three := []item.Item{call("c1", "t"), call("c2", "u"), call("c3", "t")}
	several := func(parallel int) func(*kit) {
		return func(k *kit) {
			k.agent.Tools, k.opts.MaxParallelTools = []pawl.Tool{k.tool("t"), k.tool("u")}, parallel
			k.start("go")
		}
	}
	return []symmetric{
		{"a tool", once(call("c1", "t")), one(), "finished done"},
		{"a tool with words", once(says("I will look."), call("c1", "t")), one(), "finished done"},
		{"parallel tools", once(three...), several(0), "finished done"},
		{"tools one by one", once(three...), several(1), "finished done"},
		{"one call twice", once(call("c1", "t"), call("c1", "t")), one(), "finished done"},
		{"one id, two calls", script(answers(call("c1", "t"), callWith("c1", "t", `{"amount":6}`))), one(), "failed call id"},
		{"an old call again", script(answers(call("c1", "t")), answers(call("c1", "t")), answers(says("done"))), one(), "finished done"},
		{"an error", once(call("c1", "t")), one(fails(errors.New("no paper"))), "finished done"},
		{"an error in other words", once(call("c1", "t")), one(fails(errors.New("no paper")), func(f *pawl.Func[arguments, string]) {
			f.OnError = func(_ context.Context, c *pawl.Call, err error) string { return c.Tool + ": " + err.Error() }
		}), "finished done"},
		{"a panic", once(call("c1", "t")), one(func(f *pawl.Func[arguments, string]) {
			f.Run = func(context.Context, *pawl.Call, arguments) (string, error) { panic("no paper") }
		}), "finished done"},
		{"arguments that do not fit", once(callWith("c1", "t", `{"amount":"x"}`), callWith("c2", "t", `{`)), one(), "finished done"},
		{"an unknown tool", script(answers(call("c1", "ghost"), call("c2", "t"))), one(), "failed tool not found"},
		{"an unknown tool, told", once(call("c1", "ghost"), call("c2", "t")), func(k *kit) {
			k.opts.ToolNotFound = pawl.TellModel
			one()(k)
		}, "finished done"},
		{"an unknown tool, added", once(call("c1", "ghost"), call("c2", "t")), func(k *kit) {
			one()(k)
			k.agent.Tools = append(k.agent.Tools, k.tool("ghost"))
			k.resume()
		}, "finished done"},
		{"a disabled tool", once(call("c1", "t")), func(k *kit) {
			k.opts.ToolNotFound = pawl.TellModel
			one(func(f *pawl.Func[arguments, string]) {
				f.Enabled = func(_ context.Context, rc *pawl.RunContext) (bool, error) { return rc.Turn > 1, nil }
			})(k)
		}, "finished done"},
		{"other texts", once(call("c1", "ghost"), callWith("c2", "t", `{`)), func(k *kit) {
			k.opts.ToolNotFound = pawl.TellModel
			k.opts.ToolErrors = func(e pawl.ToolError) string {
				return cmp.Or(map[bool]string{true: "what?"}[e.Kind == pawl.ToolErrorNotFound], e.Default)
			}
			one()(k)
		}, "finished done"},
	}
}

func doubtCases() []symmetric {
	lost := func(change ...func(*pawl.Func[arguments, string])) func(*kit) {
		return func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("t", append(change, func(f *pawl.Func[arguments, string]) {
				f.Run = func(_ context.Context, c *pawl.Call, _ arguments) (string, error) {
					k.does("t %s, attempt %d, key %s", c.ID, c.Attempt, c.Key)
					if c.Attempt == 1 {
						return "", pawl.ErrOutcomeUnknown
					}
					return "t", nil
				}
			})...)}
			k.start("go")
		}
	}
	wait := func(f *pawl.Func[arguments, string]) { f.OnUnknown = pawl.UnknownWait }
	then := func(play func(*kit), decisions ...decision) func(*kit) {
		return func(k *kit) { play(k); k.resume(decisions...) }
	}
	return []symmetric{
		{"unknown, told", once(call("c1", "t")), lost(), "finished done"},
		{"unknown, waits", script(answers(call("c1", "t"))), lost(wait), "waiting in-doubt c1"},
		{"unknown, settled", once(call("c1", "t")), then(lost(wait), settle("c1", "it did")), "finished done"},
		{"unknown, again", once(call("c1", "t")), then(lost(wait), retry("c1")), "finished done"},
		{"idempotent", once(call("c1", "t")), lost(func(f *pawl.Func[arguments, string]) { f.Effect = pawl.Idempotent }), "finished done"},
		{"far side asked", once(call("c1", "t")), lost(func(f *pawl.Func[arguments, string]) {
			f.Recover = func(context.Context, *pawl.Call, arguments) (pawl.Recovered[string], error) {
				return pawl.Recovered[string]{Answer: pawl.Happened, Output: "found"}, nil
			}
		}), "finished done"},
		{"timeout", once(call("c1", "t")), func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("t", func(f *pawl.Func[arguments, string]) {
				f.Timeout = time.Minute
				f.Run = func(ctx context.Context, _ *pawl.Call, _ arguments) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				}
			})}
			k.start("go")
		}, "finished done"},
		{"result later", once(call("c1", "t")), func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("t", fails(fmt.Errorf("%w: by post", pawl.ErrPending)))}
			k.start("go").resume().resume(settle("c1", "it came"))
		}, "finished done"},
		{"tool asks again", once(call("c1", "t")), func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("t", func(f *pawl.Func[arguments, string]) {
				body := f.Run
				f.Run = func(ctx context.Context, c *pawl.Call, in arguments) (string, error) {
					if c.Approvals == 0 {
						return "", pawl.AskAgain("sure?")
					}
					return body(ctx, c, in)
				}
			})}
			k.start("go").resume(approve("c1"))
		}, "finished done"},
	}
}
