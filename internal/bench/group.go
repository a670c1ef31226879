package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/sqlstore"
)

// groupRuns is how many runs share the commits of a store, groupTurns their length.
const (
	groupRuns  = 64
	groupTurns = 20
)

// group measures runs that share the commits of one SQLite file, beside the store's own raw appends: as many goroutines that
// append what such a run appends, session batch included, and do nothing else.
type group struct {
	store   *sqlstore.Store
	agent   *pawl.Agent
	appends []commit // of a run
	made    int
	// rawFirst says which side the last sample began with.
	rawFirst bool
}

func (d *durable) group() (*group, error) {
	agent := newScripted(groupTurns).agent()
	commits, err := d.commits(agent, groupTurns)
	return &group{store: d.store, agent: agent, appends: commits}, err
}

// rates returns appends a second, of the runs and of the store alone, each first in every other round. With -pawl the
// latter is left out.
func (g *group) rates() (pawl, raw float64, err error) {
	raw = math.NaN()
	g.rawFirst = !g.rawFirst && !*pawlOnly
	if g.rawFirst {
		if raw, err = g.rate(g.claim, g.append); err != nil {
			return 0, 0, err
		}
	}
	pawl, err = g.rate(g.claimNothing, g.run)
	if err == nil && !g.rawFirst && !*pawlOnly {
		raw, err = g.rate(g.claim, g.append)
	}
	return pawl, raw, err
}

// groupRun is one of the runs.
type groupRun struct {
	id    string
	claim journal.Claim
}

// rate lets every run begin, and times the rest of them side by side.
func (g *group) rate(begin func(*groupRun) error, rest func(groupRun) error) (float64, error) {
	runs := make([]groupRun, groupRuns)
	for i := range runs {
		g.made++
		runs[i].id = fmt.Sprint("group-", g.made)
		if err := begin(&runs[i]); err != nil {
			return 0, err
		}
	}
	errs := make([]error, groupRuns)
	runtime.GC() // what the other side left behind is not this one's
	start := time.Now()
	var wg sync.WaitGroup
	for i, r := range runs {
		wg.Go(func() { errs[i] = rest(r) })
	}
	wg.Wait()
	took := time.Since(start)
	return float64(groupRuns*len(g.appends)) / took.Seconds(), errors.Join(errs...)
}

func (g *group) claimNothing(*groupRun) error { return nil }

// run is a run as Pawl drives it.
func (g *group) run(o groupRun) error {
	r := pawl.Runner{Store: g.store}
	res, err := r.Run(context.Background(), g.agent, pawl.UserText(question),
		&pawl.RunOptions{ID: o.id, MaxTurns: -1, Session: g.store.Session(o.id)})
	if err != nil {
		return err
	}
	return httpRun{turns: groupTurns}.check(res.FinalOutput, res.Turns)
}

func (g *group) claim(o *groupRun) (err error) {
	o.claim, err = g.store.Claim(context.Background(), o.id, journal.ClaimRequest{Owner: journal.Owner{Host: "bench"}, TTL: time.Hour})
	return err
}

// append appends what a run appends.
func (g *group) append(o groupRun) error {
	chat := g.store.Session(o.id)
	var head uint64
	for n, c := range g.appends {
		var with []journal.Companion
		if len(c.messages) > 0 {
			with = append(with, chat.Companion(fmt.Sprint(o.id, "/", n), c.messages))
		}
		if err := g.store.Append(context.Background(), o.id, o.claim.Epoch, head, c.facts, with...); err != nil {
			return err
		}
		head += uint64(len(c.facts))
	}
	return nil
}
