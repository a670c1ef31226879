package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// guard is a guardrail of any stage with what it is asked about.
type guard struct {
	name  string
	check func(context.Context) (ToolVerdict, error)
}

// answer of a guardrail.
type guardAnswer struct {
	check   journal.Check
	message string
	err     error
}

// ruling is what the guardrails of a stage said, in the order in which they are declared.
type ruling struct {
	checks  []journal.Check
	tripped bool
	rejects bool
	message string // of the first that rejects
}

// errGoexit is the error of user code that ended its goroutine.
var errGoexit = errors.New("it ended its goroutine")

// errDeaf is the error of a guardrail that did not return when its context had ended.
var errDeaf = errors.New("it did not return when its context ended")

// askGuards asks guardrails, all at once. The first that trips ends the others' context, and
// those that answered all the same count. A trip is one whatever became of the others; without
// one, an error means that there is no verdict.
func askGuards(ctx context.Context, grace time.Duration, stage GuardrailStage, guards []guard) (r ruling, err error) {
	answers := answersOf(ctx, grace, guards)
	for i := range answers {
		a := &answers[i]
		switch {
		case a.err == nil:
			r.checks = append(r.checks, a.check)
		case err == nil:
			err = &GuardrailError{Stage: stage, Guardrail: guards[i].name, Err: a.err}
		}
		if a.check.Rejected && !r.rejects {
			r.rejects, r.message = true, a.message
		}
		r.tripped = r.tripped || a.check.Tripped
	}
	if r.tripped {
		return r, nil
	}
	return r, err
}

// answersOf returns the answers of guardrails. When their context ends they are awaited for a
// grace; what one that does not return says later nobody hears.
func answersOf(ctx context.Context, grace time.Duration, guards []guard) []guardAnswer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type saying struct {
		of int
		a  guardAnswer
	}
	said := make(chan saying, len(guards))
	answers := make([]guardAnswer, len(guards))
	for i := range guards {
		answers[i].err = errDeaf
		go func() {
			s := saying{i, guardAnswer{err: errGoexit}}
			defer func() { said <- s }()
			s.a = guards[i].ask(ctx)
		}()
	}
	ended := ctx.Done()
	var patience <-chan time.Time
	for left := len(guards); left > 0; {
		select {
		case s := <-said:
			left--
			if answers[s.of] = s.a; s.a.check.Tripped {
				cancel()
			}
		case <-ended:
			ended, patience = nil, time.After(grace)
		case <-patience:
			left = 0
		}
	}
	return answers
}

// ask asks one guardrail. A panic is an error.
func (g *guard) ask(ctx context.Context) (a guardAnswer) {
	defer func() {
		if v := recover(); v != nil {
			a = guardAnswer{err: &PanicError{In: fmt.Sprintf("guardrail %q", g.name), Value: v, Stack: string(debug.Stack())}}
		}
	}()
	v, err := g.check(ctx)
	if err != nil {
		return guardAnswer{err: err}
	}
	a = guardAnswer{check: journal.Check{Name: g.name, Tripped: v.tripped, Rejected: v.rejects}, message: v.message}
	if v.info != nil {
		info, err := json.Marshal(v.info)
		if err != nil {
			return guardAnswer{err: fmt.Errorf("pawl: its info cannot be written as JSON: %w", err)}
		}
		a.check.Info = strings.ToValidUTF8(string(info), "\uFFFD") // a json.RawMessage is written as it is
	}
	return a
}

// startGuards asks guardrails beside the driver. What they are asked about is read before.
func (f *frame) startGuards(e machine.Effect) {
	stage, guards, reject := f.guards(e.ID)
	f.d.goBeside(effectRef{e.Frame, e.ID}, func(ctx context.Context) (journal.Body, error) {
		r, err := askGuards(ctx, f.d.r.grace(), stage, guards)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, errWoken
		case err != nil:
			return nil, err
		}
		b := &journal.Checked{ID: e.ID, Checks: r.checks}
		if r.rejects && !r.tripped {
			if b.Output, err = reject(r.message); err != nil {
				return nil, err
			}
		}
		return b, nil
	})
}

