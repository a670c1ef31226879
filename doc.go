// Package pawl runs LLM agents whose runs never slip back.
//
// An [Agent] has instructions, tools and a model. A [Runner] drives it: the model
// is asked, its calls are gated, run and answered, until there is a final output or
// somebody has to decide. A run is an append-only ledger of facts; the session, the
// model's input, the stream and the [RunState] are projections of it. An effect's
// intent is durable before the effect starts and its outcome after it ended, so a
// crash, a lost acknowledgement or a second resume neither repeats an effect silently
// nor loses one.
//
// What is promised for a tool depends on its [Effect]: see the constants.
package pawl
