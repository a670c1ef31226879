package machine_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// frame returns the frame of that name, nil if it was not started.
func (w *whole) frame(name string) *world {
	for _, in := range w.frames {
		if in.name == name {
			return in
		}
	}
	return nil
}

// inside is the name of an agent call's frame [M17.1].
func (w *world) inside(c *call) string {
	return strings.TrimPrefix(fmt.Sprintf("%s/%d.%d", w.name, c.id.N, c.id.P), "/")
}

// within says that a frame is that one, or one inside of it.
func (w *world) within(outer *world) bool {
	return w == outer || w.outer != nil && w.outer.within(outer)
}

// called returns the call whose frame has that name, and the call's own frame.
func (w *whole) called(name string) (*world, *call) {
	for _, in := range w.frames {
		for _, r := range in.responses {
			for _, c := range r.calls {
				if in.inside(c) == name {
					return in, c
				}
			}
		}
	}
	return nil, nil
}

// nest begins a frame.
func (w *whole) nest(name string) *world {
	in := &world{whole: w, name: name, delivered: map[int]bool{}, verdicts: map[journal.EffectID]bool{}}
	in.outer, in.caller = w.called(name)
	w.frames = append(w.frames, in)
	return in
}

func (w *world) depth() int {
	if w.outer == nil {
		return 0
	}
	return w.outer.depth() + 1
}

// closed says that what is said of a cancelled run holds of the frame.
func (w *world) closed() bool { return w.cancelled || w.shut }

// entered are the frames of the entered calls.
func (w *world) entered() (out []string) {
	for _, c := range w.newest() {
		if w.state(c).phase == entered {
			out = append(out, w.inside(c))
		}
	}
	return out
}

// open are the names of the frame and the open ones in it.
func (w *world) openFrames() []string {
	out := []string{w.name}
	for _, name := range w.entered() {
		out = append(out, w.frame(name).openFrames()...)
	}
	return out
}

func (w *whole) inFlight() (n int) {
	for _, in := range w.frames {
		n += len(in.flight)
	}
	return n
}

// route are the agents from the run's own to the one at work in the frame.
func (w *world) route() []string {
	if w.outer == nil {
		return []string{w.agent}
	}
	return append(w.outer.route(), w.agent)
}

// around is the id of an effect before or after the nested run of a call.
func (c *call) around(kind journal.EffectKind) journal.EffectID { return around(c.id, kind) }

func around(id journal.EffectID, kind journal.EffectKind) journal.EffectID {
	return journal.EffectID{Kind: kind, N: id.N, P: id.P, A: 1}
}

// readCall puts a fact of a frame with the call that runs it.
func (w *world) readCall(m moment) {
	w.caller.events = append(w.caller.events, m)
	if _, ok := m.fact.Body.(*journal.Started); ok {
		enter := func(id journal.EffectID) bool { return id == w.caller.around(journal.EffectEnter) }
		w.outer.land(enter)
		w.outer.notAgain = slices.DeleteFunc(slices.Clone(w.outer.notAgain), enter)
	}
}

// fail is M17.8.
func (w *world) fail(b *journal.Failed) {
	for in := w; in.outer != nil && !w.closed(); in = in.outer {
		if !in.caller.spec.TellFailure {
			continue
		}
		w.hit("M17.8 told")
		if in != w {
			w.hit("M17.8 told further out")
		}
		in.caller.failed = b
		in.close()
		return
	}
	if w.failure != nil {
		w.hit("M11.1 the first counts")
		return
	}
	if w.outer != nil {
		w.hit("M17.8 the run fails")
	}
	w.failure, w.failedIn = b, w.name
}

// close is M17.9.
func (w *world) close() {
	for _, in := range w.frames {
		if in.within(w) && in.finished == nil {
			if in != w {
				w.hit("M17.9 with those in it")
			}
			in.takeBackOpen()
			in.shut = true
			in.land(func(id journal.EffectID) bool { return id.Kind == journal.EffectWait })
		}
	}
}

// toldOfItsCall is M17.11: it says whether a failure is told that is of the call's own Enter or Leave.
func (w *world) toldOfItsCall(m moment, b *journal.Failed) bool {
	if b.ID.Kind != journal.EffectEnter && b.ID.Kind != journal.EffectLeave {
		return false
	}
	c := w.call(b.ID)
	if !c.spec.TellFailure || c.failed != nil {
		w.hit("M17.11 " + string(rune(b.ID.Kind)) + " fails the run")
		return false
	}
	w.hit("M17.11 " + string(rune(b.ID.Kind)) + " is told")
	c.failed = b
	c.events = append(c.events, m)
	return true
}

// aroundDue says that Enter or Leave is due [M11.2].
func (w *world) aroundDue(id journal.EffectID) bool {
	c := w.call(id)
	if c == nil || c.spec.Agent == "" || w.closed() {
		return false
	}
	s := w.state(c)
	return s.phase == ready && w.cleared(c, s) && id == c.around(journal.EffectEnter) || s.phase == leaving && id == c.around(journal.EffectLeave)
}

