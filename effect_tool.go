package pawl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// overdueGrace is how long a body may take to notice its deadline before the driver
// goes on without it.
const overdueGrace = 250 * time.Millisecond

// startTool runs a tool's body beside the driver. Its intent is durable. The body is
// entered only while the lease holds, and its context ends at notAfter.
func (d *drive) startTool(e machine.Effect) {
	info, _ := d.m.Call(e.ID)
	t := d.tool(info.Spec.Name)
	c := &Call{RunContext: d.runContext(), Tool: t.name, ID: info.CallID, Key: e.Key, Attempt: e.ID.A,
		Arguments: argumentsOf(info.Arguments), ApprovedBy: info.By}
	deadline := time.UnixMilli(e.NotAfter)
	ctx, cancel := context.WithDeadline(d.ctx, deadline)
	d.bodies[e.ID] = cancel
	late := d.unknown(e.ID, "the tool did not end at its deadline")
	overdue := time.AfterFunc(time.Until(deadline)+overdueGrace, func() { d.deliver(outcome{id: e.ID, body: late}) })
	o := outcome{id: e.ID, body: late} // of a body that ends its goroutine
	go func() {
		defer func() {
			overdue.Stop()
			d.deliver(o)
		}()
		if ctx.Err() != nil || time.Now().UnixMilli() >= min(e.NotAfter, d.leaseEnd.Load()) {
			o.body = &journal.Settled{ID: e.ID, Outcome: journal.NotExecuted}
			return
		}
		o.body = settled(ctx, t, c, info, e)
	}()
}

// settled runs the body and says how it ended.
func settled(ctx context.Context, t *Tool, c *Call, info machine.CallInfo, e machine.Effect) *journal.Settled {
	s := &journal.Settled{ID: e.ID, Outcome: journal.ToolFailed}
	fc, err := info.Item.FunctionCall()
	if err != nil {
		s.Error, s.Output = errorText(err), item.FunctionOutput(info.CallID, "The tool failed: "+errorText(err))
		return s
	}
	note := ""
	if info.Edited {
		note = "The reviewer changed the arguments to " + info.Arguments + ".\n"
		if err := t.schema.Validate(c.Arguments); err != nil {
			s.Error, s.Output = errorText(err), fc.Output(note+badArguments(err))
			return s
		}
	}
	out, err := t.call(ctx, c, fc, note)
	if err == nil {
		return &journal.Settled{ID: e.ID, Output: out}
	}
	s.Error = errorText(err)
	if isUnknown(err) {
		s.Outcome, s.Output = journal.Unknown, fc.Output(machine.UnknownText(e.Key))
		return s
	}
	s.Output = fc.Output(note + t.errorText(ctx, c, err))
	return s
}

// call enters the body and writes its result; a panic of either is an error.
func (t *Tool) call(ctx context.Context, c *Call, fc item.FunctionCall, note string) (out Item, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{In: fmt.Sprintf("tool %q", t.name), Value: v, Stack: string(debug.Stack())}
		}
	}()
	result, err := t.run(ctx, c)
	if err != nil {
		return Item{}, err
	}
	return outputItem(fc, result, note)
}

func (t *Tool) errorText(ctx context.Context, c *Call, err error) (text string) {
	text = "The tool failed: " + err.Error()
	if t.onError == nil {
		return text
	}
	defer func() { recover() }()
	return t.onError(ctx, c, err)
}

// isUnknown says that a body's error leaves open whether it took effect.
func isUnknown(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrOutcomeUnknown) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// unknown is the outcome of an attempt nobody heard the end of.
func (d *drive) unknown(id journal.EffectID, why string) *journal.Settled {
	info, _ := d.m.Call(id)
	fc, _ := info.Item.FunctionCall()
	return &journal.Settled{ID: id, Outcome: journal.Unknown, Error: why, Output: fc.Output(machine.UnknownText(d.m.KeyOf(id)))}
}

// argumentsOf reads the empty text as the empty object.
func argumentsOf(args string) string {
	if strings.TrimSpace(args) == "" {
		return "{}"
	}
	return args
}
