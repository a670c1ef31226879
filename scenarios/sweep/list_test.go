package sweep

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

// payment is what every tool here takes.
type payment struct {
	Amount int64 `json:"amount"`
}

// tool describes a tool that acts at the far side, which answers "TOOL done".
type tool struct {
	name    string
	effect  pawl.Effect
	gated   bool
	unknown pawl.OnUnknown
	// recovers says that the far side can be asked, pending that its answer comes later, asks that the body asks before it acts.
	recovers, pending, asks bool
	expires                 time.Duration
	// refuses is why the body does nothing, and err what it returns after the far side acted.
	refuses, err error
	in           func(*pawltest.World) []pawl.ToolInputGuardrail
	out          func(*pawltest.World) []pawl.ToolOutputGuardrail
}

func (d tool) make(w *pawltest.World) pawl.Tool {
	f := pawl.Func[payment, string]{Name: d.name, Effect: d.effect, OnUnknown: d.unknown, Expires: d.expires,
		Run: func(ctx context.Context, c *pawl.Call, _ payment) (string, error) {
			switch {
			case d.refuses != nil:
				return "", d.refuses
			case d.asks && c.Approvals == 0:
				return "", pawl.AskAgain("really?")
			}
			answer, err := w.Do(ctx, c, d.name+" done")
			if d.pending && err == nil {
				return "", pawl.ErrPending
			}
			return answer, errors.Join(err, d.err)
		}}
	if d.in != nil {
		f.InputGuardrails = d.in(w)
	}
	if d.out != nil {
		f.OutputGuardrails = d.out(w)
	}
	if d.gated {
		f.Approve = pawl.AlwaysAsk[payment]
	}
	if d.recovers {
		f.Recover = func(_ context.Context, c *pawl.Call, _ payment) (pawl.Recovered[string], error) {
			answer, ok := w.Answer(c.Key)
			if !ok {
				return pawl.Recovered[string]{Answer: pawl.DidNotHappen}, nil
			}
			return pawl.Recovered[string]{Answer: pawl.Happened, Output: answer}, nil
		}
	}
	return pawl.NewTool(f)
}

// agent makes an agent of some tools.
func agent(tools ...tool) func(*pawltest.World) *pawl.Agent {
	return func(w *pawltest.World) *pawl.Agent {
		a := &pawl.Agent{Name: "Desk", Instructions: pawl.Text("Serve the customer."), Model: w.Model()}
		for _, t := range tools {
			a.Tools = append(a.Tools, t.make(w))
		}
		return a
	}
}

// with changes an agent after it was made.
func with(make func(*pawltest.World) *pawl.Agent, change func(*pawl.Agent)) func(*pawltest.World) *pawl.Agent {
	return func(w *pawltest.World) *pawl.Agent {
		a := make(w)
		change(a)
		return a
	}
}

var (
	pay    = tool{name: "pay", gated: true}
	ship   = tool{name: "ship", gated: true}
	send   = tool{name: "send"}
	lookUp = tool{name: "look_up", effect: pawl.ReadOnly}
	put    = tool{name: "put", effect: pawl.Idempotent}
)

// turn is a step of the script. Items of a conversation have ids, as a server gives them.
func turn(output ...item.Item) pawltest.ScriptedStep { return pawltest.ScriptedItems(output...) }

func call(id, tool string) item.Item { return callWith(id, tool, `{"amount":5}`) }

func callWith(id, tool, arguments string) item.Item {
	return item.FunctionCallItem("fc_"+id, id, tool, arguments)
}

func says(text string) item.Item { return item.MessageItem("msg_"+text, text) }

var hello = pawl.UserText("go")

// payAndSay is the script of one call of a tool.
func payAndSay(tool string) []pawltest.ScriptedStep {
	return []pawltest.ScriptedStep{turn(call("c1", tool)), turn(says("done"))}
}

// first decides about the first open approval only.
func first(decide func(pawl.Interruption) pawl.Decision) func([]pawl.Interruption) []pawl.Decision {
	return func(open []pawl.Interruption) []pawl.Decision { return []pawl.Decision{decide(open[0])} }
}

