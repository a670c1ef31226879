// Package pawltest tests agents without a model service.
//
// [ResponsesServer] is a real HTTP server that speaks OpenAI's Responses and Conversations API: it keeps its own
// conversation state, refuses what the service refuses, streams in the service's order of events, and fails on demand
// at the moments that hurt (before it processed a request, after it did, in the middle of a stream). An agent under
// test talks to it as it talks to the service, through whatever client it uses in production.
//
// [ScriptedModel] answers from a script without any server, for tests of an agent's own logic. [FaultySession] loses writes
// of a conversation, and [EffectLog] counts what tools really did, outside of the run.
//
// [Sweep] plays a run of an agent again and again, with every fault at every boundary, and checks what Pawl promises.
package pawltest
