package journal

import "github.com/pawl-agents/pawl/item"

// Guards says which guardrails an agent has on its input.
type Guards string

// The guardrails on the input.
const (
	GuardsNone     Guards = ""
	GuardsBlocking Guards = "blocking" // they answer before the first turn
	GuardsParallel Guards = "parallel" // they answer beside it
	GuardsBoth     Guards = "both"
)

// Check is what one guardrail said.
type Check struct {
	Name string
	// Tripped says that the run must not go on.
	Tripped bool
	// Rejected says that the model reads something else instead of the call's output.
	Rejected bool
	// Info is what the guardrail has to say about it, as its author chose.
	Info string
}

// Checked is the verdict of guardrails on the input, on a candidate of the final output
// or on a call that is about to start, whichever ID names.
type Checked struct {
	ID     EffectID
	Checks []Check
	// Output, of a call only, settles the call without its body.
	Output item.Item
}

// Kind returns the fact's kind.
func (*Checked) Kind() Kind { return KindChecked }

func appendChecked(dst []byte, b *Checked) []byte {
	dst = appendEffect(dst, "id", b.ID)
	dst = appendChecks(dst, b.Checks)
	return appendItem(dst, "output", b.Output)
}

func (b *Checked) read(name, value string) error {
	switch name {
	case "id":
		return scanEffect(&b.ID, value)
	case "checks":
		return scanObjects(&b.Checks, value)
	case "output":
		return scanItem(&b.Output, value)
	}
	return errUnknown
}

func appendChecks(dst []byte, checks []Check) []byte {
	if len(checks) == 0 {
		return dst
	}
	dst = append(appendName(dst, "checks"), '[')
	for i := range checks {
		dst = append(appendComma(dst), '{')
		dst = appendText(dst, "name", checks[i].Name)
		dst = appendFlag(dst, "tripped", checks[i].Tripped)
		dst = appendFlag(dst, "rejected", checks[i].Rejected)
		dst = append(appendText(dst, "info", checks[i].Info), '}')
	}
	return append(dst, ']')
}

func (c *Check) read(name, value string) error {
	switch name {
	case "name":
		return scanText(&c.Name, value)
	case "tripped":
		return scanFlag(&c.Tripped, value)
	case "rejected":
		return scanFlag(&c.Rejected, value)
	case "info":
		return scanText(&c.Info, value)
	}
	return errUnknown
}
