package pawl

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// overdueGrace is how long a body may take to notice its deadline before the driver
// goes on without it.
const overdueGrace = 250 * time.Millisecond

// body is a call whose body runs beside the driver.
type body struct {
	of       effectRef
	notAfter int64
	tool     *Tool
	call     Call
	fc       item.FunctionCall
	fits     bool // the arguments are known to fit the tool's schema
	edited   string
	grace    time.Duration   // for guardrails
	ctx      context.Context // ends at notAfter
	cancel   context.CancelFunc
}

// startTool runs a tool's body: beside the driver, or in the store's transaction. Its
// intent is durable. The body is entered only while the lease holds, and its context ends at
// notAfter. An error is of the run store.
func (f *frame) startTool(e machine.Effect) error {
	info, _ := f.m.Call(e.ID)
	b, err := f.newBody(e.ID, e.Key, info)
	if err != nil {
		s := &journal.Settled{ID: e.ID, Outcome: journal.ToolFailed, Error: errorText(err)}
		if b == nil {
			s.Output, _ = answer(info.Item, f.goneText(info))
		} else {
			s.Output = item.FunctionOutput(info.CallID, toolFailed(err))
		}
		f.d.queue = append(f.d.queue, outcome{of: effectRef{e.Frame, e.ID}, body: s})
		return nil
	}
	b.notAfter = e.NotAfter
	if b.tool.effect == Transactional {
		return f.d.runTx(b)
	}
	b.ctx, b.cancel = context.WithDeadline(f.d.ctx, time.UnixMilli(e.NotAfter))
	f.d.bodies[b.of] = b
	if f.d.isOnly() {
		f.d.only = b
		return nil
	}
	select {
	case f.d.next <- b:
	default:
		go f.d.work(b)
	}
	return nil
}

// newBody is a call with its tool and what user code sees of it. Without the tool there is
// none.
func (f *frame) newBody(id journal.EffectID, key string, info machine.CallInfo) (*body, error) {
	t := f.tool(info.Spec.Name)
	if t == nil {
		return nil, toolChanged(info, "is gone")
	}
	b := &body{of: effectRef{f.m.Name(), id}, tool: t, edited: info.Edited, grace: f.d.r.grace()}
	b.call = Call{RunContext: f.runContext(), Tool: t.name, ID: info.CallID, Key: key, Attempt: id.A, ApprovedBy: info.By,
		Approvals: info.Approvals}
	var err error
	if b.fc, b.fits, err = f.functionCall(id, info.Item); err != nil {
		return b, err
	}
	b.call.Arguments = b.fc.Arguments
	if b.edited != "" {
		b.call.Arguments, b.fits = b.edited, true // seen to before the body is entered
	}
	return b, nil
}

// goneText is what the model is told of a call whose tool was removed meanwhile.
func (f *frame) goneText(info machine.CallInfo) string {
	fc := item.FunctionCall{Name: info.Spec.Name, CallID: info.CallID}
	text := f.errorText(ToolErrorNotFound, &plannedCall{fc: fc}, f.notFoundText(fc.Name, false))
	if info.Attempt > 1 { // the last one is this one
		text += " An earlier attempt of the call may have taken effect."
	}
	return text
}

// functionCall reads a call, or returns what the plan read of it in this drive and
// whether its arguments were seen to fit.
func (f *frame) functionCall(id journal.EffectID, it Item) (fc item.FunctionCall, fits bool, err error) {
	if f.read.n == id.N {
		i, ok := slices.BinarySearchFunc(f.read.calls, id.P, func(c plannedCall, p int) int { return c.plan.P - p })
		if ok {
			return f.read.calls[i].fc, f.read.calls[i].err == nil, nil
		}
	}
	fc, err = it.FunctionCall()
	fc.Arguments = argumentsOf(fc.Arguments)
	return fc, false, err
}

// work runs a body, and then those that are handed to it: a goroutine that has run one
// has the stack that the next one needs.
func (d *drive) work(b *body) {
	for {
		d.handIn(d.runBody(b))
		var ok bool
		if b, ok = <-d.next; !ok {
			return
		}
	}
}

// handIn hands a body's outcome to whoever drives, or posts it if nobody does any more.
func (d *drive) handIn(o outcome) {
	select {
	case d.outcomes <- o:
	default:
		d.deliver(o)
	}
	d.postLate()
}

