// Package scenarios holds failures that users of agent SDKs reported in public, each as a script that Pawl has to survive.
// It is for tests only: its own, and those of hosts of runs, which play a part of it by way of package enginetest.
//
// A scenario is played in cells: blocking and streaming; with the state kept alive, taken through JSON, resumed from an
// SQLite store that is opened anew for every call, and resumed in another process. The model is a strict server behind
// real HTTP ([github.com/pawl-agents/pawl/pawltest.ResponsesServer]). After every cell an oracle compares what is on the
// wire, in the rows of the session and in a log of effects that the run knows nothing of. It asks neither the run's ledger
// nor the machine.
package scenarios
