package refmodel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/internal/refmodel"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// world is what outlives the processes that drive a run.
type world struct {
	set   setting
	store *journal.Memory
	model *pawltest.ScriptedModel
	sess  *session.Memory

	mu     sync.Mutex
	done   map[string]*deed // by call id
	fault  error            // something that must not happen
	drives *drive           // the newest
	state  *pawl.RunState   // of the newest drive that failed, nil if its process died
	struck map[kind]int
}

// deed is what a tool did for a call.
type deed struct {
	tool, key string
	n, times  int
}

func newWorld(s setting) *world {
	w := &world{set: s, store: journal.NewMemory(), model: &pawltest.ScriptedModel{ServerState: true}, sess: session.NewMemory("s"),
		done: map[string]*deed{}, struck: map[kind]int{}}
	for _, text := range s.Run.Before {
		w.sess.Append(context.Background(), []item.Item{item.UserText(text)})
	}
	step := pawltest.ScriptedStep{Derive: w.answer}
	for range 100 {
		w.model.Enqueue(step)
	}
	return w
}

// drive is one process that drives the run, and what goes wrong in it.
type drive struct {
	journal.Driver
	w       *world
	trouble trouble
	cancel  context.CancelFunc
	points  atomic.Int64
	appends atomic.Int64
	models  atomic.Int64
	writes  atomic.Int64 // to the session
	dead    atomic.Bool
	full    atomic.Bool
	others  sync.WaitGroup
}

var errDown = errors.New("it is down")

// point is a moment at which the trouble may begin.
func (d *drive) point() {
	if int(d.points.Add(1)) != d.trouble.At {
		return
	}
	switch d.trouble.Kind {
	case stops:
		d.cancel()
	case dies:
		d.dead.Store(true)
	case full:
		d.full.Store(true)
	case rival:
		d.others.Go(func() {
			r := pawl.Runner{Store: d.Driver}
			r.Resume(context.Background(), d.w.agent(d), pawl.RunID("r"), &pawl.RunOptions{Session: d.w.session(d), ToolNotFound: d.w.notFound(), ToolErrors: toolErrors})
		})
	default:
		return
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	d.w.struck[d.trouble.Kind]++
}

// hit says that the nth of something is one that goes wrong.
func (d *drive) hit(k kind, n int64) bool {
	if d.trouble.Kind != k || int(n) < d.trouble.At || int(n) >= d.trouble.At+d.trouble.Many {
		return false
	}
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	d.w.struck[k]++
	return true
}

func (d *drive) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	store := func() error { return d.Driver.Append(ctx, run, epoch, after, recs, with...) }
	d.point()
	n := d.appends.Add(1)
	switch {
	case d.dead.Load(), d.full.Load(), d.hit(lostAbsent, n):
		return errDown
	case d.hit(lostStored, n):
		store()
		return errDown
	case d.hit(lostLater, n):
		time.AfterFunc(time.Duration(d.trouble.At)*20*time.Millisecond, func() { store() })
		return errDown
	}
	err := store()
	d.point()
	if d.dead.Load() {
		return errDown
	}
	return err
}

func (d *drive) Post(ctx context.Context, run string, e journal.Entry) error {
	if d.dead.Load() || d.full.Load() {
		return errDown
	}
	return d.Driver.Post(ctx, run, e)
}

func (d *drive) Renew(ctx context.Context, run string, epoch uint64, ttl time.Duration) error {
	if d.dead.Load() {
		return errDown
	}
	return d.Driver.Renew(ctx, run, epoch, ttl)
}

func (d *drive) Release(ctx context.Context, run string, epoch uint64, rest journal.Rest) error {
	if d.dead.Load() {
		return errDown
	}
	return d.Driver.Release(ctx, run, epoch, rest)
}

// plainSession is the session as a user might write one, without a memory of batches.
type plainSession struct{ d *drive }

func (s plainSession) ID() string { return "s" }

func (s plainSession) Items(ctx context.Context, limit int) ([]item.Item, error) {
	return s.d.w.sess.Items(ctx, limit)
}

func (s plainSession) Append(ctx context.Context, items []item.Item) error {
	return s.d.write(func() error { return s.d.w.sess.Append(ctx, items) })
}

func (s plainSession) Pop(ctx context.Context) (item.Item, bool, error) { return s.d.w.sess.Pop(ctx) }

func (s plainSession) Clear(ctx context.Context) error { return s.d.w.sess.Clear(ctx) }

// rememberingSession remembers batches.
type rememberingSession struct{ plainSession }

func (s rememberingSession) AppendBatch(ctx context.Context, id string, items []item.Item) error {
	return s.d.write(func() error { return s.d.w.sess.AppendBatch(ctx, id, items) })
}

// write is an append to the session, which may go wrong.
func (d *drive) write(store func() error) error {
	n := d.writes.Add(1)
	switch {
	case d.dead.Load(), d.hit(sessionDown, n):
		return errDown
	case d.hit(sessionDeaf, n):
		store()
		return errDown
	}
	return store()
}

func (w *world) session(d *drive) session.Session {
	switch w.set.Place {
	case plain:
		return plainSession{d}
	case remembering:
		return rememberingSession{plainSession{d}}
	}
	return nil
}

