package pawl

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
)

// request is what the drive keeps from turn to turn to build the next request from.
type request struct {
	input      model.Input
	from, upto int
	static     *model.Static
	manifest   *journal.Manifest
	turn       int // the turn of the request
	attempts   int // of that turn, before this drive
}

// prepare makes the turn's request. What does not change between turns is made once.
func (d *drive) prepare(e machine.Effect) (journal.Body, error) {
	text := ""
	if d.agent.Instructions != nil {
		var err error
		rc := d.runContext()
		rc.Turn = e.ID.N
		if text, err = d.agent.Instructions(d.ctx, &rc); err != nil {
			return nil, err
		}
	}
	d.build(strings.ToValidUTF8(text, "\uFFFD"))
	b := &journal.Prepared{N: e.ID.N, Upto: e.Upto}
	man, turn := d.m.Manifest()
	if man != nil && (man == d.request.manifest || reflect.DeepEqual(man, d.request.manifest)) {
		b.Same = turn
		d.request.manifest = man
		return b, nil
	}
	b.Same, b.Manifest = e.ID.N, d.request.manifest
	return b, nil
}

func (d *drive) runContext() RunContext {
	return RunContext{Run: d.m.Run(), Agent: d.agent, Turn: d.m.Turn(), Value: d.opts.Context}
}

// build makes the static part of the request and the manifest that records it.
func (d *drive) build(instructions string) {
	q := &d.request
	if q.static != nil && q.static.Instructions == instructions {
		return
	}
	a := d.agent
	q.static = &model.Static{Instructions: instructions, Output: a.Output.format(), Settings: a.Settings.Merge(d.opts.Settings)}
	q.manifest = &journal.Manifest{Agent: a.key(), Instructions: instructions, Settings: settingsDigest(a.model(d.opts), q.static.Settings)}
	for i := range a.Tools {
		t := &a.Tools[i]
		q.static.Tools = append(q.static.Tools, model.Tool{Name: t.name, Description: t.description, Parameters: t.schema.JSON(), Strict: t.schema.Strict()})
		q.manifest.Tools = append(q.manifest.Tools, t.spec())
	}
	if a.Output.schema != nil {
		q.manifest.Output = a.Output.schema.Digest()
	}
	switch {
	case a.ToolUse.first:
		q.manifest.ToolUse = machine.ToolUseFirst
	case a.ToolUse.names != nil:
		q.manifest.ToolUse, q.manifest.StopAt = machine.ToolUseNames, a.ToolUse.names
	case a.ToolUse.decide != nil:
		q.manifest.ToolUse = machine.ToolUseCustom
	}
}

// settingsDigest names the model and its settings in a manifest, so that a ledger
// shows when they changed.
func settingsDigest(m model.Model, s *ModelSettings) string {
	info := m.Info()
	text, err := json.Marshal([]any{info.Provider, info.Name, s})
	if err != nil {
		text = []byte(err.Error())
	}
	return item.Digest(sha256.Sum256(text)).String()
}

// judge asks the custom tool-use behaviour.
func (d *drive) judge(e machine.Effect) (journal.Body, error) {
	if d.agent.ToolUse.decide == nil {
		return nil, &ConfigError{Field: "Agent.ToolUse", Problem: "the run was planned with a tool-use function the agent does not have any more"}
	}
	var results []ToolResult
	for _, r := range d.m.Results() {
		results = append(results, ToolResult{Tool: r.Name, CallID: r.CallID, Arguments: r.Arguments, Output: textOf(r.Output)})
	}
	rc := d.runContext()
	v, err := d.agent.ToolUse.decide(d.ctx, &rc, results)
	if err != nil {
		return nil, err
	}
	return &journal.Judged{N: e.ID.N, Final: v.Final, Text: strings.ToValidUTF8(v.Output, "\uFFFD")}, nil
}
