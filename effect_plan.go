package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// ruleTimeout bounds an approval rule; a slower one means that a person decides.
const ruleTimeout = 30 * time.Second

// plan reads a response: its calls, or what it means that there are none. Everything
// that can make it fail is looked at before any rule of the user's runs [M7].
func (f *frame) plan() (journal.Body, error) {
	n, items, man := f.m.Response()
	b := &journal.Planned{N: n}
	f.read.n = 0
	clear(f.read.enabled)
	calls, err := f.readCalls(b, items, man)
	if err != nil {
		return nil, err
	}
	f.read.n, f.read.calls = n, calls
	if len(calls) == 0 {
		if err := f.planFinal(b, items); err != nil {
			return nil, err
		}
		return b, nil
	}
	b.Calls = make([]journal.PlannedCall, len(calls))
	handedOver := false
	for i := range calls {
		if err := f.planCall(&calls[i], handedOver); err != nil {
			return nil, err
		}
		b.Calls[i] = calls[i].plan
		handedOver = handedOver || calls[i].handsOver()
	}
	return b, nil
}

// plannedCall is a call on its way into the plan.
type plannedCall struct {
	plan journal.PlannedCall
	item Item
	kind item.Type
	fc   item.FunctionCall // of a custom call: its id, name and input; of a hosted one its server as the namespace
	tool *Tool
	err  error // why the arguments cannot be used
}

// hosted says that the model's server asks whether it may call a tool of its own.
func (c *plannedCall) hosted() bool { return c.kind == item.TypeMCPApprovalRequest }

// reading is what the plan of response n read of its calls.
type reading struct {
	n       int
	calls   []plannedCall
	enabled map[*Tool]bool // of tools that were asked about
}

