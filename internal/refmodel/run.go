// Package refmodel says what a run must come to, whatever goes wrong on the way.
//
// It is a second reading of the specification, at the level of the user: given the tools, the
// model's answers and the decisions of a run, Play says what happens if nothing goes
// wrong. It knows no facts, no effects and no store, and shares no code with the machine or the driver.
// Its tests play the same run with a Runner while stores, sessions, servers and processes fail by a random
// plan, and compare the two ends: what tools did, what the model was asked, what the session holds, and
// what came out.
package refmodel

// Run is a run as a user sets it up. Call ids differ over the whole run, but for calls that are
// equal to another one of the same answer.
type Run struct {
	Tools []Tool
	// After says what follows the tools of a turn.
	After After
	// StopAt are the names for AfterNames.
	StopAt []string
	// MaxTurns bounds the turns, 0 for no bound.
	MaxTurns int
	// TellUnknown says that a call of an unknown tool is answered; else the run fails.
	TellUnknown bool
	// Before is what the session held, one user's text an entry; Input is the user's text.
	Before []string
	Input  string
	// Turns are the model's answers.
	Turns []Turn
	// Decisions are what people decide on approvals, by call id. A call without one is
	// approved.
	Decisions map[string]Decision
	// Decreed are the calls whose output a person gave, because nobody knew what became of
	// them. They are no results of tools.
	Decreed map[string]bool
}

// After says what follows the tools of a turn.
type After int

// What follows the tools of a turn.
const (
	AfterAgain After = iota // the model is asked again
	AfterFirst              // the first result is the final output
	AfterNames              // the first result of one of the named tools is
	AfterTwo                // a function ends the run once a turn has two results
)

// Gate is what a tool's rule answers.
type Gate int

// The answers of a rule. Open is a tool without a rule.
const (
	Open Gate = iota
	Allows
	Asks
	Denies
)

// Tool is a tool.
type Tool struct {
	Name string
	Gate Gate
	// Once says that the tool may be run once for a call; else it may run again.
	Once bool
	// Fails says that its body returns an error, after it took effect.
	Fails bool
}

// Turn is an answer of the model: calls, and a message unless Text is empty.
type Turn struct {
	Calls []Call
	Text  string
}

// Call is a call as the model writes it.
type Call struct {
	ID, Tool string
	// N is the argument. A bad call has arguments that do not fit.
	N   int
	Bad bool
}

// Decision is what a person decides on an approval.
type Decision struct {
	Reject bool
	// Always extends the decision to the tool's other calls in the run.
	Always bool
	// Edit, when not 0, is the argument an approval puts in place of the model's.
	Edit int
	// Message is what the model reads for a rejection.
	Message string
}

// End is what a run comes to.
type End struct {
	// Failed is why the run failed: "max_turns", "tool_not_found", or empty.
	Failed string
	// Output is the final output.
	Output string
	// Conversation is everything the model said and was told, without a response that was not
	// dealt with.
	Conversation []string
	// Requests are what the model reads, turn by turn: so many items of the conversation.
	Requests []int
	// Effects are what tools did, by call id.
	Effects map[string]Effect
	// Asked are the calls that somebody had to approve.
	Asked []string
}

// Effect is what a tool did for a call.
type Effect struct {
	Tool string
	N    int
	Once bool
}

// The texts of calls that do not run, as the options of a run would make them.
const (
	NotFoundText = "there is no such tool"
	RejectedText = "that was not approved"
	BadText      = "these arguments do not fit"
)

// DidText is what a tool returns for a call.
func DidText(callID string) string { return "did " + callID }

// FailText is the error of a tool that fails.
func FailText(callID string) string { return "cannot " + callID }
