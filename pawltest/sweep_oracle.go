package pawltest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
)

// ending is what a run leaves behind.
type ending struct {
	Status pawl.Status
	Final  string
	Error  string
	// Tripped is the guardrail that ended the run.
	Tripped string
	Usage   pawl.Usage
	// Session, Wire and Replay are the conversation as the session, the model and the caller know it.
	Session, Wire, Replay []item.Item
	// Wires are the conversations as the models know them, by script, Sessions those of nested runs.
	Wires, Sessions map[string][]item.Item
	// Effects are "TOOL CALL ARGUMENTS KEY", sorted; Asked are the frames of the calls that somebody was asked about, by key.
	Effects []string
	Asked   map[string]string
	Moments map[string]*moments
	// Committed is what transactional tools committed.
	Committed []string
}

// ending looks at what is left behind.
func (st *stage) ending(res *pawl.Result, err error) *ending {
	e := &ending{}
	if err != nil {
		e.Error = err.Error()
		if st.state != nil {
			res = st.state.Result()
		} else if st.store != nil {
			var r pawl.Runner
			r.Store = st.store
			if state, err := r.State(context.Background(), st.runID()); err == nil {
				res = state.Result()
			}
		}
	}
	if res != nil {
		e.Status, e.Final, e.Usage, e.Replay = res.Status, res.FinalOutput, res.Usage, res.ToInputList()
	}
	e.Tripped = tripOf(err)
	e.Session, e.Asked = st.rows(), st.asked
	if st.scenario.Committed != nil {
		var err error
		if e.Committed, err = st.scenario.Committed(st.store); err != nil {
			st.far.problem("what was committed: %v", err)
		}
		slices.Sort(e.Committed)
	}
	f := st.far
	f.mu.Lock()
	defer f.mu.Unlock()
	e.Wire, e.Wires, e.Moments, e.Sessions = f.wire, maps.Clone(f.wires), f.moments, map[string][]item.Item{}
	for id, s := range f.sessions {
		e.Sessions[id], _ = s.Items(context.Background(), -1) // the error is the context's
	}
	keys := map[string]bool{}
	for _, s := range f.effects {
		keys[fmt.Sprintf("%s %s %s %s", s.Tool, s.ID, s.Arguments, s.Key)] = true
	}
	e.Effects = slices.Sorted(maps.Keys(keys))
	return e
}

// rows reads the session, as somebody does who knows nothing of the run.
func (st *stage) rows() []item.Item {
	s := st.scenario.Session
	if s == NoSession {
		return nil
	}
	if s == SessionInStore && st.store != nil && st.scenario.StoreSession != nil {
		items, err := st.scenario.StoreSession(st.store, sessionID).Items(context.Background(), -1)
		if err != nil {
			st.far.problem("the session: %v", err)
		}
		return items
	}
	items, _ := st.far.session.Items(context.Background(), -1) // the error is the context's
	return items
}

// doubted checks that a call may be in doubt.
func (st *stage) doubted(in pawl.Interruption) {
	st.far.note("  in doubt: %s %s", in.Tool, in.CallID)
	if st.scenario.NoDoubt {
		st.far.problem("liveness: %s %s is in doubt, and its far side can tell", in.Tool, in.CallID)
	}
	if class := st.far.classes[in.Tool]; class != pawl.AtMostOnce {
		st.far.problem("liveness: %s %s is in doubt, and its class is %s", in.Tool, in.CallID, class)
	}
	if st.store != nil && !st.far.doubtful(in.ID) {
		st.far.problem("liveness: %s %s is in doubt, and had no intent without an outcome", in.Tool, in.CallID)
	}
}

// afterwards lets a process that was stopped go on, and repeats every command: none of it may change anything [G6].
func (st *stage) afterwards(w *World) {
	if st.point.fault.crashes() && st.store != nil {
		time.Sleep(leaseOver) // nobody can tell that its last driver has died
	}
	first, once, requests := st.end, st.far.count(), st.far.answered()
	if !st.back {
		st.goOn()
		st.unchanged("a process that was stopped and went on", first, st.far.count, once)
		requests = st.far.answered() // nothing can keep a request back that is on its way
	}
	effects := st.far.attempts()
	st.end = nil
	st.calls++
	if st.point.carrier == byJSON && st.saved != nil {
		st.parse()
	}
	st.state = st.unstaged()
	from := st.from()
	again := func() fate { return w.call(func() (*pawl.Result, error) { return w.drive(from) }) }
	f := again()
	if st.claimed(f.err) { // its last driver did not get to release it
		time.Sleep(leaseOver)
		f = again()
	}
	if f.err != nil && f.err.Error() != first.Error {
		st.far.problem("G6: resuming again: %v", f.err)
	}
	if f.res != nil && (f.res.Status != first.Status || f.res.FinalOutput != first.Final) {
		st.far.problem("G6: resuming again gave %s %q, and before %s %q", f.res.Status, f.res.FinalOutput, first.Status, first.Final)
	}
	st.decideAgain(w)
	st.unchanged("resuming and deciding again", first, st.far.attempts, effects)
	if st.far.answered() != requests {
		st.far.problem("G6: resuming again asked the model")
	}
	st.end = first
}