func approve(in pawl.Interruption) pawl.Decision { return pawl.Approve(in.ID, "reviewer@example.org") }

// by decides by the tool: those not named wait.
func by(verdicts map[string]func(pawl.Interruption) pawl.Decision) func([]pawl.Interruption) []pawl.Decision {
	return func(open []pawl.Interruption) (list []pawl.Decision) {
		for _, in := range open {
			if decide := verdicts[in.Tool]; decide != nil {
				list = append(list, decide(in))
			}
		}
		return list
	}
}

func reject(in pawl.Interruption) pawl.Decision {
	return pawl.Reject(in.ID, "reviewer@example.org", "not now")
}

// scenarios lists what is swept.
func scenarios() []pawltest.Scenario {
	list := slices.Concat(approvals(), sessions(), several(), endings(), managed(), classes(), handoffs(), nested(), guardrails(), around(), added(), hosted(), listed())
	for i := range list {
		list[i].Input = hello
		if list[i].Want == "" && list[i].WantStatus == "" {
			list[i].Want = "done"
		}
	}
	return list
}

func approvals() []pawltest.Scenario {
	two := []pawltest.ScriptedStep{turn(call("c1", "pay"), call("c2", "send"), call("c3", "ship")), turn(says("done"))}
	return []pawltest.Scenario{
		{Name: "approved", Agent: agent(pay), Script: payAndSay("pay"), Session: pawltest.PlainSession,
			WantEffects: []string{`pay {"amount":5}`}},
		{Name: "rejected", Agent: agent(pay), Script: payAndSay("pay"), Session: pawltest.BatchSession,
			Decide: first(reject), WantEffects: []string{}},
		{Name: "one approved, one rejected", Agent: agent(pay, send, ship), Script: two, Session: pawltest.PlainSession,
			Decide:      by(map[string]func(pawl.Interruption) pawl.Decision{"pay": reject, "ship": approve}),
			WantEffects: []string{`send {"amount":5}`, `ship {"amount":5}`}},
		{Name: "one after the other", Agent: agent(pay, send, ship), Script: two, Session: pawltest.BatchSession,
			Decide: first(approve), WantEffects: []string{`pay {"amount":5}`, `send {"amount":5}`, `ship {"amount":5}`}},
		{Name: "one only", Agent: agent(pay, send, ship), Script: two, Session: pawltest.BatchSession, WantStatus: pawl.StatusWaiting,
			Decide:      by(map[string]func(pawl.Interruption) pawl.Decision{"ship": approve}),
			WantEffects: []string{`send {"amount":5}`, `ship {"amount":5}`}},
		{Name: "approved always", Agent: agent(pay), Session: pawltest.BatchSession,
			Script: []pawltest.ScriptedStep{turn(call("c1", "pay"), callWith("c2", "pay", `{"amount":6}`)), turn(call("c3", "pay")), turn(says("done"))},
			Decide: first(func(in pawl.Interruption) pawl.Decision {
				d := approve(in)
				d.Always = true
				return d
			}),
			WantEffects: []string{`pay {"amount":5}`, `pay {"amount":5}`, `pay {"amount":6}`}},
		{Name: "edited", Agent: agent(pay), Script: payAndSay("pay"), Session: pawltest.BatchSession,
			Decide: first(func(in pawl.Interruption) pawl.Decision {
				return pawl.Edit(in.ID, "reviewer@example.org", `{"amount": 9007199254740993}`)
			}),
			WantEffects: []string{`pay {"amount":9007199254740993}`}},
	}
}

