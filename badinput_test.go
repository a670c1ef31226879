package pawl_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

// counting is a store that counts what is written to it.
type counting struct {
	journal.Driver
	writes int
}

func (c *counting) Claim(ctx context.Context, run string, req journal.ClaimRequest) (journal.Claim, error) {
	c.writes++
	return c.Driver.Claim(ctx, run, req)
}

func (c *counting) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	c.writes++
	return c.Driver.Append(ctx, run, epoch, after, recs, with...)
}

func (c *counting) Post(ctx context.Context, run string, e journal.Entry) error {
	c.writes++
	return c.Driver.Post(ctx, run, e)
}

// A mistake in a run's description is found before anything is written, read or asked.
func TestMistakes(t *testing.T) {
	type loop struct {
		Next any `json:"next"`
	}
	good := func() *pawl.Agent { return agentWith(newScript(says("done")), charging("charge", &effects{}, nil)) }
	change := func(f func(*pawl.Agent)) *pawl.Agent { a := good(); f(a); return a }
	server := func() *pawl.Agent { a := good(); a.Model.(*script).info.ServerState = true; return a }
	sess := &points{Session: session.NewMemory("s"), at: func(p string) { t.Errorf("the session is asked: %s", p) }}
	hi := pawl.UserText("hi")
	for name, tt := range map[string]struct {
		agent *pawl.Agent
		input pawl.Input
		opts  *pawl.RunOptions
		want  string
	}{
		"no agent":                     {nil, hi, nil, "agent: is nil"},
		"no name":                      {change(func(a *pawl.Agent) { a.Name = "" }), hi, nil, "Agent.Name: is empty"},
		"no model":                     {change(func(a *pawl.Agent) { a.Model = nil }), hi, nil, `Agent.Model: agent "support" has no model`},
		"two of a name":                {change(func(a *pawl.Agent) { a.Tools = append(a.Tools, a.Tools[0]) }), hi, nil, `two tools are named "charge"`},
		"tool of nothing":              {change(func(a *pawl.Agent) { a.Tools = []pawl.Tool{{}} }), hi, nil, "has no body"},
		"output":                       {change(func(a *pawl.Agent) { a.Output = pawl.OutputOf[loop]() }), hi, nil, "Agent.Output: "},
		"stop at none":                 {change(func(a *pawl.Agent) { a.ToolUse = pawl.StopAtTools("refund") }), hi, nil, `no tool is named "refund"`},
		"bad name":                     {change(func(a *pawl.Agent) { a.Name = "\xff" }), hi, nil, "Agent.Name: is not valid UTF-8"},
		"bad key":                      {change(func(a *pawl.Agent) { a.Key = "\xff" }), hi, nil, "Agent.Key: is not valid UTF-8"},
		"bad run id":                   {good(), hi, &pawl.RunOptions{ID: "\xff"}, "RunOptions.ID: is not valid UTF-8"},
		"zero item":                    {good(), pawl.Input{item.UserText("a"), {}}, nil, "input: item 1 is empty"},
		"no item":                      {good(), pawl.Input{item.FromTrusted("{")}, nil, "input: item 0: "},
		"open call":                    {good(), pawl.Input{item.UserText("a"), fc("c9", "charge", "{}")}, nil, `call "c9" has no output`},
		"output before":                {good(), pawl.Input{item.FunctionOutput("c9", "x"), fc("c9", "charge", "{}")}, nil, `call "c9" has no output`},
		"another's output":             {good(), pawl.Input{fc("c9", "charge", "{}"), item.CustomOutput("c9", "x")}, nil, `call "c9" has no output`},
		"tools":                        {good(), hi, &pawl.RunOptions{MaxParallelTools: -1}, "MaxParallelTools: is negative"},
		"session and conversation":     {server(), hi, &pawl.RunOptions{Session: sess, ConversationID: "c"}, "exclude each other"},
		"session and chain":            {server(), hi, &pawl.RunOptions{Session: sess, PreviousResponseID: "r"}, "exclude each other"},
		"session and auto":             {server(), hi, &pawl.RunOptions{Session: sess, AutoPreviousResponseID: true}, "exclude each other"},
		"conversation and chain":       {server(), hi, &pawl.RunOptions{ConversationID: "c", PreviousResponseID: "r"}, "exclude each other"},
		"conversation and auto":        {server(), hi, &pawl.RunOptions{ConversationID: "c", AutoPreviousResponseID: true}, "exclude each other"},
		"conversation, model has none": {good(), hi, &pawl.RunOptions{ConversationID: "c"}, "keeps no conversation"},
		"chain, model has none":        {good(), hi, &pawl.RunOptions{AutoPreviousResponseID: true}, "keeps no conversation"},
		"unknown not found":            {good(), hi, &pawl.RunOptions{ToolNotFound: 7}, "RunOptions.ToolNotFound: "},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, mode mode) {
				store := &counting{Driver: journal.NewMemory()}
				r := pawl.Runner{Store: store}
				_, err := mode.run(&r, t.Context(), tt.agent, tt.input, tt.opts)
				var bad *pawl.ConfigError
				if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				if store.writes > 0 {
					t.Errorf("%d writes", store.writes)
				}
				if tt.agent != nil && tt.agent.Model != nil {
					if n := len(tt.agent.Model.(*script).calls()); n > 0 {
						t.Errorf("%d model calls", n)
					}
				}
			})
		})
	}
}