// guards returns whom an effect asks; reject makes the output of a call that is rejected.
func (f *frame) guards(id journal.EffectID) (stage GuardrailStage, list []guard, reject func(string) (Item, error)) {
	switch id.Kind {
	case journal.EffectGuard:
		return StageInput, f.inputGuards(id), nil
	case journal.EffectOutput:
		return StageOutput, f.outputGuards(), nil
	}
	call := callOf(id)
	info, _ := f.m.Call(call)
	reject = func(text string) (Item, error) { return answer(info.Item, machine.EditedText(info.Edited)+text) }
	t := f.tool(info.Spec.Name)
	if t == nil { // the call is answered with that
		return StageToolInput, nil, reject
	}
	c := Call{RunContext: f.runContext(), Tool: t.name, ID: info.CallID, Key: f.m.KeyOf(call), Arguments: argumentsOf(f.m.Arguments(call)),
		ApprovedBy: info.By, Approvals: info.Approvals}
	return StageToolInput, t.inputGuards(c), reject
}

// inputGuards are those on the first input, before the turns or beside them, or on pending
// input, which nothing goes on beside.
func (f *frame) inputGuards(id journal.EffectID) (list []guard) {
	in := InputCheck{RunContext: f.runContext()}
	history, input := f.m.InputEnd()
	if id.N == 0 {
		in.History, in.Input = itemsOf(f.m, 0, history), itemsOf(f.m, history, input)
	} else {
		in.History, in.Input = itemsOf(f.m, 0, f.m.Settled()), f.m.Pending()[0].Items
	}
	for _, guards := range [][]InputGuardrail{f.agent.InputGuardrails, f.opts.InputGuardrails} {
		for _, g := range guards {
			if id.N > 0 || g.Blocking == (id.P == 0) {
				list = append(list, guard{g.Name, func(ctx context.Context) (ToolVerdict, error) {
					in := in
					in.Input, in.History = slices.Clone(in.Input), slices.Clone(in.History)
					v, err := g.Check(ctx, &in)
					return ToolVerdict{tripped: v.Tripped, info: v.Info}, err
				}})
			}
		}
	}
	return list
}

// outputGuards are those on the final output.
func (f *frame) outputGuards() (list []guard) {
	out := OutputCheck{RunContext: f.runContext(), Output: outputText(f.m, f.m.Candidate())}
	for _, guards := range [][]OutputGuardrail{f.agent.OutputGuardrails, f.opts.OutputGuardrails} {
		for _, g := range guards {
			list = append(list, guard{g.Name, func(ctx context.Context) (ToolVerdict, error) {
				out := out
				v, err := g.Check(ctx, &out)
				return ToolVerdict{tripped: v.Tripped, info: v.Info}, err
			}})
		}
	}
	return list
}

// inputGuards are those of a tool on a call.
func (t *Tool) inputGuards(c Call) []guard {
	list := make([]guard, 0, len(t.guardsIn))
	for _, g := range t.guardsIn {
		list = append(list, guard{g.Name, func(ctx context.Context) (ToolVerdict, error) { return g.Check(ctx, &ToolInputCheck{c}) }})
	}
	return list
}

// guardsOf says which guardrails a run has on its input.
func guardsOf(a *Agent, opts *RunOptions) journal.Guards {
	blocking, parallel := false, false
	for _, guards := range [][]InputGuardrail{a.InputGuardrails, opts.InputGuardrails} {
		for _, g := range guards {
			blocking, parallel = blocking || g.Blocking, parallel || !g.Blocking
		}
	}
	switch {
	case blocking && parallel:
		return journal.GuardsBoth
	case blocking:
		return journal.GuardsBlocking
	case parallel:
		return journal.GuardsParallel
	}
	return journal.GuardsNone
}

