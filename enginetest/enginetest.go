// Package enginetest is the conformance suite of what keeps runs: a store, or an engine. It plays reported failures, and real
// processes and servers that are killed, against a strict model server behind real HTTP, and compares what is on the wire,
// in the session and in a log of effects with what one process does by itself.
//
// A package that has a [Host] gives it to [Main] in its TestMain, and to [Play] in a test:
//
//	func TestMain(m *testing.M) { os.Exit(enginetest.Main(m, host)) }
//
//	func TestEngine(t *testing.T) { enginetest.Play(t, host, nil) }
//
// What a host cannot have it does not play. A test pins the number of those cases, so that none is left out silently.
package enginetest

import (
	"testing"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/scenarios"
)

type (
	// Host is where runs live, and says what it is.
	Host = scenarios.Host
	// Backend is an open place of a host.
	Backend = scenarios.Backend
	// Session is a session of a host.
	Session = scenarios.Session
	// Report is what came of the cases.
	Report = scenarios.Report
	// Options are the options of Play.
	Options = scenarios.PlayOptions
)

// Main runs the tests of a package that has hosts, and is what the processes do that the cases start: the test's binary again.
// TestMain exits with what it returns.
func Main(m *testing.M, hosts ...Host) int { return scenarios.Main(m, hosts...) }

// Play plays every case on a host, which must be one of those of Main, and prints how many there were, how many failed, and
// what does not apply to the host.
func Play(t *testing.T, h Host, opts *Options) Report { return scenarios.Play(t, h, opts) }

// Store is the backend of a store: session gives its sessions, end closes it.
func Store(d journal.Driver, session func(id string) Session, end func() error) Backend {
	return scenarios.StoreBackend(d, session, end)
}