func streamError[T any](list iter.Seq2[T, error]) (err error) {
	for _, e := range list {
		err = e
	}
	return err
}

// A nil pointer, as an error that was passed over leaves it, is found wherever it is given.
func TestNilPointers(t *testing.T) {
	ctx := t.Context()
	agent, hi := agentWith(newScript(calling(fc("c1", "charge", `{"cents":1}`))), charging("charge", &effects{}, asking)), pawl.UserText("hi")
	stored := &pawl.Runner{Store: journal.NewMemory()}
	must(t)(stored.Run(ctx, agent, hi, &pawl.RunOptions{ID: "r", Session: session.NewMemory("s")}))
	lost := &pawl.Runner{Store: stored.Store, Sessions: func(string) session.Session { return (*session.Memory)(nil) }}
	none := &pawl.Runner{Store: (*journal.Memory)(nil)}
	const store, sess, mod = "pawl: Runner.Store: is a nil *journal.Memory", "pawl: RunOptions.Session: is a nil *session.Memory", `pawl: Agent.Model: agent "support" has no model`
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"run":       {errorOf(none.Run(ctx, agent, hi, nil)), store},
		"stream":    {streamError(none.Stream(ctx, agent, hi, nil)), store},
		"resume":    {errorOf(none.Resume(ctx, agent, pawl.RunID("r"), nil)), store},
		"submit":    {errorOf(none.Submit(ctx, agent, hi, nil)), store},
		"decide":    {none.Decide(ctx, "r", pawl.Approve("t1.0.0", "ann")), store},
		"cancel":    {none.Cancel(ctx, "r", "ann", ""), store},
		"add input": {none.AddInput(ctx, "r", hi), store},
		"state":     {errorOf(none.State(ctx, "r")), store},
		"watch":     {streamError(none.Watch(ctx, "r", pawl.Cursor{})), store},
		"unsettled": {streamError(none.Unsettled(ctx, nil)), store},
		"recover":   {none.Recover(ctx, nil), store},
		"work":      {none.Work(ctx, nil), store},
		"stepper":   {errorOf(pawl.NewStepper(none, pawl.StepperOptions{Engine: "e"})), store},
		"model":     {errorOf(stored.Run(ctx, agentWith((*script)(nil)), hi, nil)), mod},
		"its model": {errorOf(stored.Run(ctx, agent, hi, &pawl.RunOptions{Model: (*script)(nil)})), mod},
		"session":   {errorOf(stored.Run(ctx, agent, hi, &pawl.RunOptions{Session: (*session.Memory)(nil)})), sess},
		"resumed":   {errorOf(stored.Resume(ctx, agent, pawl.RunID("r"), &pawl.RunOptions{Session: (*session.Memory)(nil)})), strings.Replace(sess, "pawl: ", "pawl: run r: ", 1)},
		"submitted": {errorOf(stored.Submit(ctx, agent, hi, &pawl.RunOptions{Session: (*session.Memory)(nil)})), sess},
		"not found": {errorOf(lost.Resume(ctx, agent, pawl.RunID("r"), nil)), "pawl: run r: the run's session is missing"},
	} {
		if tt.err == nil || !strings.HasPrefix(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v", name, tt.err)
		}
	}
}