// unstaged is the state to resume from at the end: without decisions that were staged for an earlier call.
func (st *stage) unstaged() *pawl.RunState {
	if st.point.carrier == inStore {
		return nil
	}
	return st.state
}

func (st *stage) unchanged(who string, first *ending, count func() int, effects int) {
	if n := count(); n != effects {
		st.far.problem("G6: %s had %d effects", who, n-effects)
	}
	if a, b := texts(first.Session), texts(st.rows()); !slices.Equal(a, b) {
		st.far.problem("G6: %s changed the session: %s", who, difference(a, b))
	}
}

// decideAgain takes every decision again: it is nothing new. Then it takes the opposite ones: they are refused.
func (st *stage) decideAgain(w *World) {
	for _, d := range st.decided {
		opposite := pawl.Reject(d.Interruption, "sweep", "")
		if d.Verdict == pawl.Reject("", "", "").Verdict {
			opposite = pawl.Approve(d.Interruption, "sweep")
		}
		var same, other error
		w.call(func() (*pawl.Result, error) {
			same, other = st.decideOn(w, d), st.decideOn(w, opposite)
			return nil, nil
		})
		if same != nil {
			st.far.problem("G6: the same decision again: %v", same)
		}
		if other == nil {
			st.far.problem("G6: another decision on %s was taken", d.Interruption)
		}
	}
}

func (st *stage) decideOn(w *World, d pawl.Decision) error {
	if st.state != nil {
		return st.state.Decide(d)
	}
	return w.runner.Decide(context.Background(), st.runID(), d)
}

// checkClean checks the clean run: it comes to what the scenario says, and to the same in each row [G3, G4].
func (st *stage) checkClean(first *ending) {
	s, f := st.scenario, st.far
	if st.end == nil {
		f.problem("the clean run does not end")
		return
	}
	want := s.WantStatus
	if want == "" {
		want = pawl.StatusFinished
	}
	if st.end.Status != want || st.end.Final != s.Want {
		f.problem("the clean run is %s with %q (error %q), want %s with %q", st.end.Status, st.end.Final, st.end.Error, want, s.Want)
	}
	var effects []string
	for _, e := range f.effects {
		effects = append(effects, e.Tool+" "+e.Arguments)
	}
	slices.Sort(effects)
	if wanted := slices.Sorted(slices.Values(s.WantEffects)); s.WantEffects != nil && !slices.Equal(effects, wanted) {
		f.problem("the clean run has the effects %q, want %q", effects, wanted)
	}
	if asked := slices.Sorted(maps.Values(st.asks)); s.WantAsked != nil && !slices.Equal(asked, slices.Sorted(slices.Values(s.WantAsked))) {
		f.problem("the clean run asks about %q, want %q", asked, s.WantAsked)
	}
	if tokens := int64(110 * f.accepted); !s.Races && s.plainUsage() && st.end.Usage.Total != tokens {
		f.problem("usage: %d tokens were counted, and the model reported %d", st.end.Usage.Total, tokens)
	}
	st.checkViews()
	st.checkTold()
	st.compare(first, nil)
}

// plainUsage says that no step of the script has a usage of its own.
func (s Scenario) plainUsage() bool {
	return !slices.ContainsFunc(s.Script, func(step ScriptedStep) bool { return step.Usage != nil })
}

// check checks a point.
func (st *stage) check() {
	if !st.struck {
		st.far.problem("vacuous: the fault did not strike")
	}
	if st.end == nil {
		return
	}
	st.checkViews()
	st.checkTold()
	st.checkAdded()
	if st.end.Error != "" && st.end.Error != st.clean.Error && st.end.Tripped == "" {
		return // an end for which nothing more is promised
	}
	st.compare(st.clean, st.excused())
}

