// Package pawltest tests agents without a model service.
//
// [ResponsesServer] is a real HTTP server that speaks OpenAI's Responses and Conversations API: it keeps its own
// conversation state, refuses what the service refuses, streams in the service's order of events, and fails on demand
// at the moments that hurt (before it processed a request, after it did, in the middle of a stream). An agent under
// test talks to it as it talks to the service, through whatever client it uses in production.
package pawltest
