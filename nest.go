package pawl

import (
	"context"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/item"
)

// NestOptions are the options of NestHistory; nil means all defaults.
type NestOptions struct {
	// Start and End are the lines before and behind the items. Empty means
	// <CONVERSATION HISTORY> and </CONVERSATION HISTORY>. An earlier history is recognised
	// by them, so they should not change in a run.
	Start, End string
	// Map, if not nil, makes what the agent is to read. It gets the conversation with what
	// stood in earlier histories in its place, and what it returns is sent as it is.
	Map func(ctx context.Context, h *HandoffData, conversation []Item) ([]Item, error)
}

// NestHistory returns a filter that makes the conversation so far one message of the
// assistant, so that the agent that takes over reads what was said as what others said. The
// message has an item a line, as its JSON: nothing of a message is lost, and no text can
// pretend to be another one's. Reasoning is left out. A message with more than text, an image
// or a file, stays an item of its own, between the histories of what stood before and behind
// it. A second handoff does not put a history into a history: it goes on with its lines.
func NestHistory(o *NestOptions) HandoffFilter {
	n := nesting{}
	if o != nil {
		n.NestOptions = *o
	}
	if n.Start == "" {
		n.Start = "<CONVERSATION HISTORY>"
	}
	if n.End == "" {
		n.End = "</CONVERSATION HISTORY>"
	}
	return func(ctx context.Context, h *HandoffData) ([]Item, error) {
		conversation := n.flat(h.Items())
		if n.Map != nil {
			return n.Map(ctx, h, conversation)
		}
		return n.nested(conversation), nil
	}
}

type nesting struct{ NestOptions }

// nestIntro says to the model what the lines are.
const nestIntro = "This is the conversation so far, before it was handed over. Each line is an item of it, as JSON, the oldest first.\n"

// nested makes the histories, and what stands between them.
func (n *nesting) nested(conversation []Item) (list []Item) {
	var lines []string
	flush := func() {
		if len(lines) > 0 {
			list = append(list, item.AssistantText(nestIntro+n.Start+"\n"+strings.Join(lines, "\n")+"\n"+n.End))
		}
		lines = nil
	}
	for _, it := range conversation {
		switch {
		case it.Type() == item.TypeReasoning:
		case it.Type() == item.TypeMessage && !onlyText(it):
			flush()
			list = append(list, it)
		default:
			lines = append(lines, oneLine.Replace(it.Raw()))
		}
	}
	flush()
	return list
}

// oneLine makes JSON one line: where it may have a line break, it may have a space as well.
var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

func onlyText(message Item) bool {
	m, err := message.Message()
	return err == nil && !slices.ContainsFunc(m.Content, func(p item.Part) bool {
		switch p.Type() {
		case item.PartInputText, item.PartOutputText, item.PartText, item.PartRefusal:
			return false
		}
		return true
	})
}

// flat puts the items of histories in their place.
func (n *nesting) flat(list []Item) []Item {
	flat := make([]Item, 0, len(list))
	for _, it := range list {
		if inner, ok := n.unnest(it); ok {
			flat = append(flat, inner...)
			continue
		}
		flat = append(flat, it)
	}
	return flat
}

// unnest returns the items of a history. A message that a model made is none, whatever it says:
// a history has the form of a message that a program makes.
func (n *nesting) unnest(it Item) (list []Item, ok bool) {
	text := textOf(it)
	inner, ok := strings.CutPrefix(text, nestIntro+n.Start+"\n")
	if !ok || it != item.AssistantText(text) {
		return nil, false
	}
	if inner, ok = strings.CutSuffix(inner, "\n"+n.End); !ok {
		return nil, false
	}
	for line := range strings.SplitSeq(inner, "\n") {
		in, err := item.ParseString(line)
		if err != nil {
			return nil, false
		}
		list = append(list, in)
	}
	return list, true
}

// nests says how the run's options make a history of the conversation at a handoff; nil if
// they do not.
func (f *frame) nests() HandoffFilter {
	if f.opts.NestHandoffs == nil || managed(f.m.Started()) {
		return nil
	}
	return NestHistory(f.opts.NestHandoffs)
}

// warnings are what the options ask for and the runs do not do, once each.
func (d *drive) warnings() (list []string) {
	warn := func(f *frame) {
		const nests = "RunOptions.NestHandoffs is off: the server keeps the conversation, so that a handoff cannot change what the next agent reads"
		if f.opts != nil && f.opts.NestHandoffs != nil && managed(f.m.Started()) && !slices.Contains(list, nests) {
			list = append(list, nests)
		}
	}
	warn(d.root)
	for _, f := range d.frames {
		warn(f)
	}
	return list
}
