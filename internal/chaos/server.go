package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pawl-agents/pawl/internal/pgtest"
)

// outages are the times in which the server of the store, or of the engine, was down.
type outages struct {
	server  Server // nil if there is none
	url     string // of the store, empty if it is a file
	address string // of the engine
	down    bool
	last    time.Time // when it last came back
	count   int
}

// startServer starts the server of a campaign on PostgreSQL, or on an engine.
func (p *parent) startServer(ctx context.Context) error {
	switch {
	case p.o.host.engine():
		server, address, err := p.o.host.Server(p.o.dir)
		if err == nil {
			p.outages.server, p.outages.address = server, address
		}
		return err
	case p.o.postgres:
		server, err := pgtest.New("max_connections=300")
		if err != nil {
			return err
		}
		p.outages.server = server
		p.outages.url, err = server.Create(ctx, "chaos")
		return err
	}
	return nil
}

// torment takes the server down again and again, by SIGKILL or at once, as a crash of its machine would, and starts it.
func (p *parent) torment(ctx context.Context, end time.Time) error {
	if p.outages.server == nil {
		return nil
	}
	rnd := drawn(p.o.seed, "server")
	for {
		pause := time.Duration((2+rnd.IntN(8))*p.o.host.lives()) * time.Second
		if time.Now().Add(pause).After(end) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if err := p.outage(rnd); err != nil {
			return err
		}
	}
}

func (p *parent) outage(rnd *rand.Rand) error {
	p.mu.Lock()
	p.outages.down = true
	p.outages.count++
	p.kills++
	p.mu.Unlock()
	stop := p.outages.server.Kill
	if rnd.IntN(2) == 0 {
		stop = p.outages.server.StopImmediate
	}
	if err := stop(); err != nil {
		return err
	}
	time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond)
	if err := p.outages.server.Start(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outages.down, p.outages.last = false, time.Now()
	return nil
}

// wasDown says that the server may have been down since a moment: what went wrong then may be its fault. A connection
// that it lost is noticed when it is used next.
func (o *outages) wasDown(since time.Time) bool {
	return o.server != nil && (o.down || o.last.After(since.Add(-5*time.Second)))
}
