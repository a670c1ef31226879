package pawl

import (
	"context"
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
func (d *drive) plan() (journal.Body, error) {
	n, items, man := d.m.Response()
	b := &journal.Planned{N: n}
	calls, err := d.readCalls(items, man)
	if err != nil {
		return nil, err
	}
	if len(calls) == 0 {
		if err := d.planFinal(b, items); err != nil {
			return nil, err
		}
		return b, nil
	}
	b.Calls = make([]journal.PlannedCall, len(calls))
	for i := range calls {
		d.planCall(&calls[i])
		b.Calls[i] = calls[i].plan
	}
	return b, nil
}

// plannedCall is a call on its way into the plan.
type plannedCall struct {
	plan journal.PlannedCall
	fc   item.FunctionCall
	tool *Tool
	err  error // why the arguments cannot be used
}

// readCalls finds the calls of a response and tells twins, replays and unknown tools.
func (d *drive) readCalls(items []Item, man *journal.Manifest) ([]plannedCall, error) {
	var calls []plannedCall
	for p, it := range items {
		if !it.NeedsOutput() {
			continue
		}
		fc, err := it.FunctionCall()
		if err != nil {
			h := it.Head()
			return nil, &ToolNotFoundError{Tool: strings.TrimSuffix(string(h.Type), "_call") + " " + h.Name, CallID: h.CallID, Tools: toolNames(man)}
		}
		c := plannedCall{fc: fc, plan: journal.PlannedCall{P: p, Tool: toolIndex(man, fc.Name)}}
		c.plan.Digest, _, c.err = item.DigestArguments(argumentsOf(fc.Arguments))
		if err := d.recognise(calls, &c); err != nil {
			return nil, err
		}
		if c.plan.Tool < 0 && !c.plan.Twin && c.plan.Output.IsZero() {
			if d.opts.ToolNotFound == FailRun {
				return nil, &ToolNotFoundError{Tool: fc.Name, CallID: fc.CallID, Tools: toolNames(man)}
			}
			text := fmt.Sprintf("Tool %q not found. Available tools: %s.", fc.Name, strings.Join(toolNames(man), ", "))
			c.plan.Output = fc.Output(d.errorText(ToolErrorNotFound, fc, text))
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// recognise marks a call that repeats one of the same response, or one that the run
// has a record of. The same id with other arguments or another tool is refused.
func (d *drive) recognise(before []plannedCall, c *plannedCall) error {
	for i := range before {
		if before[i].fc.CallID != c.fc.CallID {
			continue
		}
		if before[i].plan.Digest != c.plan.Digest || before[i].fc.Name != c.fc.Name {
			return &CallIDError{CallID: c.fc.CallID}
		}
		c.plan.Twin = true
		return nil
	}
	out, ok, err := d.m.Recorded(c.fc.CallID, c.fc.Name, c.plan.Digest)
	if err != nil {
		return &CallIDError{CallID: c.fc.CallID}
	}
	if ok {
		c.plan.Output = out
	}
	return nil
}

func toolIndex(man *journal.Manifest, name string) int {
	return slices.IndexFunc(man.Tools, func(t journal.ToolSpec) bool { return t.Name == name })
}

func toolNames(man *journal.Manifest) []string {
	names := make([]string, len(man.Tools))
	for i := range man.Tools {
		names[i] = man.Tools[i].Name
	}
	return names
}

func (d *drive) errorText(kind ToolErrorKind, fc item.FunctionCall, text string) string {
	if d.opts.ToolErrors == nil {
		return text
	}
	if t := d.opts.ToolErrors(ToolError{Kind: kind, Tool: fc.Name, CallID: fc.CallID, Default: text}); t != "" {
		return t
	}
	return text
}

// planCall decodes the arguments and asks the approval rule. Unreadable arguments are
// answered with an error, or shown to a person where a rule would have asked.
func (d *drive) planCall(c *plannedCall) {
	if c.plan.Twin || !c.plan.Output.IsZero() {
		return
	}
	c.tool = d.tool(c.fc.Name)
	if c.tool == nil {
		// The tool was offered and is gone; starting the call will say so.
		return
	}
	if c.err == nil {
		c.err = c.tool.schema.Validate(argumentsOf(c.fc.Arguments))
	}
	if c.err != nil {
		text := "The arguments cannot be used: " + strings.TrimPrefix(c.err.Error(), "pawl: ")
		c.plan.Unreadable = true
		c.plan.Output = c.fc.Output(d.errorText(ToolErrorArguments, c.fc, text))
	}
	if !c.tool.gated {
		return
	}
	c.plan.Gate = Ask
	if c.err == nil {
		c.plan.Gate = d.askRule(c)
	}
	if c.plan.Gate != Allow && d.opts.ToolErrors != nil {
		c.plan.Reject = d.errorText(ToolErrorRejected, c.fc, machine.RejectedText)
	}
}

// askRule asks the approval rule. A rule that errs, panics, takes too long or gives
// no answer means that a person decides.
func (d *drive) askRule(c *plannedCall) (gate Gate) {
	ctx, cancel := context.WithTimeout(d.ctx, ruleTimeout)
	defer cancel()
	call := &Call{RunContext: d.runContext(), Tool: c.tool.name, ID: c.fc.CallID, Arguments: argumentsOf(c.fc.Arguments)}
	answer := make(chan Gate, 1)
	go func() {
		defer func() {
			if recover() != nil {
				answer <- Ask
			}
		}()
		g, err := c.tool.approve(ctx, call)
		if err != nil || g != Allow && g != Deny {
			g = Ask
		}
		answer <- g
	}()
	select {
	case gate = <-answer:
		return gate
	case <-ctx.Done():
		return Ask
	}
}

// planFinal says what a response without calls means.
func (d *drive) planFinal(b *journal.Planned, items []Item) error {
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
		if !hosted && d.agent.Output.isText() {
			b.Final = journal.FinalEmpty
		}
		return nil
	}
	msg, err := items[at].Message()
	if err != nil {
		return err
	}
	if r := msg.Refusal(); r != "" {
		return &RefusalError{Refusal: r}
	}
	text := msg.Text()
	if !d.agent.Output.isText() {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		if err := d.agent.Output.schema.Validate(text); err != nil {
			return &OutputError{Text: text, Err: err}
		}
	}
	b.Final, b.FinalAt = journal.FinalMessage, at
	return nil
}
