package pawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// InputGuardrail checks what a run is asked. Those of an agent are asked when a run starts with
// it, and about input that is added while it has the conversation; those of a run besides.
type InputGuardrail struct {
	// Name names the guardrail in results and errors. It is required.
	Name string
	// Blocking guardrails answer before the first request to the model. The others are asked
	// beside the turns: until they have answered only tools that are ReadOnly start, the
	// run does not end, and the session gets nothing but the input.
	Blocking bool
	// Check says whether the run may go on. It is user code: it is called beside the other
	// guardrails and on a goroutine of its own, and may be called again after a crash, until
	// its verdict is recorded. ctx ends when another guardrail trips, the run is cancelled or
	// the driver stops. An error, or a panic, is no verdict: the run fails, resumably, and
	// all guardrails of that stage are asked again.
	Check func(ctx context.Context, in *InputCheck) (GuardrailVerdict, error)
}

// InputCheck is what an InputGuardrail is asked about.
type InputCheck struct {
	RunContext
	// Input is what the run is asked, or what was added to it.
	Input []Item
	// History is the conversation before that, empty if the server has it.
	History []Item
}

// OutputGuardrail checks the final output of a run. It needs a run whose conversation the
// server does not keep. Those of the agent that made the output are asked, then those of the
// run. The session gets what may be the final output after the verdict; a stream shows it as it
// comes.
type OutputGuardrail struct {
	// Name names the guardrail in results and errors. It is required.
	Name string
	// Check says whether the output may be given to anybody. What is said of
	// InputGuardrail.Check holds of it.
	Check func(ctx context.Context, out *OutputCheck) (GuardrailVerdict, error)
}

// OutputCheck is what an OutputGuardrail is asked about.
type OutputCheck struct {
	RunContext
	// Output is the text of the final output, or its JSON if the agent has an Output type.
	Output string
}

// GuardrailVerdict is what a guardrail says.
type GuardrailVerdict struct {
	// Tripped ends the run, with a *TripwireError.
	Tripped bool
	// Info is recorded as JSON, see GuardrailResult. What encoding/json cannot write is an
	// error of the guardrail.
	Info any
}

// ToolInputGuardrail checks a call of a tool before it starts, with the arguments that it would
// run with, each call once. A call that waits for an approval is checked when it is approved,
// with RunOptions.GuardBeforeApproval also before anybody is asked.
type ToolInputGuardrail struct {
	// Name names the guardrail in results and errors. It is required.
	Name string
	// Check says what becomes of the call. What is said of InputGuardrail.Check holds of it.
	Check func(ctx context.Context, in *ToolInputCheck) (ToolVerdict, error)
}

// ToolInputCheck is what a ToolInputGuardrail is asked about: a call. Its Attempt is 0.
type ToolInputCheck struct{ Call }

// ToolOutputGuardrail checks what a tool returned, or the text that tells of its error, before
// it is recorded: what is rejected is in no ledger, no session and no stream.
type ToolOutputGuardrail struct {
	// Name names the guardrail in results and errors. It is required.
	Name string
	// Check says what the model reads. What is said of InputGuardrail.Check holds of it, but
	// for errors: the tool has run and does not run again, so after an error or a panic the
	// output is withheld and the call has failed. What a Transactional tool wrote is rolled
	// back then. For a tool that runs an agent it is a failure of the agent's.
	Check func(ctx context.Context, out *ToolOutputCheck) (ToolVerdict, error)
}

// ToolOutputCheck is what a ToolOutputGuardrail is asked about: a call and its output.
type ToolOutputCheck struct {
	Call
	// Output is the text of the output, Item all of it: an output may have pictures and files.
	Output string
	Item   Item
}

// ToolVerdict is what a guardrail on a tool says. Make one with PassTool, RejectContent or
// TripTool; the zero value lets pass.
type ToolVerdict struct {
	tripped, rejects bool
	message          string
	info             any
}