// checkViews compares the conversation as the session, the model and the caller know it [G2].
func (st *stage) checkViews() {
	e := st.end
	for name, items := range e.views() {
		if name != "replay" && !strings.HasPrefix(name, "session") {
			continue // what the model was sent was looked at when it was
		}
		for _, problem := range Unpaired(items) {
			st.far.problem("G2: %s: %s", name, problem)
		}
	}
	st.checkWithheld()
	replay, wire, session := texts(e.Replay), texts(e.Wire), texts(e.Session)
	if st.scenario.Session != NoSession && !slices.Equal(replay, session) {
		st.far.problem("G2: replay and session differ: %s", difference(replay, session))
	}
	// The model has not been told what became of the calls of its last response; one that nobody recorded is in no other view.
	n := min(len(replay), len(wire))
	if !st.scenario.Filtered && !st.scenario.Races && !slices.Equal(replay[:n], wire[:n]) && !st.point.fault.stops() {
		st.far.problem("G2: the model and the replay differ: %s", difference(wire, replay))
	}
}

// compare compares the end with another one, but for the calls that are excused.
func (st *stage) compare(want *ending, excused map[string]bool) {
	got, f := st.end, st.far
	if want == got {
		return
	}
	if got.Status != want.Status {
		f.problem("the run is %s (error %q), without the fault %s", got.Status, got.Error, want.Status)
		return
	}
	for _, e := range got.Effects {
		if !slices.Contains(want.Effects, e) {
			f.problem("the effect %s is none of those without the fault", e)
		}
	}
	for _, e := range got.Committed {
		if !slices.Contains(want.Committed, e) {
			f.problem("%s was committed, and is not without the fault", e)
		}
	}
	if endsWithOutput(want.Replay) && (len(excused) > 0 || len(st.settled) > 0) {
		return // the tool's answer was to end the run, and the model was told something else
	}
	if got.Final != want.Final {
		f.problem("the final output is %q, without the fault %q", got.Final, want.Final)
	}
	if !st.scenario.Races {
		st.compareViews(want, excused)
	}
	mask := func(effects []string) []string {
		return slices.DeleteFunc(slices.Clone(effects), func(e string) bool { return excused[strings.Fields(e)[1]] })
	}
	a, b := mask(want.Effects), mask(got.Effects)
	if st.scenario.Races {
		a = slices.DeleteFunc(a, func(e string) bool { return !slices.Contains(b, e) })
	}
	if !slices.Equal(a, b) {
		f.problem("the effects differ from those without the fault: %s", difference(a, b))
	}
	if !slices.Equal(got.Committed, want.Committed) && len(excused) == 0 {
		f.problem("committed: %q, without the fault %q", got.Committed, want.Committed)
	}
	if !st.scenario.Races && len(st.nestedFailed()) == 0 {
		st.compareUsage(want.Usage, got.Usage)
	}
}

// compareUsage checks that every response was counted once. One that was read back from a conversation has no usage.
func (st *stage) compareUsage(want, got pawl.Usage) {
	if st.scenario.conversation() != "" && got.Total == want.Total-110 && got.Unreported == want.Unreported+1 && got.Requests == want.Requests {
		return
	}
	if got.Total != want.Total || got.Requests-got.Unreported != want.Requests-want.Unreported {
		st.far.problem("usage: %d tokens in %d answers, without the fault %d in %d", got.Total, got.Requests-got.Unreported,
			want.Total, want.Requests-want.Unreported)
	}
}

// endsWithOutput says that a conversation ends with the output of a call.
func endsWithOutput(items []item.Item) bool {
	return len(items) > 0 && item.IsOutput(items[len(items)-1].Type())
}

// texts writes items in one form, so that they can be compared.
func texts(items []item.Item) []string { return masked(items, nil) }

// masked is texts without the outputs of some calls.
func masked(items []item.Item, calls map[string]bool) (list []string) {
	for _, it := range items {
		v, err := decode(it.Raw())
		if o, ok := v.(map[string]any); ok && o["output"] != nil && calls[it.Head().CallID] {
			o["output"] = "..."
		}
		text, err2 := json.Marshal(v)
		if err != nil || err2 != nil {
			text = []byte(it.Raw())
		}
		list = append(list, string(text))
	}
	return list
}

// difference shows where two lists begin to differ.
func difference(want, got []string) string {
	i := 0
	for i < min(len(want), len(got)) && want[i] == got[i] {
		i++
	}
	at := func(list []string) string {
		if i < len(list) {
			return list[i]
		}
		return "(the end)"
	}
	return fmt.Sprintf("at %d of %d and %d, %s became %s", i, len(want), len(got), at(want), at(got))
}
