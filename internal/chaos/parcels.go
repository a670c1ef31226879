package chaos

import (
	"net/http"
	"time"
)

// parcel is a result that comes later. It is delivered at least once: a courier that died may have delivered it, and what
// was delivered comes again now and then.
type parcel struct {
	job       *job
	call, key string
	due       time.Time
	couriers  int // who are on their way with it
	// interruption is what the run waits with, once a courier has seen it.
	interruption string
	taken        bool // the run has taken it
	again        int  // how often it is to come again
	done         bool
}

// delivered is what a parcel holds.
func delivered(key string) string { return "delivered " + key }

// forged is what nobody sent.
func forged(key string) string { return "forged " + key }

// serveShip takes an order of a tool whose result comes later. A call can order but once.
func (p *parent) serveShip(_ http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	j := p.byRun[q.Get("run")]
	if j == nil || p.parcels[q.Get("key")] != nil {
		return
	}
	c := &parcel{job: j, call: q.Get("call"), key: q.Get("key"), due: time.Now().Add(time.Duration(p.rnd.IntN(600)) * time.Millisecond),
		again: p.rnd.IntN(3)}
	p.parcels[c.key] = c
	if !j.plan.Leave {
		p.transit = append(p.transit, c)
	}
}

// delivery returns a task for a courier, if a parcel is due. Sometimes two have the same one. What comes again is sometimes
// a forgery.
func (p *parent) delivery() (t task, ok bool) {
	now := time.Now()
	kept := p.transit[:0]
	var c *parcel
	for _, o := range p.transit {
		if o.done {
			continue
		}
		kept = append(kept, o)
		if c == nil && o.due.Before(now) && (o.couriers == 0 || p.rnd.IntN(8) == 0) {
			c = o
		}
	}
	p.transit = kept
	if c == nil {
		return t, false
	}
	c.couriers++
	l := letter{Call: c.call, Interruption: c.interruption, Text: delivered(c.key)}
	l.Forged = c.taken && p.rnd.IntN(3) == 0
	if l.Forged || p.o.lie == lieDeliver {
		l.Text = forged(c.key)
	}
	return task{Do: doDeliver, Plan: c.job.plan, Letter: l, parcel: c}, true
}

// arrive takes what became of a delivery. What was taken once is taken again, as the same; something else is refused.
func (p *parent) arrive(t task, r report) {
	c := t.parcel
	c.couriers--
	if r.Interruption != "" {
		c.interruption = r.Interruption
	}
	moot := r.Problem == problemNotOpen && (c.job.plan.Cancel || t.Letter.Interruption == "") // or he did not find what it is for
	switch {
	case t.Letter.Forged && r.Problem == "":
		p.blame(c.job, "call %s: a second result was taken, and it is another one", c.call)
	case c.taken && !t.Letter.Forged && r.Problem != "" && !moot:
		p.blame(c.job, "call %s: the result that was taken is refused when it comes again: %s", c.call, r.Text)
	case r.Problem == "":
		if c.taken {
			p.seen.again++
		}
		c.taken = true
	}
	late := r.Problem == problemDecided // somebody looked, and was first
	if c.taken && c.again == 0 || late && !c.taken || c.job.ended && !c.taken {
		c.done = true
	}
	if c.taken && c.again > 0 {
		c.again--
	}
	c.due = time.Now().Add(time.Duration(50+p.rnd.IntN(400)) * time.Millisecond)
}

// lose takes a parcel back from a courier that died.
func (p *parent) lose(t task) { t.parcel.couriers-- }

// arrived returns the key of a call whose result is due, empty if it has none.
func (p *parent) arrived(call string) (key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.transit {
		if c.call == call && c.due.Before(time.Now()) {
			return c.key
		}
	}
	return ""
}
