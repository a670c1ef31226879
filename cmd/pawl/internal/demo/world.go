package demo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

// World is a directory with the run store and the shop.
type World struct {
	Dir   string
	Store *sqlstore.Store
	Shop  *Shop
	kill  *Kill
}

// The files of a world's directory.
const (
	StoreFile   = "pawl.db"
	ShopFile    = "shop.db"
	serverDir   = "server"
	requestsDir = "requests"
)

// Open opens the world in a directory, which is made if it is missing. kill may be nil.
func Open(ctx context.Context, dir string, kill *Kill) (*World, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: make the demo's directory: %w", sqlstore.ErrAccess, err)
	}
	if kill == nil {
		kill = &Kill{}
	}
	st, err := sqlstore.OpenSQLite(filepath.Join(dir, StoreFile), nil)
	if err != nil {
		return nil, err
	}
	shop, err := OpenShop(ctx, filepath.Join(dir, ShopFile))
	if err != nil {
		st.Close()
		return nil, err
	}
	shop.around = kill.around
	return &World{Dir: dir, Store: st, Shop: shop, kill: kill}, nil
}

// Close closes the store and the shop.
func (w *World) Close() error { return errors.Join(w.Shop.Close(), w.Store.Close()) }

// OpenTicket opens a fresh ticket, about a fresh order.
func (w *World) OpenTicket(ctx context.Context, n NewTicket) (*Ticket, error) {
	return w.Shop.openTicket(ctx, n, func(run string) (bool, error) {
		recs, err := w.Store.Read(ctx, run, 0)
		return len(recs) > 0, err
	})
}

// Desk drives the run of one ticket. It is used from one goroutine.
type Desk struct {
	Ticket *Ticket
	Runner *pawl.Runner
	// BaseURL is where the model is.
	BaseURL string

	world    *World
	agent    *pawl.Agent
	server   *pawltest.ResponsesServer // nil with a real API
	captures captures
}

// DeskOptions are the choices of a desk. The zero value is a demo on the bundled server.
type DeskOptions struct {
	// Client configures the real API; it is used if the ticket's model is not the bundled one.
	Client openai.Options
	// Booked, if not nil, is called by the refund tool when a refund is in the shop and its outcome is not
	// recorded yet.
	Booked func(context.Context, *pawl.Call) error
}

// Desk returns what drives the ticket's run.
func (w *World) Desk(t *Ticket, opts DeskOptions) (*Desk, error) {
	d := &Desk{Ticket: t, world: w, captures: captures{filepath.Join(w.Dir, requestsDir)}}
	client := opts.Client
	if t.Bundled() {
		var err error
		d.server, err = pawltest.StartResponses(&pawltest.ResponsesOptions{Respond: d.captures.responder(t.Run()), Dir: filepath.Join(w.Dir, serverDir, t.Run())})
		if err != nil {
			return nil, err
		}
		client = openai.Options{BaseURL: d.server.URL()}
	} else {
		client.BaseURL = t.BaseURL
		client.HTTPClient = &http.Client{Transport: &transport{captures: d.captures, run: t.Run(), next: http.DefaultTransport}}
	}
	d.BaseURL = client.BaseURL
	d.agent = newAgent(w.Shop, openai.New(client).Responses(t.Model), opts.Booked)
	d.Runner = &pawl.Runner{Store: &store{Store: w.Store, kill: w.kill}, Agents: []*pawl.Agent{d.agent}, Sessions: d.session}
	return d, nil
}

// Close stops the bundled server.
func (d *Desk) Close() error {
	if d.server == nil {
		return nil
	}
	return d.server.Close()
}

// session finds a session of the demo by its id.
func (d *Desk) session(id string) session.Session {
	if !strings.HasPrefix(id, plainPrefix) {
		return &storeSession{Session: d.world.Store.Session(id), store: d.Runner.Store.(*store)}
	}
	return faultySession{&plainSession{shop: d.world.Shop, id: id}}
}

// maxTurns leaves a real model room for detours.
const maxTurns = 30

// Start starts the ticket's run.
func (d *Desk) Start(ctx context.Context) iter.Seq2[pawl.Event, error] {
	opts := &pawl.RunOptions{ID: d.Ticket.Run(), MaxTurns: maxTurns, ToolNotFound: pawl.TellModel, AutoPreviousResponseID: d.Ticket.Mode == ModeChain}
	if id := d.Ticket.Session(); id != "" {
		opts.Session = d.session(id)
	}
	return d.Runner.Stream(ctx, d.agent, pawl.UserText(d.Ticket.Text), opts)
}

// Resume drives the run on, from a state with decisions staged on it or from the run's id. turns, if not 0, replaces the
// bound on turns.
func (d *Desk) Resume(ctx context.Context, from pawl.Resumable, turns int) iter.Seq2[pawl.Event, error] {
	return d.Runner.ResumeStream(ctx, nil, from, &pawl.RunOptions{ToolNotFound: pawl.TellModel, MaxTurns: turns})
}

// Reload writes a state as JSON and reads it back, as if it had been kept elsewhere meanwhile. It returns the
// document's size, too.
func Reload(state *pawl.RunState) (*pawl.RunState, int, error) {
	doc, err := state.MarshalJSON()
	if err != nil {
		return nil, 0, err
	}
	again, err := pawl.ParseRunState(doc)
	return again, len(doc), err
}
