package chaos

import (
	"context"

	"github.com/pawl-agents/pawl"
)

// Host has the runs of a campaign driven by an engine, whose server is killed, too. The zero Host is none: then the workers drive them.
type Host struct {
	// Server starts the server of the engine, which keeps in the directory what must survive, and returns where clients find it.
	Server func(dir string) (s Server, address string, err error)
	// Join gives a runner the engine at the server's address, and begins to carry out what the engine's runs do, until stop is called.
	// The options are those of a run that do not travel.
	Join func(address, dir string, r *pawl.Runner, options func(run string) *pawl.RunOptions) (stop func(), err error)
	// Over says that nothing of a run is left to do at the server.
	Over func(ctx context.Context, address, run string) (bool, error)
}

// Server is a server that is killed and started again.
type Server interface {
	// Kill ends it with SIGKILL.
	Kill() error
	// StopImmediate lets it end by itself, as soon as it can.
	StopImmediate() error
	// Start starts it where it was.
	Start() error
	// Close ends it for good.
	Close() error
}

func (h Host) engine() bool { return h.Join != nil }

// lives is how much longer a worker lives, as a start takes longer, too.
func (h Host) lives() int {
	if h.engine() {
		return 3
	}
	return 1
}

// slow is how much longer everything takes behind an engine's server than in a process.
func (h Host) slow() int {
	if h.engine() {
		return 10
	}
	return 1
}
