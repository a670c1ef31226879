package pawl

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
)

// wanted is what may differ from turn to turn in what an agent offers the model.
type wanted struct {
	agent        *Agent
	listing      *listing // of the agent's sources
	instructions string
	prompt       string // one that the model's server keeps
	disabled     string // the names of the tools that are left out, each followed by a comma
	unforced     bool   // the choice of a tool is the model's again
}

func (w *wanted) disable(tool string) { w.disabled += tool + "," }

func (w *wanted) leavesOut(tool string) bool {
	return w.disabled != "" && slices.Contains(strings.Split(w.disabled, ","), tool)
}

// offer is what a turn offers the model: the static part of its request, and the manifest
// that records it.
type offer struct {
	wanted
	static   model.Static
	manifest *journal.Manifest
	recorded int // the turn that recorded the manifest, 0 if that is not known
}

// offering returns the offer that is wanted. One that was made before, as a set of tools that
// is wanted every other turn is, is used again.
func (f *frame) offering(w wanted) *offer {
	q := &f.request
	if q.offer != nil && q.offer.wanted == w {
		return q.offer
	}
	if q.offer != nil {
		q.others = append(q.others, q.offer)
		q.others = slices.DeleteFunc(q.others, func(o *offer) bool {
			return o.agent == w.agent && (o.instructions != w.instructions || o.prompt != w.prompt)
		})
	}
	if i := slices.IndexFunc(q.others, func(o *offer) bool { return o.wanted == w }); i >= 0 {
		q.offer = q.others[i]
		q.others = slices.Delete(q.others, i, i+1)
		return q.offer
	}
	q.offer = f.newOffer(w)
	return q.offer
}

// offered returns what a turn offered that was perhaps prepared in another process. Which
// tools were enabled then its manifest says.
func (f *frame) offered(man *journal.Manifest) *offer {
	if o := f.request.offer; o != nil && o.manifest == man {
		return o
	}
	w := wanted{agent: f.agent, listing: f.listing, instructions: man.Instructions, prompt: man.Prompt, unforced: f.unforced()}
	for t := range f.callables() {
		if (t.enabled != nil || fromSource(t.spec())) && !offers(man, t) {
			w.disable(t.name)
		}
	}
	return f.offering(w)
}

func offers(man *journal.Manifest, t *Tool) bool {
	return slices.ContainsFunc(man.Tools, func(s journal.ToolSpec) bool { return s.Name == t.name })
}

func (f *frame) newOffer(w wanted) *offer {
	a := f.agent
	settings := a.Settings.Merge(f.opts.Settings)
	if w.unforced {
		settings = letChoose(settings)
	}
	o := &offer{wanted: w, static: model.Static{Instructions: w.instructions, Prompt: w.prompt, Output: a.Output.format(), Settings: settings}}
	o.manifest = &journal.Manifest{Agent: f.team.key(a), Instructions: w.instructions, Prompt: w.prompt, Settings: settingsDigest(a.model(f.opts), settings),
		GuardsInput: guardsOf(a, f.opts) != journal.GuardsNone, GuardsOutput: len(a.OutputGuardrails)+len(f.opts.OutputGuardrails) > 0}
	for t := range f.callables() {
		if w.leavesOut(t.name) {
			continue
		}
		o.static.Tools = append(o.static.Tools, model.Tool{Name: t.name, Description: t.describe(), Parameters: t.schema.JSON(), Strict: t.schema.Strict()})
		o.manifest.Tools = append(o.manifest.Tools, f.spec(t))
	}
	if a.Output.schema != nil {
		o.manifest.Output = a.Output.schema.Digest()
	}
	o.manifest.Handles = f.opts.ErrorHandlers.kinds()
	switch {
	case a.ToolUse.first:
		o.manifest.ToolUse = machine.ToolUseFirst
	case a.ToolUse.names != nil:
		o.manifest.ToolUse, o.manifest.StopAt = machine.ToolUseNames, a.ToolUse.names
	case a.ToolUse.decide != nil:
		o.manifest.ToolUse = machine.ToolUseCustom
	}
	return o
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

// unforced says that a tool choice that forces a call is left out by now, so that it does
// not force one for ever: the agent has used a tool in this run.
func (f *frame) unforced() bool {
	a := f.agent
	return !a.KeepToolChoice && (forces(a.Settings) || forces(f.opts.Settings)) && f.m.ToolsUsed(f.team.key(a))
}

// forces says that settings make the model call a tool.
func forces(s *ModelSettings) bool {
	switch {
	case s == nil:
		return false
	case s.ToolChoiceRaw != "":
		return forcesRaw(s.ToolChoiceRaw)
	}
	return forcesWord(s.ToolChoice)
}

func forcesWord(choice string) bool { return choice != "" && choice != "auto" && choice != "none" }

// forcesRaw reads a choice in the provider's own JSON: a word, or an object, which forces
// a call unless its mode says that it does not.
func forcesRaw(choice string) bool {
	if word, err := jsonscan.String(choice); err == nil {
		return forcesWord(word)
	}
	mode := ""
	err := jsonscan.Object(choice, func(name, value string) error {
		if name == "mode" {
			mode, _ = jsonscan.String(value)
		}
		return nil
	})
	return err != nil || mode != "auto"
}

// letChoose returns the settings with a choice that forces a call left out.
func letChoose(s *ModelSettings) *ModelSettings {
	if !forces(s) {
		return s
	}
	free := *s
	free.ToolChoice, free.ToolChoiceRaw = "", ""
	return &free
}

// spec is a tool as the ledger has it.
func (f *frame) spec(t *Tool) journal.ToolSpec {
	s := t.spec()
	if t.handoff != nil {
		s.Handoff = f.team.key(t.handoff.agent)
	}
	return s
}