// An agent's model may be missing if the run brings one.
func TestModelOfTheRun(t *testing.T) {
	m := newScript(calling(fc("c1", "ask", `{"cents":1}`)), says("done"))
	agent := agentWith(nil, charging("ask", &effects{}, asking))
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{Model: m}))
	s := res.State()
	if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	var bad *pawl.ConfigError
	if _, err := r.Resume(t.Context(), agent, s, nil); !errors.As(err, &bad) || stateOf(t, err).Run() != res.Run {
		t.Errorf("resumed without: %v", err)
	}
	if res := must(t)(r.Resume(t.Context(), agent, s, &pawl.RunOptions{Model: m})); res.FinalOutput != "done" {
		t.Errorf("%+v", res)
	}
}

// What a resume gets wrong changes nothing; the run goes on afterwards.
func TestResumeMistakes(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			var e effects
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			m.info.ServerState = true
			agent := agentWith(m, charging("charge", &e, asking))
			sess := session.NewMemory("s")
			store := &counting{Driver: open(t)}
			r := &pawl.Runner{Store: store}
			res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess}))
			s := res.State()
			if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
				t.Fatal(err)
			}
			other := *agent
			other.Name = "other"
			twice := *agent
			twice.Tools = append(twice.Tools, twice.Tools[0])
			type plain struct{ session.Session }
			for what, tt := range map[string]struct {
				agent *pawl.Agent
				from  pawl.Resumable
				opts  *pawl.RunOptions
				want  error
				field string
			}{
				"no agent known":      {nil, s, &pawl.RunOptions{Session: sess}, pawl.ErrUnknownAgent, ""},
				"another agent":       {&other, s, &pawl.RunOptions{Session: sess}, pawl.ErrWrongAgent, ""},
				"a bad agent":         {&twice, s, &pawl.RunOptions{Session: sess}, nil, "Agent.Tools"},
				"no such run":         {agent, pawl.RunID("x"), &pawl.RunOptions{Session: sess}, pawl.ErrUnknownRun, ""},
				"no run":              {agent, pawl.RunID(""), &pawl.RunOptions{Session: sess}, pawl.ErrUnknownRun, ""},
				"nothing":             {agent, nil, nil, nil, "Resume"},
				"no session":          {agent, s, nil, pawl.ErrSessionMissing, ""},
				"another session":     {agent, s, &pawl.RunOptions{Session: session.NewMemory("s2")}, pawl.ErrSessionMismatch, ""},
				"another kind":        {agent, s, &pawl.RunOptions{Session: plain{sess}}, pawl.ErrSessionMismatch, ""},
				"another backend":     {agent, s, &pawl.RunOptions{Session: openSQLite(t, filepath.Join(t.TempDir(), "s.db")).Session("s")}, pawl.ErrSessionMismatch, ""},
				"another id":          {agent, s, &pawl.RunOptions{Session: sess, ID: "r2"}, nil, "RunOptions"},
				"a conversation":      {agent, s, &pawl.RunOptions{ConversationID: "c"}, nil, "RunOptions"},
				"a negative parallel": {agent, s, &pawl.RunOptions{Session: sess, MaxParallelTools: -2}, nil, "RunOptions.MaxParallelTools"},
			} {
				eachMode(t, func(t *testing.T, mode mode) {
					before := store.writes
					_, err := mode.resume(r, t.Context(), tt.agent, tt.from, tt.opts)
					var bad *pawl.ConfigError
					if tt.want != nil && !errors.Is(err, tt.want) || tt.want == nil && (!errors.As(err, &bad) || bad.Field != tt.field) {
						t.Errorf("%s: %v", what, err)
					}
					if store.writes != before {
						t.Errorf("%s: %d writes", what, store.writes-before)
					}
					if tt.from == s {
						if left := stateOf(t, err); left.Run() != "r" {
							t.Errorf("%s: the error's state is of %q", what, left.Run())
						}
					}
				})
			}
			e.want(t)
			res = must(t)(r.Resume(t.Context(), agent, s, &pawl.RunOptions{Session: sess}))
			e.want(t, "charge 5")
			sameViews(t, res, m, sess)
		})
	}
}