func (d *drive) runBody(b *body) outcome {
	ended := false
	defer func() {
		if !ended { // the goroutine goes too
			d.deliver(outcome{of: b.of, body: b.unknown("the tool ended its goroutine")})
			d.postLate()
		}
	}()
	o := outcome{of: b.of}
	switch late := b.ctx.Err() != nil || time.Now().UnixMilli() >= min(b.notAfter, d.leaseEnd.Load()); {
	case late && d.again: // [S23.4]
		o.body = b.unknown("the worker that had the call was lost, and its time is over")
	case late:
		o.body = &journal.Settled{ID: b.of.id, Outcome: journal.NotExecuted}
	default:
		o.body = b.settled()
	}
	ended = true
	return o
}

// overdue is when the driver goes on without the body.
func (b *body) overdue() time.Time { return time.UnixMilli(b.notAfter).Add(overdueGrace) }

// unknown is the outcome of a body nobody heard the end of.
func (b *body) unknown(why string) *journal.Settled {
	return &journal.Settled{ID: b.of.id, Outcome: journal.Unknown, Error: why, Output: b.fc.Output(b.note() + machine.UnknownText(b.call.Key))}
}

// settled runs the body and says how it ended.
func (b *body) settled() *journal.Settled {
	note := b.note()
	if note != "" {
		if err := b.tool.schema.Validate(b.edited); err != nil {
			return b.failed(err, note+badArguments(err))
		}
	}
	out, err := b.enter(note)
	var ask *AskError
	switch {
	case err == nil:
		return b.checked(b.ctx, &journal.Settled{ID: b.of.id, Output: out})
	case errors.As(err, &ask):
		return &journal.Settled{ID: b.of.id, Outcome: journal.AsksAgain, Error: strings.ToValidUTF8(ask.Question, "\uFFFD")}
	case errors.Is(err, ErrPending):
		return &journal.Settled{ID: b.of.id, Outcome: journal.Pending, Error: pendingNote(err)}
	case b.leavesOpen(err):
		return b.unknown(errorText(err))
	}
	return b.checked(b.ctx, b.failed(err, note+b.tool.errorText(b.ctx, &b.call, err)))
}

// note tells the model that somebody changed the arguments.
func (b *body) note() string { return machine.EditedText(b.edited) }

// pendingNote is what a body said of a result that comes later.
func pendingNote(err error) string {
	text := errorText(err)
	if text == ErrPending.Error() {
		return ""
	}
	return strings.TrimSuffix(text, ": "+ErrPending.Error())
}

// failed is the outcome of a body that did not do what it was asked for; text is what
// the model reads.
func (b *body) failed(err error, text string) *journal.Settled {
	return &journal.Settled{ID: b.of.id, Outcome: journal.ToolFailed, Error: errorText(err), Output: b.fc.Output(text)}
}

// leavesOpen says that a body's error leaves open whether it took effect. What a
// transactional body did is rolled back, so it has to say so itself.
func (b *body) leavesOpen(err error) bool {
	if b.tool.effect == Transactional {
		return errors.Is(err, ErrOutcomeUnknown)
	}
	return isUnknown(err)
}

// enter enters the body and writes its result; a panic of either is an error.
func (b *body) enter(note string) (out Item, err error) {
	defer panicked("tool", b.tool.name, &err)
	result, err := b.tool.run(b.ctx, &b.call, b.fits)
	if err != nil {
		return Item{}, err
	}
	return outputItem(b.fc, result, note)
}

// toolFailed is what the model reads of an error of a body.
func toolFailed(err error) string { return "The tool failed: " + bare(err) }

func (t *Tool) errorText(ctx context.Context, c *Call, err error) (text string) {
	text = toolFailed(err)
	if t.agent != nil {
		text = agentFailed(err)
	}
	if t.onError == nil {
		return text
	}
	defer func() { recover() }()
	return t.onError(ctx, c, err)
}

// isUnknown says that a body's error leaves open whether it took effect: it was
// stopped, or the connection to the far side broke once there was one.
func isUnknown(err error) bool {
	for _, is := range []error{context.Canceled, context.DeadlineExceeded, ErrOutcomeUnknown, io.EOF, io.ErrUnexpectedEOF,
		net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, is) {
			return true
		}
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op != "dial"
}

// argumentsOf reads the empty text as the empty object.
func argumentsOf(args string) string {
	if strings.TrimSpace(args) == "" {
		return "{}"
	}
	return args
}