// applyAgent is M17.2 and M17.6.
func (r *ruling) applyAgent(w *world, c *call, s callState) {
	switch {
	case s.phase == leaving:
		r.hit("M17.6 left")
		r.hand(machine.Effect{ID: c.around(journal.EffectLeave), About: c.id})
	case w.depth() >= 8:
		r.emit(&journal.Failed{ID: c.around(journal.EffectEnter), Code: machine.CodeMaxDepth})
	default:
		r.hand(machine.Effect{ID: c.around(journal.EffectEnter), About: c.id, Key: w.key(c)})
	}
}

// checkInFrame is M17.3 and M17.4, w being the run's own frame.
func (w *world) checkInFrame(f journal.Fact) answer {
	in := w.frame(f.Frame)
	switch b := f.Body.(type) {
	case *journal.Forked, *journal.Claimed, *journal.Resumed, *journal.Cancelled, *journal.Added, *journal.Admitted, *journal.Observed:
		return refuse
	case *journal.Started:
		if in != nil {
			return refuse
		}
		return w.checkNested(f.Frame, b)
	}
	if in == nil {
		return refuse
	}
	return in.checkOwn(f)
}

// checkNested is M17.3.
func (w *world) checkNested(name string, b *journal.Started) answer {
	outer, c := w.called(name)
	if c == nil || c.spec.Agent == "" || outer.state(c).phase != ready || outer.closed() || outer.depth() >= 8 || !outer.cleared(c, outer.state(c)) {
		return notDue
	}
	if b.Run != "" || b.Agent != c.spec.Agent || !oneBinding(b) {
		return refuse
	}
	for in := outer; in != nil; in = in.outer {
		sameSession := b.Session != nil && in.session != nil && b.Session.ID == in.session.ID && b.Session.Backend == in.session.Backend
		samePointer := b.Previous != "" && (b.Previous == in.start.Previous || in.managed() && b.Previous == in.previous)
		if sameSession || samePointer || b.Conversation != "" && b.Conversation == in.start.Conversation {
			w.hit("M17.3 what a frame around is on")
			return refuse
		}
	}
	if b.Machine > machine.Version {
		return refuseWith(journal.ErrNewerJournal)
	}
	return accept
}

// shares is M17.12.
func (w *world) shares() bool {
	return slices.ContainsFunc(w.frames[1:], func(in *world) bool {
		shares := in.finished == nil && (in.session != nil || in.start.Conversation != "")
		if shares {
			w.hit("M17.12 a frame on a session or a conversation")
		}
		return shares
	})
}

// knows says that there is no call in the frame of an agent call, or inside, whose effect nobody knows.
func (w *world) knows(c *call) bool {
	in := w.frame(w.inside(c))
	return in == nil || !slices.ContainsFunc(w.frames, func(o *world) bool { return o.within(in) && len(o.unknown()) > 0 })
}

// unknown are the calls that are settled and whose effect nobody knows, as they were settled [M8.23].
func (w *world) unknown() (out []machine.Unsettled) {
	ends := map[journal.EffectID]int{}
	for _, r := range w.responses {
		for _, c := range r.calls {
			s := w.state(c)
			if !w.isUnknown(c, s) {
				continue
			}
			u := w.unsettled(c, s, machine.StandsTold)
			ends[c.id] = s.end
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b machine.Unsettled) int { return ends[a.Call] - ends[b.Call] })
	return out
}

// openUnknown are the open calls whose effect nobody knows, in the frame and those inside [M17.13].
func (w *world) openUnknown() (out []machine.Unsettled) {
	for _, c := range w.newest() {
		switch s := w.state(c); {
		case s.phase == entered:
			out = append(out, w.frame(w.inside(c)).openUnknown()...)
		case s.phase == doubt:
			out = append(out, w.unsettled(c, s, machine.StandsInDoubt))
		case s.phase == pending:
			out = append(out, w.unsettled(c, s, machine.StandsExternal))
		case s.phase == running && !c.harmless() && !c.transactional():
			out = append(out, w.unsettled(c, s, machine.StandsRunning))
		}
	}
	return out
}

func (w *world) unsettled(c *call, s callState, standing machine.Standing) machine.Unsettled {
	u := machine.Unsettled{Standing: standing, Frame: w.name, Call: c.id, Tool: c.spec.Name, CallID: c.head().CallID, Attempt: s.attempts}
	for _, m := range c.events {
		if b, ok := m.fact.Body.(*journal.Intended); ok && b.ID.A == s.attempts {
			u.Begun = m.fact.Time
		}
	}
	if standing != machine.StandsRunning {
		u.Note = s.note
	}
	told := standing == machine.StandsTold
	if d := s.verdict; told && d != nil && (d.Verdict == journal.GiveUp || d.Verdict == journal.Reject) && d.Why != "" {
		u.Note = d.Why
	}
	if told {
		u.Interruption = fmt.Sprintf("%s#%d", w.inside(c), s.stage)
	}
	asks := standing == machine.StandsExternal || standing == machine.StandsInDoubt && !s.ask && !c.told(s)
	if asks && !w.closed() {
		u.Interruption = fmt.Sprintf("%s#%d", w.inside(c), s.stage)
	}
	return u
}

// unknowns is all of M8.23 and M17.13.
func (w *world) unknowns() (out []machine.Unsettled) {
	for _, in := range w.frames {
		out = append(out, in.unknown()...)
	}
	return append(out, w.openUnknown()...)
}