// A run id that is in use with something else says so, and the run is unharmed.
func TestRunExists(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			var e effects
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			m.info.ServerState = true
			agent := agentWith(m, charging("charge", &e, asking))
			r := &pawl.Runner{Store: open(t)}
			must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", PreviousResponseID: "resp"}))
			other := *agent
			other.Key = "other"
			for what, f := range map[string]func() (*pawl.Result, error){
				"another input": func() (*pawl.Result, error) {
					return r.Run(t.Context(), agent, pawl.UserText("pay!"), &pawl.RunOptions{ID: "r", PreviousResponseID: "resp"})
				},
				"another agent": func() (*pawl.Result, error) {
					return r.Run(t.Context(), &other, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", PreviousResponseID: "resp"})
				},
				"another chain": func() (*pawl.Result, error) {
					return r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", PreviousResponseID: "resp2"})
				},
				"a conversation": func() (*pawl.Result, error) {
					return r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", ConversationID: "c"})
				},
				"no chain": func() (*pawl.Result, error) {
					return r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				},
				"a stream": func() (*pawl.Result, error) {
					return pawl.Collect(r.Stream(t.Context(), agent, pawl.UserText("pay!"), &pawl.RunOptions{ID: "r"}))
				},
			} {
				_, err := f()
				if !errors.Is(err, pawl.ErrRunExists) {
					t.Errorf("%s: %v", what, err)
				}
				if s := stateOf(t, err); len(s.Interruptions()) != 1 {
					t.Errorf("%s: the state is %s", what, s.Status())
				}
			}
			// The same attaches.
			res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", PreviousResponseID: "resp"}))
			if len(res.Interruptions) != 1 || len(m.calls()) != 1 {
				t.Errorf("attached: %+v after %d calls", res, len(m.calls()))
			}
			if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				res = must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", PreviousResponseID: "resp"}))
				if res.FinalOutput != "done" {
					t.Errorf("%+v", res)
				}
			}
			e.want(t, "charge 5")
		})
	}
}

// A store file that is not ours, or of a newer version, is refused untouched.
func TestForeignStore(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	execute := func(name string, ours bool, sqls ...string) string {
		path := filepath.Join(dir, name)
		if ours {
			s, err := sqlstore.OpenSQLite(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
		}
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, q := range sqls {
			if _, err := db.Exec(q); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	for name, tt := range map[string]struct {
		path string
		want error
	}{
		"text":          {write("text", []byte(strings.Repeat("not a database ", 100))), journal.ErrForeignStore},
		"another's":     {execute("other.db", false, "CREATE TABLE customers (id INTEGER)"), journal.ErrForeignStore},
		"newer version": {execute("newer.db", true, "UPDATE pawl_meta SET version = version + 1"), journal.ErrNewerStore},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := os.ReadFile(tt.path)
			if err != nil {
				t.Fatal(err)
			}
			if s, err := sqlstore.OpenSQLite(tt.path, nil); !errors.Is(err, tt.want) {
				if s != nil {
					s.Close()
				}
				t.Errorf("%v, want %v", err, tt.want)
			}
			after, err := os.ReadFile(tt.path)
			if err != nil {
				t.Fatal(err)
			}
			if string(before) != string(after) {
				t.Error("the file was changed")
			}
		})
	}
}

// A ledger of a newer version is refused before anything is written.
func TestNewerLedger(t *testing.T) {
	var e effects
	agent := agentWith(newScript(says("done")), charging("charge", &e, nil))
	started := &journal.Started{Run: "r", Agent: "support", Machine: 99}
	for name, rec := range map[string]journal.Record{
		"rules":   journal.Encode(journal.Fact{Body: started}, [16]byte{}),
		"kind":    {Kind: "dreamt", Version: 1, Payload: "{}"},
		"version": {Kind: journal.KindStarted, Version: 2, Payload: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			store := &counting{Driver: futureStore{journal.NewMemory(), rec}}
			r := pawl.Runner{Store: store}
			for what, f := range map[string]func() error{
				"State":  func() error { _, err := r.State(t.Context(), "r"); return err },
				"Resume": func() error { _, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil); return err },
				"Decide": func() error { return r.Decide(t.Context(), "r", pawl.Approve("1.0#0", "ann")) },
				"Cancel": func() error { return r.Cancel(t.Context(), "r", "ann", "") },
			} {
				if err := f(); !errors.Is(err, journal.ErrNewerJournal) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if store.writes > 0 {
				t.Errorf("%d writes", store.writes)
			}
		})
	}
}