func sessions() []pawltest.Scenario {
	three := []pawltest.ScriptedStep{turn(call("c1", "send")), turn(item.ReasoningItem("rs_2", "so"), call("c2", "send")),
		turn(item.ReasoningItem("rs_3", "so"), call("c3", "send")), turn(says("done"))}
	sent := []string{`send {"amount":5}`, `send {"amount":5}`, `send {"amount":5}`}
	return []pawltest.Scenario{
		{Name: "answer", Agent: agent(), Script: []pawltest.ScriptedStep{turn(says("done"))}, Session: pawltest.PlainSession},
		{Name: "no session", Agent: agent(send), Script: payAndSay("send"), WantEffects: []string{`send {"amount":5}`}},
		{Name: "three turns, plain session", Agent: agent(send), Script: three, Session: pawltest.PlainSession, WantEffects: sent},
		{Name: "three turns, session in the store", Agent: agent(send), Script: three, Session: pawltest.SessionInStore, WantEffects: sent},
		{Name: "model retries", Agent: with(agent(send), func(a *pawl.Agent) {
			a.Settings = &pawl.ModelSettings{Retry: retryTwice()}
		}), Script: payAndSay("send"), Session: pawltest.BatchSession, WantEffects: []string{`send {"amount":5}`}},
	}
}

func several() []pawltest.Scenario {
	failing := send
	failing.refuses = errors.New("out of stock")
	return []pawltest.Scenario{
		{Name: "parallel, one fails", Agent: agent(failing, lookUp, put), Session: pawltest.BatchSession,
			Script:      []pawltest.ScriptedStep{turn(call("c1", "look_up"), call("c2", "send"), call("c3", "put")), turn(says("done"))},
			WantEffects: []string{`look_up {"amount":5}`, `put {"amount":5}`}},
		{Name: "one at a time", Agent: agent(send), Session: pawltest.PlainSession, Options: func(o *pawl.RunOptions) { o.MaxParallelTools = 1 },
			Script: []pawltest.ScriptedStep{turn(callWith("c1", "send", `{"amount":1}`), callWith("c2", "send", `{"amount":2}`), callWith("c3", "send", `{"amount":3}`)),
				turn(says("done"))},
			WantEffects: []string{`send {"amount":1}`, `send {"amount":2}`, `send {"amount":3}`}},
		{Name: "twins and ids used again", Agent: agent(send), Session: pawltest.PlainSession,
			Script: []pawltest.ScriptedStep{turn(item.FunctionCallItem("fc_1", "c1", "send", `{"amount":9007199254740993}`), call("c2", "send"),
				item.FunctionCallItem("fc_3", "c1", "send", `{"amount":9007199254740993}`)), turn(says("done"))},
			WantEffects: []string{`send {"amount":5}`, `send {"amount":9007199254740993}`}},
		{Name: "replayed call", Agent: agent(send), Session: pawltest.NoSession, UniqueCallIDs: true, Options: func(o *pawl.RunOptions) { o.AutoPreviousResponseID = true },
			Script:      []pawltest.ScriptedStep{turn(item.FunctionCallItem("fc_1", "c1", "send", `{"amount":1}`)), turn(call("c2", "send")), turn(says("done"))},
			WantEffects: []string{`send {"amount":1}`, `send {"amount":5}`}},
		{Name: "one id for two calls", Agent: agent(send), Session: pawltest.BatchSession, WantStatus: pawl.StatusFailed,
			Script: []pawltest.ScriptedStep{turn(item.FunctionCallItem("fc_1", "c1", "send", `{"amount":9007199254740992}`),
				item.FunctionCallItem("fc_2", "c1", "send", `{"amount":9007199254740993}`)), turn(says("done"))},
			WantEffects: []string{}},
		{Name: "unknown tool and bad arguments", Agent: agent(send), Session: pawltest.BatchSession, Options: func(o *pawl.RunOptions) { o.ToolNotFound = pawl.TellModel },
			Script:      []pawltest.ScriptedStep{turn(call("c1", "gone"), callWith("c2", "send", `{"amount":"many"}`), call("c3", "send")), turn(says("done"))},
			WantEffects: []string{`send {"amount":5}`}},
	}
}

// verdict is the structured output.
type verdict struct {
	Fine bool `json:"fine"`
}

