package machine_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// view is what can be seen of a run and those nested in it.
type view struct {
	Run           string
	Status        machine.Status
	Interruptions []machine.Interruption
	Usage         machine.Usage
	Epoch         uint64
	Owner         journal.Owner
	Cancelled     bool
	Failure       *journal.Failed
	FailedIn      string
	Observed      uint64
	Context       string
	Facts         int
	InFlight      int
	Exposed       bool
	Deadline      int64
	Unsettled     []machine.Unsettled
	Open          []string // the names of the open frames
	Frames        []frameView
}

// frameView is what can be seen of a frame.
type frameView struct {
	Name          string
	Route         []string
	Items         []item.Item
	Places        []item.Item
	Settled       int
	InputAt       int
	InputEnd      int
	Turn, Attempt int
	MaxTurns      int
	Manifest      *journal.Manifest
	RecordedBy    int // the turn that recorded the manifest
	Response      int
	ResponseItems []item.Item
	ResponseID    string
	Session       *journal.SessionRef
	Loaded        bool
	Finished      *journal.Finished
	Startable     []journal.EffectID
	Results       []machine.Result
	Calls         []seenCall
	Recorded      []recorded
	Agent         string
	Said          said
}

// recorded is what Recorded says.
type recorded struct {
	Output item.Item
	OK     bool
	Failed bool
}

type seenCall struct {
	Info      machine.CallInfo
	Known     bool
	Arguments string
	Output    item.Item
	Key       string
}

// same says that two values are equal; an empty slice equals none.
func same(a, b any) bool { return reflect.DeepEqual(a, b) || cmp.Equal(a, b, cmpopts.EquateEmpty()) }

// show prints what is not zero in a value, without the names of types.
func show(v reflect.Value) string {
	switch s, ok := v.Interface().(fmt.Stringer); {
	case ok && v.Kind() != reflect.Pointer:
		return s.String()
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return show(v.Elem())
	}
	var parts []string
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				parts = append(parts, v.Type().Field(i).Name+":"+show(v.Field(i)))
			}
		}
		return "{" + strings.Join(parts, " ") + "}"
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, show(v.Index(i)))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case reflect.String:
		return strconv.Quote(v.String())
	}
	return fmt.Sprint(v.Interface())
}

// plainFailure takes the words off a failure of the machine's own.
func plainFailure(f *journal.Failed) *journal.Failed {
	if f == nil || f.Code != machine.CodeMaxTurns && f.Code != machine.CodeTripped && f.Code != machine.CodeExpired && f.Code != machine.CodeMaxDepth {
		return f
	}
	plain := *f
	plain.Error = ""
	return &plain
}

func (w *world) view() view {
	v := view{Run: w.run, Status: w.status(), Interruptions: w.interruptions(), Usage: w.usage, Epoch: w.epoch, Owner: w.owner,
		Cancelled: w.cancelled, Failure: plainFailure(w.failure), FailedIn: w.failedIn, Observed: w.observed, Context: w.context, Exposed: w.tried(), Facts: w.facts,
		InFlight: w.inFlight(), Unsettled: w.unknowns(), Open: w.openFrames()}
	for _, in := range v.Interruptions {
		if in.Deadline != 0 && (v.Deadline == 0 || in.Deadline < v.Deadline) {
			v.Deadline = in.Deadline
		}
	}
	for _, in := range w.frames {
		v.Frames = append(v.Frames, in.frameView())
	}
	return v
}

