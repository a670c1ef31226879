package pawl

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// A body with nothing else in flight needs no goroutine of its own as long as nothing else
// happens: the driver runs it itself, which saves two changes of goroutines a turn. If something
// comes up meanwhile, the alarm, a cancellation or an entry of the inbox, the caller's goroutine
// relieves the driver and goes on as if the body ran beside it. So the driver needs a goroutine
// of its own; a stream has none, because its events are shown on the caller's.

// helm is what one goroutine drives from.
type helm struct {
	state    atomic.Int32
	relieved chan struct{} // holds one
}

// The states of a helm: what its goroutine does.
const (
	helmDrives int32 = iota // its goroutine looks at what happens
	helmBody                // it runs a body and can be relieved
	helmLost                // another goroutine drives
)

// helmEnd is how the driving from a helm ended.
type helmEnd struct {
	res      *Result
	err      error
	panicked any
	exited   bool
}

// loop drives until the run ends, waits or fails, or the driving is stopped.
func (d *drive) loop() (*Result, error) {
	if d.emit != nil {
		return d.turns(time.Now())
	}
	unhook := context.AfterFunc(d.ctx, d.relieve)
	defer unhook()
	for now := time.Now(); ; {
		s := &helm{relieved: make(chan struct{}, 1)}
		d.helm.Store(s)
		end := make(chan helmEnd, 1)
		go d.steer(s, now, end)
		select {
		case <-s.relieved:
			var err error
			if now, err = d.collect(); err != nil {
				return nil, d.halt(err)
			}
		case e := <-end:
			switch {
			case e.panicked != nil:
				panic(e.panicked)
			case e.exited:
				runtime.Goexit()
			}
			return e.res, e.err
		}
	}
}

// steer drives and says how that ended, unless it is relieved. A panic, or user code that
// ends its goroutine, does to the caller what it would do if the caller's goroutine drove.
func (d *drive) steer(s *helm, now time.Time, end chan<- helmEnd) {
	e := helmEnd{exited: true}
	defer func() {
		if s.state.Load() == helmLost {
			return
		}
		if e.exited {
			e.panicked = recover()
		}
		end <- e
	}()
	res, err := d.turns(now)
	e = helmEnd{res: res, err: err}
}

// relieve has the driver relieved if it runs a body. What the next one is to see must be there
// already. It is called from any goroutine.
func (d *drive) relieve() {
	if s := d.helm.Load(); s != nil && s.state.CompareAndSwap(helmBody, helmLost) {
		s.relieved <- struct{}{}
	}
}

// isOnly says that a body which is about to start is all that is in flight, so that the driver
// can run it.
func (d *drive) isOnly() bool {
	return d.helm.Load() != nil && len(d.bodies) == 1 && d.beside+len(d.handed)+len(d.queue)+len(d.requests) == 0 && !d.moved
}

// runOnly runs the body that is all that is in flight. It reports false if this goroutine was
// relieved.
func (d *drive) runOnly(b *body) (drives bool) {
	s := d.helm.Load()
	d.alarmIn(tick)
	s.state.Store(helmBody)
	if d.ctx.Err() != nil || len(d.wake)+len(d.alarm) > 0 {
		d.relieve() // it may have come before this could be relieved
	}
	returned := false
	defer func() {
		if !returned {
			d.relieve() // the body ended the goroutine
		}
	}()
	o := d.runBody(b)
	returned = true
	if s.state.CompareAndSwap(helmBody, helmDrives) {
		d.queue = append(d.queue, o)
		return true
	}
	d.handIn(o)
	return false
}
