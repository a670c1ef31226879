package machine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// dice makes choices out of fuzzed bytes; out of bytes, the first choice.
type dice []byte

func (d *dice) roll(n int) int {
	if len(*d) == 0 {
		return 0
	}
	v := int((*d)[0]) % n
	*d = (*d)[1:]
	return v
}

func (d *dice) flip() bool { return d.roll(2) == 1 }

func pick[T any](d *dice, list ...T) T { return list[d.roll(len(list))] }

// FuzzReplay replays facts that nobody's rules made: what Check lets pass must fold
// without a panic, and a driver that claims the run must find something to do in it.
func FuzzReplay(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		f.Add(randomBytes(r, 300))
	}
	f.Fuzz(func(t *testing.T, data []byte) { playFacts(t, data) })
}

// TestRandomFacts is FuzzReplay on bytes drawn anew from a fixed seed.
func TestRandomFacts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	folded := make(map[journal.Kind]int)
	for range 10000 {
		for k, n := range playFacts(t, randomBytes(r, 900)) {
			folded[k] += n
		}
	}
	for _, k := range []journal.Kind{journal.KindStarted, journal.KindForked, journal.KindClaimed, journal.KindResumed, journal.KindLoaded,
		journal.KindPrepared, journal.KindIntended, journal.KindResponded, journal.KindPlanned, journal.KindDecided, journal.KindSettled,
		journal.KindExpired, journal.KindJudged, journal.KindConfirmed, journal.KindAbsent, journal.KindFailed, journal.KindFired, journal.KindTransferred, journal.KindChecked,
		journal.KindHandled, journal.KindAdded, journal.KindAdmitted, journal.KindObserved, journal.KindCancelled, journal.KindFinished} {
		if folded[k] < 50 {
			t.Errorf("only %d facts of kind %s were folded", folded[k], k)
		}
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// playFacts steps the facts that Check accepts among those the bytes describe, and
// counts them.
func playFacts(t *testing.T, data []byte) map[journal.Kind]int {
	d := dice(data)
	m := New()
	var log []journal.Fact
	folded := make(map[journal.Kind]int)
	take := func(facts []journal.Fact) {
		for _, f := range facts {
			folded[f.Body.Kind()]++
		}
		log = append(log, facts...)
	}
	for now := int64(1000); len(d) > 0; now += int64(d.roll(3)) * 400_000 {
		frames := m.frames
		if d.roll(8) > 0 {
			frames = slices.Collect(m.Frames())
		}
		frame, body := randomFact(&d, frames[d.roll(len(frames))])
		f := journal.Fact{Frame: frame, Time: now, Body: body}
		if m.Check(f) != nil {
			continue
		}
		m.Step(f)
		if d.roll(4) > 0 {
			take(m.Ready(now).Facts)
		}
		look(t, m)
	}
	take(m.Flush().Facts)
	r := New()
	for _, f := range log {
		if err := r.Replay(f); err != nil {
			t.Fatal(err)
		}
	}
	if diff := stateDiff(m, r); diff != "" {
		t.Fatalf("replay is not live (-live +replay)\n%s", diff)
	}
	goOn(t, r)
	return folded
}

// goOn claims a replayed run: there must be something to do or to wait for.
func goOn(t *testing.T, m *Machine) {
	claim := journal.Fact{Body: &journal.Claimed{Epoch: m.Epoch() + 1}}
	if m.Started() == nil || m.Check(claim) != nil {
		return
	}
	m.Step(claim)
	rd := m.Ready(1000)
	look(t, m)
	if rd.Status == Running && len(rd.Effects) == 0 {
		t.Fatalf("the run is running and nothing is in flight: %+v", m.root.state)
	}
}

// look asks the machine everything; what it says must be consistent.
func look(t *testing.T, m *Machine) {
	status := m.Status()
	interruptions := m.Interruptions()
	for range m.Unsettled() {
	}
	if status == Waiting && len(interruptions) == 0 {
		t.Fatal("the run waits for nobody")
	}
	for _, in := range interruptions {
		f := m.Frame(in.Frame)
		f.Call(in.Call)
		f.KeyOf(in.Call)
		f.OutputOf(in.Call)
		if in.Digest != f.find(in.Call).digest {
			t.Fatal("an interruption with another digest than the call's")
		}
	}
	m.Exposed()
	m.LeftRunning()
	m.Deadline()
	inFlight := 0
	for _, f := range m.frames {
		lookInto(t, f)
		inFlight += f.inFlight
	}
	if inFlight != m.InFlight() {
		t.Fatalf("%d effects of frames are in flight, %d of the run", inFlight, m.InFlight())
	}
}

// lookInto asks a frame everything.
func lookInto(t *testing.T, m *Frame) {
	if m.persisted > m.settled || m.settled > len(m.history) {
		t.Fatalf("persisted %d, settled %d, history %d", m.persisted, m.settled, len(m.history))
	}
	for i, p := range m.history[:m.settled] {
		if p.item.IsZero() && !p.dropped && m.outputAt(i) {
			t.Fatalf("the output at %d is settled and missing", i)
		}
	}
	m.Results()
	m.Response()
	m.InputEnd()
	m.Manifest()
	m.ResponseID()
	m.Route()
	for range m.Startable() {
	}
	if m.finished != nil && (m.inFlight > 0 || m.entered > 0 || m.running > 0) {
		t.Fatalf("frame %q has ended, and something of it is in flight", m.name)
	}
	for range m.Items(0, m.settled) {
	}
}

// outputAt says that a place was reserved for an output.
func (m *Frame) outputAt(i int) bool {
	return slices.ContainsFunc(m.responses, func(r *response) bool {
		return slices.ContainsFunc(r.calls, func(c *call) bool { return c.out == i })
	})
}

var fuzzItems = []item.Item{
	item.FunctionCallItem("", "c1", "look", "{}"), item.FunctionCallItem("", "c2", "pay", `{"a":1}`),
	item.FunctionCallItem("", "c3", "pay", "{"), item.FunctionCallItem("", "c1", "look", " {}"), item.FunctionCallItem("", "", "", ""),
	item.MessageItem("", "so"), item.UserText("hello"), item.FunctionOutput("c1", "found"),
	item.FromTrusted(`{"type":"custom_tool_call","call_id":"c4","name":"pay","input":"x"}`),
	item.FromTrusted(`{"type":"custom_tool_call","call_id":4,"name":[],"input":{}}`),
	item.FromTrusted(`{"type":"function_call","call_id":"c5","name":"pay","arguments":7}`),
	item.FromTrusted(`{"type":"computer_call","call_id":"c6"}`), item.FromTrusted(`{"type":`), item.FromTrusted("nonsense"), {},
}

func randomItems(d *dice) []item.Item {
	var list []item.Item
	for range d.roll(5) {
		n := len(fuzzItems)
		if d.roll(8) > 0 {
			n = 8 // mostly sound ones
		}
		list = append(list, fuzzItems[d.roll(n)])
	}
	return list
}

// randomID returns the id of an effect in flight, or any.
func randomID(d *dice, m *Frame, kinds ...journal.EffectKind) journal.EffectID {
	var ids []journal.EffectID
	for id := range m.handed {
		if slices.Contains(kinds, id.Kind) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b journal.EffectID) int { return cmp.Compare(a.String(), b.String()) })
	if len(ids) > 0 && d.roll(5) > 0 {
		return ids[d.roll(len(ids))]
	}
	return journal.EffectID{Kind: pick(d, kinds...), N: d.roll(4), P: d.roll(4), A: d.roll(4) - 1}
}

func randomRef(d *dice) *journal.SessionRef {
	if d.flip() {
		return nil
	}
	return &journal.SessionRef{ID: "s", Own: d.flip(), Batches: d.flip()}
}