// readCalls finds the calls of a response and tells twins, replays and unknown tools.
func (f *frame) readCalls(b *journal.Planned, items []Item, man *journal.Manifest) ([]plannedCall, error) {
	calls := slices.Grow(f.read.calls[:0], len(items))
	heads := f.m.Heads()
	for p, it := range items {
		c := plannedCall{plan: journal.PlannedCall{P: p}, item: it, kind: heads[p].Type}
		if c.kind != item.TypeFunctionCall && !it.NeedsOutput() {
			continue
		}
		if err := f.readCall(&c); err != nil {
			return nil, err
		}
		if err := f.recognise(calls, &c); err != nil {
			return nil, err
		}
		if err := f.disable(&c); err != nil {
			return nil, err
		}
		c.plan.Tool = f.place(b, man, &c)
		if c.plan.Tool < 0 && !c.plan.Twin && c.plan.Output.IsZero() {
			if err := f.notFound(&c); err != nil {
				return nil, err
			}
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// readCall reads one call. A tool that is not a function is none of the agent's.
func (f *frame) readCall(c *plannedCall) (err error) {
	switch c.kind {
	case item.TypeFunctionCall:
		if c.fc, err = c.item.FunctionCall(); err != nil {
			return err
		}
		c.fc.Arguments = argumentsOf(c.fc.Arguments)
		c.tool = f.tool(c.fc.Name)
	case item.TypeCustomToolCall:
		cc, err := c.item.CustomToolCall()
		if err != nil {
			return err
		}
		c.fc = item.FunctionCall{CallID: cc.CallID, Name: cc.Name, Arguments: cc.Input}
	case item.TypeMCPApprovalRequest:
		r, err := c.item.ApprovalRequest()
		if err != nil {
			return err
		}
		c.fc = item.FunctionCall{CallID: r.ID, Name: r.Name, Namespace: r.ServerLabel, Arguments: argumentsOf(r.Arguments)}
	default:
		return &ToolNotFoundError{Tool: strings.TrimSuffix(string(c.kind), "_call"), CallID: c.item.Head().CallID, Tools: f.toolNames()}
	}
	c.plan.Digest, _, c.err = item.DigestArguments(c.fc.Arguments)
	return nil
}

// disable takes the tool from a call that would run it, if it is disabled now. Each tool is
// asked about once.
func (f *frame) disable(c *plannedCall) error {
	if c.tool == nil || c.tool.enabled == nil || !c.plan.Output.IsZero() {
		return nil
	}
	on, asked := f.read.enabled[c.tool]
	if !asked {
		var err error
		if on, err = c.tool.isEnabled(f.d.ctx, f.turnContext(f.m.Turn())); err != nil {
			return err
		}
		if f.read.enabled == nil {
			f.read.enabled = make(map[*Tool]bool)
		}
		f.read.enabled[c.tool] = on
	}
	if !on {
		c.tool = nil
	}
	return nil
}

// notFound answers a call without a tool, or is the error that fails the run.
func (f *frame) notFound(c *plannedCall) (err error) {
	disabled := c.kind == item.TypeFunctionCall && f.tool(c.fc.Name) != nil
	if f.opts.ToolNotFound == FailRun {
		return &ToolNotFoundError{Tool: c.fc.Name, CallID: c.fc.CallID, Disabled: disabled, Tools: f.toolNames()}
	}
	c.plan.Output, err = answer(c.item, f.errorText(ToolErrorNotFound, c, f.notFoundText(c.fc.Name, disabled)))
	return err
}

// place returns the place of a call's tool among those of the manifest and of the plan, where
// it is put if it is not what the turn offered.
func (f *frame) place(b *journal.Planned, man *journal.Manifest, c *plannedCall) int {
	var spec journal.ToolSpec
	switch {
	case c.hosted():
		spec = hostedSpec(&c.fc)
	case c.tool != nil:
		spec = f.spec(c.tool)
	default:
		return -1
	}
	if i := slices.Index(man.Tools, spec); i >= 0 {
		return i
	}
	i := slices.Index(b.Tools, spec)
	if i < 0 {
		i = len(b.Tools)
		b.Tools = append(b.Tools, spec)
	}
	return len(man.Tools) + i
}

// recognise marks a call that repeats one of the same response, or one that the run
// has a record of. The same id with other arguments or another tool is refused.
func (f *frame) recognise(before []plannedCall, c *plannedCall) error {
	for i := range before {
		if before[i].fc.CallID != c.fc.CallID {
			continue
		}
		if before[i].plan.Digest != c.plan.Digest || before[i].fc.Name != c.fc.Name || before[i].kind != c.kind ||
			c.hosted() && before[i].fc.Namespace != c.fc.Namespace {
			return &CallIDError{CallID: c.fc.CallID}
		}
		c.plan.Twin = true
		return nil
	}
	out, ok, err := f.m.Recorded(c.fc.CallID, c.fc.Name, c.plan.Digest)
	if err != nil {
		return &CallIDError{CallID: c.fc.CallID}
	}
	if ok {
		c.plan.Output = out
	}
	return nil
}

func (f *frame) notFoundText(tool string, disabled bool) string {
	what := "not found"
	if disabled {
		what = "is configured, but disabled"
	}
	return fmt.Sprintf("Tool %q %s. Available tools: %s.", tool, what, strings.Join(f.toolNames(), ", "))
}

// toolNames are the names of the tools that can be called: those that were offered, without
// those that turned out to be disabled.
func (f *frame) toolNames() []string {
	names := make([]string, 0, len(f.agent.Tools))
	man, _ := f.m.Manifest()
	for t := range f.callables() {
		on, asked := f.read.enabled[t]
		if t.enabled == nil || asked && on || !asked && offers(man, t) {
			names = append(names, t.name)
		}
	}
	return names
}

// errorText is the text for a call that is not run.
func (f *frame) errorText(kind ToolErrorKind, c *plannedCall, text string) string {
	if f.opts.ToolErrors == nil {
		return text
	}
	if t := f.opts.ToolErrors(ToolError{Kind: kind, Tool: c.fc.Name, CallID: c.fc.CallID, Default: text}); t != "" {
		return strings.ToValidUTF8(t, "\uFFFD")
	}
	return text
}

// handsOver says that the call will hand the conversation over.
func (c *plannedCall) handsOver() bool {
	return c.tool != nil && c.tool.handoff != nil && !c.plan.Twin && c.plan.Output.IsZero()
}

// planCall decodes the arguments and asks the approval rule. Unreadable arguments are
// answered with an error, or shown to a person where a rule would have asked. handedOver
// says that a call before this one hands the conversation over.
func (f *frame) planCall(c *plannedCall, handedOver bool) (err error) {
	if c.plan.Twin || !c.plan.Output.IsZero() {
		return nil
	}
	if c.hosted() {
		return f.planHosted(c)
	}
	if h := c.tool.handoff; h != nil {
		if handedOver {
			c.plan.Output, err = answer(c.item, f.errorText(ToolErrorIgnored, c, ignoredText))
			return err
		}
		if !h.takes {
			return nil
		}
	}
	if c.err == nil {
		c.err = c.tool.schema.Validate(c.fc.Arguments)
	}
	if c.err != nil {
		c.plan.Unreadable = true
		if c.plan.Output, err = answer(c.item, f.errorText(ToolErrorArguments, c, badArguments(c.err))); err != nil {
			return err
		}
	}
	if !c.tool.gated {
		return nil
	}
	c.plan.Gate = Ask
	if c.err == nil {
		if c.plan.Gate = f.askRule(c); f.d.ctx.Err() != nil {
			// The driver stops: that is no answer of the rule's. It is asked again.
			return f.d.cause()
		}
		if err := f.guardPlanned(c); err != nil {
			return err
		}
	}
	if f.opts.ToolErrors != nil { // of an allowed call too: a sticky rejection may cover it [M9.9]
		c.plan.Reject = f.errorText(ToolErrorRejected, c, machine.RejectedText)
	}
	return nil
}

func badArguments(err error) string {
	return "The arguments cannot be used: " + strings.TrimPrefix(errorText(err), "pawl: ")
}

// askRule asks the approval rule. A rule that gives no answer means that a person decides.
func (f *frame) askRule(c *plannedCall) Gate {
	call := &Call{RunContext: f.runContext(), Tool: c.tool.name, ID: c.fc.CallID, Arguments: c.fc.Arguments}
	gate, ok := asked(f.d.ctx, func(ctx context.Context) (Gate, error) { return c.tool.approve(ctx, call) })
	if !ok || gate != Allow && gate != Deny {
		return Ask
	}
	return gate
}

// asked asks a function of the user's that may decide instead of a person. One that errs,
// panics or takes too long has no say.
func asked[T any](ctx context.Context, rule func(context.Context) (T, error)) (said T, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, ruleTimeout)
	defer cancel()
	type answer struct {
		said T
		ok   bool
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			recover()
			answers <- a
		}()
		if s, err := rule(ctx); err == nil {
			a = answer{s, true}
		}
	}()
	select {
	case a := <-answers:
		return a.said, a.ok
	case <-ctx.Done():
		return said, false
	}
}

// planFinal says what a response without calls means. An error that has a handler is what it
// means [M20.1].
func (f *frame) planFinal(b *journal.Planned, items []Item) error {
	final, at, err := f.final(items)
	refused, isRefusal := errors.AsType[*RefusalError](err)
	switch {
	case err == nil:
		b.Final, b.FinalAt = final, at
	case isRefusal && f.handles(journal.HandlesRefusal):
		b.Final, b.FinalAt, b.Refusal = journal.FinalRefusal, at, strings.ToValidUTF8(refused.Refusal, "\uFFFD")
	case final == journal.FinalInvalid && f.handles(journal.HandlesInvalid):
		b.Final, b.FinalAt = final, at
	case errors.Is(err, errNoOutput):
	default:
		return err
	}
	return nil
}

// errNoOutput says that the model gave no structured output yet: it is asked again.
var errNoOutput = errors.New("pawl: there is none")

// final says how a response without calls ends the run, and in which of its items. An error is
// a *RefusalError or an *OutputError.
func (f *frame) final(items []Item) (final journal.Final, at int, err error) {
	at, hosted := -1, false
	for i, it := range items {
		switch t := it.Type(); t {
		case item.TypeMessage:
			at = i
		case item.TypeReasoning:
		default:
			hosted = true
		}
	}
	if at < 0 {
		switch {
		case hosted:
			return journal.FinalNone, 0, nil
		case f.agent.Output.isText():
			return journal.FinalEmpty, 0, nil
		}
		return journal.FinalInvalid, at, &OutputError{Err: errNoOutput}
	}
	msg, err := items[at].Message()
	if err != nil {
		return journal.FinalNone, 0, err
	}
	if r := msg.Refusal(); r != "" {
		return journal.FinalRefusal, at, &RefusalError{Refusal: r}
	}
	text := msg.Text()
	if !f.agent.Output.isText() {
		if strings.TrimSpace(text) == "" {
			return journal.FinalInvalid, at, &OutputError{Err: errNoOutput}
		}
		if err := f.agent.Output.schema.Validate(text); err != nil {
			return journal.FinalInvalid, at, &OutputError{Text: text, Err: err}
		}
	}
	return journal.FinalMessage, at, nil
}