// PassTool lets the call or its output pass. info is recorded as that of a GuardrailVerdict is.
func PassTool(info any) ToolVerdict { return ToolVerdict{info: info} }

// RejectContent lets the model read the message: instead of a call that is not run then, or
// instead of the output. The run goes on.
func RejectContent(message string, info any) ToolVerdict {
	return ToolVerdict{rejects: true, message: strings.ToValidUTF8(message, "\uFFFD"), info: info}
}

// TripTool ends the run with a *TripwireError.
func TripTool(info any) ToolVerdict { return ToolVerdict{tripped: true, info: info} }

// GuardrailStage says what a guardrail was asked about.
type GuardrailStage string

// What a guardrail is asked about.
const (
	StageInput      GuardrailStage = "input"
	StageOutput     GuardrailStage = "output"
	StageToolInput  GuardrailStage = "tool_input"
	StageToolOutput GuardrailStage = "tool_output"
)

// TripwireError says that a guardrail tripped: the run, or the nested run that it was asked in,
// has ended without a final output.
type TripwireError struct {
	Stage GuardrailStage
	// Guardrail is its name, Agent the key of the agent that it was asked for.
	Guardrail, Agent string
	// Tool and CallID name the call, at the stages of tools.
	Tool, CallID string
	// Info is what the guardrail said about it, as JSON, empty if it said nothing.
	Info string
}

// Error names the guardrail and what it was asked about.
func (e *TripwireError) Error() string {
	about := string(e.Stage) + fmt.Sprintf(" of agent %q", e.Agent)
	switch e.Stage {
	case StageToolInput:
		about = fmt.Sprintf("call of tool %q (call %s)", e.Tool, e.CallID)
	case StageToolOutput:
		about = fmt.Sprintf("output of tool %q (call %s)", e.Tool, e.CallID)
	}
	return fmt.Sprintf("pawl: guardrail %q tripped on the %s", e.Guardrail, about)
}

// GuardrailError says that a guardrail gave no verdict. Resume the run to ask again.
type GuardrailError struct {
	Stage     GuardrailStage
	Guardrail string
	Err       error
}

// Error names the guardrail.
func (e *GuardrailError) Error() string {
	return fmt.Sprintf("pawl: guardrail %q gave no verdict: %s", e.Guardrail, bare(e.Err))
}

// Unwrap returns the cause.
func (e *GuardrailError) Unwrap() error { return e.Err }

// checkGuardrails reports what is wrong with a list of guardrails.
func checkGuardrails[G any](list []G, of func(*G) (name string, check bool)) error {
	seen := make(map[string]bool, len(list))
	for i := range list {
		name, check := of(&list[i])
		switch {
		case name == "":
			return errors.New("a guardrail has no name")
		case !utf8.ValidString(name):
			return errors.New("the name of a guardrail " + notUTF8)
		case !check:
			return fmt.Errorf("guardrail %q has no Check function", name)
		case seen[name]:
			return fmt.Errorf("two guardrails are named %q", name)
		}
		seen[name] = true
	}
	return nil
}

func checkInputGuardrails(list []InputGuardrail) error {
	return checkGuardrails(list, func(g *InputGuardrail) (string, bool) { return g.Name, g.Check != nil })
}

func checkOutputGuardrails(list []OutputGuardrail) error {
	return checkGuardrails(list, func(g *OutputGuardrail) (string, bool) { return g.Name, g.Check != nil })
}

// checkToolGuardrails reports what is wrong with the guardrails of a tool.
func (t *Tool) checkGuardrails() error {
	err := checkGuardrails(t.guardsIn, func(g *ToolInputGuardrail) (string, bool) { return g.Name, g.Check != nil })
	if err != nil {
		return err
	}
	return checkGuardrails(t.guardsOut, func(g *ToolOutputGuardrail) (string, bool) { return g.Name, g.Check != nil })
}
