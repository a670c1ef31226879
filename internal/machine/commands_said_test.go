package machine

import (
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// checks reads trip=NAME: what guardrails said, one of which may have tripped.
func (c command) checks() (checks []journal.Check) {
	if name, ok := c.options["trip"]; ok {
		checks = append(checks, journal.Check{Name: name, Tripped: true})
	}
	return checks
}

// checked reads: checked EFFECT [trip=NAME] [reject], and with "reject" the output's text.
func (s *script) checked(c command) journal.Body {
	b := &journal.Checked{ID: s.effect(c.word(1)), Checks: c.checks()}
	if known := s.f.callOf(b.ID); c.has("reject") && known != nil {
		b.Output = s.f.output(known, c.text())
	}
	if of, ok := c.options["output-of"]; ok {
		b.Output = item.FunctionOutput(of, "misplaced")
	}
	return b
}

// handled reads: handled N [declined] [include] [user], and the final output.
func (s *script) handled(c command) journal.Body {
	b := &journal.Handled{N: s.number(c.word(1)), Declined: c.has("declined"), Text: c.text()}
	if c.has("include") {
		b.Item = item.MessageItem("", b.Text)
	}
	if c.has("user") {
		b.Item = item.UserText(b.Text)
	}
	return b
}

// manifestWord reads a line about guardrails or handlers of a manifest.
func manifestWord(man *journal.Manifest, line command) {
	switch line.word(0) {
	case "guards-input":
		man.GuardsInput = true
	case "guards-output":
		man.GuardsOutput = true
	case "handles":
		for _, w := range line.words[1:] {
			man.Handles = append(man.Handles, journal.Handles(w))
		}
	}
}

func (s *script) trippedText(command) string {
	t := s.f.Tripped()
	if t == nil {
		return "no"
	}
	return strings.TrimSpace(inFrame(t.Frame) + t.ID.String() + " " + t.Check.Name)
}

func checksText(checks []journal.Check) string {
	if c := tripped(checks); c != nil {
		return "trips " + c.Name
	}
	return ""
}

// saidText is factText of what guardrails and handlers say, and of input that comes later.
func saidText(b journal.Body, add func(use bool, format string, args ...any)) {
	switch b := b.(type) {
	case *journal.Checked:
		add(true, "%s", b.ID)
		add(len(b.Checks) > 0, "%s", checksText(b.Checks))
		add(!b.Output.IsZero(), "%s", itemText(b.Output))
	case *journal.Handled:
		add(true, "%d", b.N)
		add(b.Declined, "declined")
		add(!b.Declined, "%q", b.Text)
		add(!b.Item.IsZero(), "included")
	case *journal.Added:
		add(true, "%d items", len(b.Items))
	case *journal.Admitted:
		add(true, "%d", b.N)
	case *journal.Observed:
		add(true, "%d", b.N)
	}
}