// answer is what the model says. Which turn it is, the outputs it reads tell.
func (w *world) answer(call pawltest.ScriptedCall) pawltest.ScriptedStep {
	d := w.drives
	d.point()
	step := pawltest.ScriptedItems(w.turn(turnOf(call))...)
	n := d.models.Add(1)
	switch {
	case d.hit(modelRefuses, n):
		return pawltest.ScriptedStep{Err: &model.Error{Delivery: model.DeliveryRefused, Err: errDown}}
	case d.hit(modelDeaf, n):
		step.Fault = &pawltest.ScriptedFault{Point: pawltest.FaultAfter, Cut: true}
	}
	return step
}

// turnOf returns the turn a call asks for, from 1.
func turnOf(call pawltest.ScriptedCall) int {
	turn := 0
	for _, it := range call.Input {
		var t, c int
		if n, _ := fmt.Sscanf(it.Head().CallID, "t%dc%d", &t, &c); n == 2 {
			turn = max(turn, t)
		}
	}
	return turn + 1
}

// turn returns the model's items of a turn.
func (w *world) turn(n int) (items []item.Item) {
	if n > len(w.set.Run.Turns) {
		w.violate("the model is asked for turn %d", n)
		return nil
	}
	t := w.set.Run.Turns[n-1]
	if t.Text != "" {
		items = append(items, item.MessageItem("", t.Text))
	}
	for _, c := range t.Calls {
		items = append(items, item.FunctionCallItem("", c.ID, c.Tool, c.Arguments()))
	}
	return items
}

func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == nil {
		w.fault = fmt.Errorf(format, args...)
	}
}

type arguments struct {
	N int `json:"n"`
}

// agent makes the agent of a process.
func (w *world) agent(d *drive) *pawl.Agent {
	a := &pawl.Agent{Name: "a", Model: w.model}
	for _, t := range w.set.Run.Tools {
		f := pawl.Func[arguments, string]{Name: t.Name, Effect: pawl.Idempotent,
			Run: func(ctx context.Context, c *pawl.Call, in arguments) (string, error) { return d.body(t, c, in.N) }}
		if t.Once {
			f.Effect = pawl.AtMostOnce
		}
		if gate, ok := map[refmodel.Gate]pawl.Gate{refmodel.Allows: pawl.Allow, refmodel.Asks: pawl.Ask, refmodel.Denies: pawl.Deny}[t.Gate]; ok {
			f.Approve = func(context.Context, *pawl.Call, arguments) (pawl.Gate, error) { return gate, nil }
		}
		a.Tools = append(a.Tools, pawl.NewTool(f))
	}
	switch w.set.Run.After {
	case refmodel.AfterFirst:
		a.ToolUse = pawl.StopOnFirstTool()
	case refmodel.AfterNames:
		a.ToolUse = pawl.StopAtTools(w.set.Run.StopAt...)
	case refmodel.AfterTwo:
		a.ToolUse = pawl.DecideToolUse(func(_ context.Context, _ *pawl.RunContext, results []pawl.ToolResult) (pawl.ToolUseDecision, error) {
			var texts []string
			for _, r := range results {
				texts = append(texts, r.Output)
			}
			return pawl.ToolUseDecision{Final: len(results) >= 2, Output: refmodel.Joined(texts)}, nil
		})
	}
	return a
}

// body is the body of every tool.
func (d *drive) body(t refmodel.Tool, c *pawl.Call, n int) (string, error) {
	d.point()
	time.Sleep(time.Duration(n) * 50 * time.Millisecond)
	if d.dead.Load() {
		return "", errDown // the process is gone, and nobody hears of it
	}
	d.w.mu.Lock()
	e := d.w.done[c.ID]
	if e == nil {
		e = &deed{tool: t.Name, key: c.Key, n: n}
		d.w.done[c.ID] = e
	}
	e.times++
	same := *e
	d.w.mu.Unlock()
	if same.tool != t.Name || same.key != c.Key || same.n != n {
		d.w.violate("call %s ran as %v, and then as %s %d under key %s", c.ID, same, t.Name, n, c.Key)
	}
	d.point()
	if t.Fails {
		return "", errors.New(refmodel.FailText(c.ID))
	}
	return refmodel.DidText(c.ID), nil
}

func (w *world) notFound() pawl.ToolNotFound {
	if w.set.Run.TellUnknown {
		return pawl.TellModel
	}
	return pawl.FailRun
}

func toolErrors(e pawl.ToolError) string {
	switch e.Kind {
	case pawl.ToolErrorNotFound:
		return refmodel.NotFoundText
	case pawl.ToolErrorRejected:
		return refmodel.RejectedText
	}
	return refmodel.BadText
}

// told writes an item as the reference does.
func told(it item.Item) string {
	if m, err := it.Message(); err == nil {
		if m.Role == "user" {
			return "user " + m.Text()
		}
		return "says " + m.Text()
	}
	if fc, err := it.FunctionCall(); err == nil {
		return strings.Join([]string{"call", fc.CallID, fc.Name, fc.Arguments}, " ")
	}
	if out, err := it.FunctionCallOutput(); err == nil {
		return "output " + it.Head().CallID + " " + out.Text
	}
	return it.Raw()
}

func allTold(items []item.Item) (list []string) {
	for _, it := range items {
		list = append(list, told(it))
	}
	return list
}