func (w *world) frameView() frameView {
	v := frameView{Name: w.name, Route: w.route(), Settled: w.mark(), InputAt: w.inputAt, InputEnd: w.inputEnd, MaxTurns: w.maxTurns,
		ResponseID: w.responseID, Session: w.session, Loaded: w.loaded, Finished: w.finished, Agent: w.agent, Said: w.said()}
	for _, p := range w.places {
		it := p.item
		if p.call != nil {
			it = w.state(p.call).output
		}
		if !p.dropped {
			v.Places = append(v.Places, it)
		}
		if !p.dropped && !it.IsZero() {
			v.Items = append(v.Items, it)
		}
	}
	if t := w.turn(); t != nil {
		v.Turn, v.Attempt, v.Manifest, v.RecordedBy = t.prepared.N, t.attempt, t.manifest, t.recorded
	}
	if r := w.response(); r != nil {
		v.Response, v.ResponseItems = r.n, r.items
	}
	v.Recorded = w.recorded(func(callID, name string, digest item.Digest) (item.Item, bool, error) {
		c := w.earlier(w.response(), callID)
		switch {
		case c == nil:
			return item.Item{}, false, nil
		case c.head().Name != name || c.planned.Digest != digest:
			return item.Item{}, false, errors.New("another call")
		}
		return w.state(c).output, true, nil
	})
	for _, c := range w.newest() {
		s := w.state(c)
		if s.phase == ready && !w.closed() && !c.handoff() && !c.spec.Hosted {
			v.Startable = append(v.Startable, c.id)
		}
		seen := seenCall{Arguments: w.arguments(c), Output: s.output, Key: w.key(c)}
		if seen.Known = c.planned.Tool >= 0; seen.Known {
			seen.Info = machine.CallInfo{Item: c.item, CallID: c.head().CallID, Spec: c.spec, Digest: s.digest, Edited: s.edited, Attempt: s.attempts, Failure: plainFailure(c.failed)}
			seen.Info.By, seen.Info.Approvals = w.approver(c)
		}
		v.Calls = append(v.Calls, seen)
	}
	for _, c := range w.results() {
		v.Results = append(v.Results, machine.Result{Name: c.spec.Name, CallID: c.head().CallID, Arguments: w.arguments(c), Output: w.state(c).output})
	}
	return v
}

// recorded asks for the record of each call that is to be planned, as it is and with other arguments [M7.7].
func (w *world) recorded(ask func(callID, name string, digest item.Digest) (item.Item, bool, error)) (out []recorded) {
	r := w.response()
	if r == nil || r.plan != nil {
		return nil
	}
	for _, it := range r.items {
		if call, err := it.FunctionCall(); err == nil {
			digest, _, _ := item.DigestArguments(call.Arguments)
			for _, d := range []item.Digest{digest, {1}} {
				output, ok, err := ask(call.CallID, call.Name, d)
				out = append(out, recorded{output, ok, err != nil})
			}
		}
	}
	return out
}

// approver is who approved the call last, with a decision on it or a sticky one, and how often it was after an attempt.
func (w *world) approver(c *call) (by string, approvals int) {
	d := c.decision(0)
	if d == nil {
		d = w.decidedBy(c, w.state(c).at)
	}
	if d != nil && d.Verdict == journal.Approve {
		by = d.By
	}
	for stage := 1; stage < w.state(c).stage; stage++ {
		if d := c.decision(stage); d != nil && d.Verdict == journal.Approve {
			by = d.By
			approvals++
		}
	}
	return by, approvals
}

// viewOf asks a machine for the same things.
func viewOf(m *machine.Machine, w *world) view {
	v := view{Run: m.Run(), Status: m.Status(), Interruptions: m.Interruptions(), Usage: m.Usage(), Epoch: m.Epoch(), Owner: m.Owner(),
		Cancelled: m.Cancelled(), Failure: plainFailure(m.Failure()), FailedIn: m.FailedIn(), Observed: m.Observed(), Context: m.Context(), Exposed: m.Exposed(), Facts: int(m.Facts()),
		InFlight: m.InFlight(), Deadline: m.Deadline(), Unsettled: slices.Collect(m.Unsettled())}
	for f := range m.Frames() {
		v.Open = append(v.Open, f.Name())
	}
	for _, in := range w.frames {
		v.Frames = append(v.Frames, frameViewOf(m.Frame(in.name), in))
	}
	return v
}

func frameViewOf(f *machine.Frame, w *world) frameView {
	v := frameView{Name: f.Name(), Route: f.Route(), Settled: f.Settled(), MaxTurns: f.MaxTurns(), ResponseID: f.ResponseID(),
		Session: f.Session(), Loaded: f.Loaded(), Finished: f.Finished(), Agent: f.Agent(), Said: saidOf(f), Turn: f.Turn(), Attempt: f.Attempt(),
		Items: slices.Collect(f.Items(0, len(w.places)))}
	v.InputAt, v.InputEnd = f.InputEnd()
	v.Manifest, v.RecordedBy = f.Manifest()
	v.Response, v.ResponseItems, _ = f.Response()
	for i, p := range w.places {
		if !p.dropped {
			v.Places = append(v.Places, f.At(i))
		}
	}
	v.Startable = slices.Collect(f.Startable())
	for _, c := range w.newest() {
		var s seenCall
		s.Info, s.Known = f.Call(c.id)
		s.Info.Failure = plainFailure(s.Info.Failure)
		s.Arguments, s.Output, s.Key = f.Arguments(c.id), f.OutputOf(c.id), f.KeyOf(c.id)
		v.Calls = append(v.Calls, s)
	}
	v.Results, v.Recorded = f.Results(), w.recorded(f.Recorded)
	return v
}