func endings() []pawltest.Scenario {
	finish := turn(says("done"))
	twoCalls := []pawltest.ScriptedStep{turn(call("c1", "send"), call("c2", "pay")), finish}
	return []pawltest.Scenario{
		{Name: "stop on first tool", Agent: with(agent(send), func(a *pawl.Agent) { a.ToolUse = pawl.StopOnFirstTool() }), Want: "send done",
			Script: payAndSay("send"), Session: pawltest.BatchSession, WantEffects: []string{`send {"amount":5}`}},
		{Name: "stop at a gated tool", Agent: with(agent(pay, send), func(a *pawl.Agent) { a.ToolUse = pawl.StopAtTools("pay") }), Want: "pay done",
			Script: twoCalls, Session: pawltest.PlainSession, WantEffects: []string{`pay {"amount":5}`, `send {"amount":5}`}},
		{Name: "tool use decided", Agent: with(agent(send), func(a *pawl.Agent) { a.ToolUse = pawl.DecideToolUse(enough) }), Want: "enough",
			Script: []pawltest.ScriptedStep{turn(call("c1", "send")), turn(call("c2", "send"), call("c3", "send")), finish}, Session: pawltest.BatchSession},
		{Name: "structured output", Agent: with(agent(send), func(a *pawl.Agent) { a.Output = pawl.OutputOf[verdict]() }), Want: `{"fine":true}`,
			Script: []pawltest.ScriptedStep{turn(call("c1", "send")), turn(item.MessageItem("msg_1", `{"fine":true}`))}, Session: pawltest.BatchSession},
		{Name: "max turns", Agent: agent(send), Options: func(o *pawl.RunOptions) { o.MaxTurns = 2 }, WantStatus: pawl.StatusFailed,
			Script: []pawltest.ScriptedStep{turn(call("c1", "send")), turn(call("c2", "send")), finish}, Session: pawltest.PlainSession},
		{Name: "cancelled", Agent: agent(pay, send), Script: twoCalls, Session: pawltest.BatchSession, Cancel: true, WantStatus: pawl.StatusCancelled,
			WantEffects: []string{`send {"amount":5}`}},
	}
}

// enough ends the run once two tools have answered in one turn.
func enough(_ context.Context, _ *pawl.RunContext, results []pawl.ToolResult) (pawl.ToolUseDecision, error) {
	return pawl.ToolUseDecision{Final: len(results) == 2, Output: "enough"}, nil
}

func managed() []pawltest.Scenario {
	gatedTwice := []pawltest.ScriptedStep{turn(call("c1", "pay"), call("c2", "send")), turn(call("c3", "pay")), turn(says("done"))}
	effects := []string{`pay {"amount":5}`, `pay {"amount":5}`, `send {"amount":5}`}
	noID := slices.Clone(gatedTwice)
	noID[1].NoResponseID = true
	return []pawltest.Scenario{
		{Name: "conversation", Agent: agent(pay, send), Script: gatedTwice, WantEffects: effects,
			Options: func(o *pawl.RunOptions) { o.ConversationID = "conv_1" }},
		{Name: "previous response", Agent: agent(pay, send), Script: gatedTwice, WantEffects: effects,
			Options: func(o *pawl.RunOptions) { o.PreviousResponseID = "resp_earlier" }},
		{Name: "chain of its own", Agent: agent(pay, send), Script: gatedTwice, WantEffects: effects,
			Options: func(o *pawl.RunOptions) { o.AutoPreviousResponseID = true }},
		{Name: "a response without id", Agent: agent(pay, send), Script: noID, WantEffects: effects,
			Options: func(o *pawl.RunOptions) { o.AutoPreviousResponseID = true }},
	}
}

