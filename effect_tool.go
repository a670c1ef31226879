package pawl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
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
	go func() {
		defer overdue.Stop()
		if ctx.Err() != nil || time.Now().UnixMilli() >= min(e.NotAfter, d.leaseEnd.Load()) {
			d.deliver(outcome{id: e.ID, body: &journal.Settled{ID: e.ID, Outcome: journal.NotExecuted}})
			return
		}
		d.deliver(outcome{id: e.ID, body: settled(ctx, t, c, info, e)})
	}()
}

// settled runs the body and says how it ended.
func settled(ctx context.Context, t *Tool, c *Call, info machine.CallInfo, e machine.Effect) *journal.Settled {
	s := &journal.Settled{ID: e.ID}
	fc, err := info.Item.FunctionCall()
	if err == nil {
		note := ""
		if info.Edited {
			note = "The reviewer changed the arguments to " + info.Arguments + ".\n"
		}
		var out any
		if out, err = t.call(ctx, c); err == nil {
			if s.Output, err = outputItem(fc, out, note); err == nil {
				return s
			}
		}
	}
	s.Error = errorText(err)
	if isUnknown(err) {
		s.Outcome, s.Output = journal.Unknown, fc.Output(machine.UnknownText(e.Key))
		return s
	}
	s.Outcome, s.Output = journal.ToolFailed, fc.Output(t.errorText(ctx, c, err))
	return s
}

// call enters the body; a panic is an error.
func (t *Tool) call(ctx context.Context, c *Call) (out any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{In: fmt.Sprintf("tool %q", t.name), Value: v, Stack: string(debug.Stack())}
		}
	}()
	return t.run(ctx, c)
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