// guardPlanned asks the guardrails on a call that somebody would be asked to approve. What
// they reject nobody is asked about.
func (f *frame) guardPlanned(c *plannedCall) error {
	if !f.opts.GuardBeforeApproval || c.plan.Gate != Ask || len(c.tool.guardsIn) == 0 {
		return nil
	}
	ctx := f.d.busy()
	defer f.d.free()
	if len(f.d.wake) > 0 {
		return errWoken
	}
	n, _, _ := f.m.Response()
	call := Call{RunContext: f.runContext(), Tool: c.tool.name, ID: c.fc.CallID, Arguments: c.fc.Arguments,
		Key: f.m.KeyOf(journal.EffectID{Kind: journal.EffectTool, N: n, P: c.plan.P})}
	r, err := askGuards(ctx, f.d.r.grace(), StageToolInput, c.tool.inputGuards(call))
	switch {
	case err != nil && ctx.Err() != nil:
		return errWoken
	case err != nil:
		return err
	}
	c.plan.Checks = r.checks
	if r.rejects && !r.tripped {
		c.plan.Gate = Allow
		c.plan.Output, err = answer(c.item, r.message)
	}
	return err
}

// withheldError is what a ledger has in place of an error that must not be read.
const withheldError = "withheld by a guardrail"

// noVerdictText is what the model reads of an output about which a guardrail said nothing.
const noVerdictText = "The output of this tool call was withheld: a guardrail on it failed."

// guardOutput asks the guardrails on the output of a call: only what they let pass is recorded.
func (b *body) guardOutput(ctx context.Context, s *journal.Settled) error {
	if len(b.tool.guardsOut) == 0 {
		return nil
	}
	out := ToolOutputCheck{Call: b.call, Output: textOf(s.Output), Item: s.Output}
	list := make([]guard, 0, len(b.tool.guardsOut))
	for _, g := range b.tool.guardsOut {
		list = append(list, guard{g.Name, func(ctx context.Context) (ToolVerdict, error) {
			out := out
			return g.Check(ctx, &out)
		}})
	}
	r, err := askGuards(ctx, b.grace, StageToolOutput, list)
	if err != nil {
		return err
	}
	s.Checks = r.checks
	switch {
	case r.tripped:
		s.Output = b.fc.Output(b.note() + machine.WithheldText)
	case r.rejects:
		s.Output = b.fc.Output(b.note() + r.message)
	default:
		return nil
	}
	if s.Error != "" {
		s.Error = withheldError
	}
	return nil
}

// checked is the outcome of a body that has run, after its guardrails: if they give no verdict
// the output is withheld, because the body does not run again for that. They have the body's
// time, also if the driver stops; what a transactional body did can still be undone.
func (b *body) checked(ctx context.Context, s *journal.Settled) *journal.Settled {
	if len(b.tool.guardsOut) == 0 {
		return s
	}
	text := noVerdictText
	if b.tool.effect == Transactional {
		text += " " + nothingChanged
	} else {
		var cancel context.CancelFunc
		deadline, _ := ctx.Deadline()
		ctx, cancel = context.WithDeadline(context.WithoutCancel(ctx), deadline)
		defer cancel()
	}
	if err := b.guardOutput(ctx, s); err != nil {
		return b.failed(err, b.note()+text)
	}
	return s
}

// goBeside carries out an effect beside the driver, which goes on meanwhile. Its context ends
// when its frame is closed.
func (d *drive) goBeside(of effectRef, run func(context.Context) (journal.Body, error)) {
	ctx, cancel := context.WithCancel(d.ctx)
	if d.requests == nil {
		d.requests, d.relayed = make(map[effectRef]context.CancelFunc), make(chan relayed)
	}
	d.requests[of] = cancel
	d.beside++
	go func() {
		o := outcome{of: of, raw: true, err: errGoexit}
		defer func() {
			if v := recover(); v != nil {
				o.body, o.err = nil, &PanicError{In: of.String(), Value: v, Stack: string(debug.Stack())}
			}
			d.deliver(o)
		}()
		o.body, o.err = run(ctx)
	}()
}