// futureStore has a run that a newer version wrote.
type futureStore struct {
	journal.Driver
	rec journal.Record
}

func (f futureStore) Read(context.Context, string, uint64) ([]journal.Record, error) {
	return []journal.Record{f.rec}, nil
}

// A model server that cannot be reached fails the run, resumably.
func TestUnreachableServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	eachMode(t, func(t *testing.T, mode mode) {
		m := openai.New(openai.Options{BaseURL: url, APIKey: "none"}).Responses("gpt-5.2")
		var e effects
		agent := agentWith(m, charging("charge", &e, nil))
		sess := session.NewMemory("s")
		var r pawl.Runner
		_, err := mode.run(&r, t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{Session: sess})
		var me *model.Error
		if !errors.As(err, &me) || me.Status != 0 {
			t.Fatal(err)
		}
		back := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
		res := must(t)(mode.resume(&r, t.Context(), agent, viaJSON(t, stateOf(t, err)), &pawl.RunOptions{Model: back, Session: sess}))
		if diff := cmp.Diff("done", res.FinalOutput); diff != "" {
			t.Error(diff)
		}
		e.want(t, "charge 5")
		sameViews(t, res, back, sess)
	})
}

// A nil among the Runner's agents is not one.
func TestNilAgents(t *testing.T) {
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	var e effects
	agent := agentWith(m, charging("charge", &e, asking))
	r := &pawl.Runner{Agents: []*pawl.Agent{nil, agent}}
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
	if err := r.Decide(t.Context(), res.Run, pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
		t.Fatal(err)
	}
	if res := must(t)(r.Resume(t.Context(), nil, pawl.RunID(res.Run), nil)); res.FinalOutput != "done" {
		t.Errorf("%+v", res)
	}
}

// Errors say what they are about in words that go on a screen.
func TestErrorTexts(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&pawl.RunError{Run: "r", Effect: "model call of turn 1, attempt 1", Err: errors.New("pawl: down")}, "pawl: run r, model call of turn 1, attempt 1: down"},
		{&pawl.RunError{Run: "r", Err: pawl.ErrClaimed}, "pawl: run r: the run is being driven elsewhere"},
		{&pawl.ConfigError{Field: "Agent.Name", Problem: "is empty"}, "pawl: Agent.Name: is empty"},
		{&pawl.MaxTurnsError{MaxTurns: 3}, "pawl: no final output after 3 turns; resume the run with a larger MaxTurns"},
		{&pawl.CallIDError{CallID: "c1"}, `pawl: the model used the call id "c1" for two different calls`},
		{&pawl.RefusalError{Refusal: "no"}, "pawl: the model refused: no"},
		{&pawl.PanicError{In: `tool "x"`, Value: 7}, `pawl: tool "x" panicked: 7`},
		{&pawl.JournalError{Unrecorded: 2, Err: fmt.Errorf("disk full")}, "pawl: the run store failed with 2 facts to record: disk full"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