func classes() []pawltest.Scenario {
	unknown := tool{name: "send", unknown: pawl.UnknownWait, err: pawl.ErrOutcomeUnknown}
	told := tool{name: "send", unknown: pawl.UnknownTell}
	gatedPut := put
	gatedPut.gated = true
	return []pawltest.Scenario{
		{Name: "read-only", Agent: agent(lookUp), Script: payAndSay("look_up"), Session: pawltest.BatchSession, NoDoubt: true},
		{Name: "recovered", Agent: agent(tool{name: "send", recovers: true}), Script: payAndSay("send"), Session: pawltest.BatchSession, NoDoubt: true,
			WantEffects: []string{`send {"amount":5}`}},
		{Name: "result comes later", Agent: agent(tool{name: "send", pending: true}), Script: payAndSay("send"), Session: pawltest.PlainSession,
			WantEffects: []string{`send {"amount":5}`}},
		{Name: "tool asks again", Agent: agent(tool{name: "send", asks: true, gated: true}), Script: payAndSay("send"), Session: pawltest.BatchSession,
			WantEffects: []string{`send {"amount":5}`}},
		{Name: "approval expires", Agent: agent(tool{name: "send", gated: true, expires: time.Hour}), Script: payAndSay("send"), Session: pawltest.BatchSession,
			WantEffects: []string{}, Decide: tooLate},
		transactional(),
		{Name: "idempotent", Agent: agent(gatedPut), NoDoubt: true, Script: payAndSay("put"), Session: pawltest.PlainSession, WantEffects: []string{`put {"amount":5}`}},
		{Name: "at most once, told", Agent: agent(told), Script: payAndSay("send"), Session: pawltest.BatchSession, WantEffects: []string{`send {"amount":5}`}},
		{Name: "at most once, unknown", Agent: agent(unknown), Script: payAndSay("send"), Session: pawltest.BatchSession, WantEffects: []string{`send {"amount":5}`}},
		{Name: "one of each", Agent: agent(lookUp, put, send, tell), Session: pawltest.PlainSession,
			Script:      []pawltest.ScriptedStep{turn(call("c1", "look_up"), call("c2", "put"), call("c3", "send"), call("c4", "tell")), turn(says("done"))},
			WantEffects: []string{`look_up {"amount":5}`, `put {"amount":5}`, `send {"amount":5}`, `tell {"amount":5}`}},
	}
}

// tooLate lets an approval expire.
func tooLate([]pawl.Interruption) []pawl.Decision {
	time.Sleep(2 * time.Hour)
	return []pawl.Decision{}
}

// transactional is a call whose tool writes to a table beside the run.
func transactional() pawltest.Scenario {
	s := inStore(pawltest.Scenario{Name: "transactional", Session: pawltest.SessionInStore, NoDoubt: true, WantEffects: []string{`book {"amount":5}`},
		Agent: func(w *pawltest.World) *pawl.Agent {
			book := sqlstore.NewTxTool(sqlstore.TxFunc[payment, string]{Name: "book", Run: func(ctx context.Context, tx *sql.Tx, c *pawl.Call, _ payment) (string, error) {
				if _, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO bookings VALUES ('%s')`, c.Key)); err != nil {
					return "", err
				}
				return w.Do(ctx, c, "booked")
			}})
			return &pawl.Agent{Name: "Desk", Model: w.Model(), Tools: []pawl.Tool{book}}
		},
		Script:    payAndSay("book"),
		Committed: bookings,
	})
	s.Store = openBookings
	return s
}

// openBookings opens a store that has a table of ours.
func openBookings(dir string) (journal.Driver, error) {
	driver, err := openSQLite(dir)
	if err != nil {
		return nil, err
	}
	err = driver.(*sqlstore.Store).Update(context.Background(), func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS bookings (key TEXT)`)
		return err
	})
	return driver, err
}

// bookings returns the rows of the table.
func bookings(store journal.Driver) (keys []string, err error) {
	err = store.(*sqlstore.Store).View(context.Background(), func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT key FROM bookings`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var key string
			if err := rows.Scan(&key); err != nil {
				return err
			}
			keys = append(keys, key)
		}
		return rows.Err()
	})
	return keys, err
}

var tell = tool{name: "tell", unknown: pawl.UnknownTell}

// inStore keeps a scenario's run, and a session that belongs there, in SQLite.
func inStore(s pawltest.Scenario) pawltest.Scenario {
	s.Store = openSQLite
	s.StoreSession = func(store journal.Driver, id string) session.Session { return sessionOf(store, id) }
	return s
}
