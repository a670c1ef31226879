package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// In which order the result of a call and what follows from it become durable.

// ordered is the reason of variants in which the process dies at a certain write.
func ordered(c cell) string { return cmp.Or(gone(c), engineWrites(c)) }

func s23() scenario {
	s := scenario{
		id: "S23",
		script: `A tool has paid. Two writes follow: the record of its result, and the one with which the run goes on from it, which
is the next commit of the store or the batch of a session that is elsewhere. The store takes 80 ms longer for the one or for the
other, and at the entry of the second the process dies, or that write fails. Whichever is slow, the result was there first: who
resumes pays no second time, asks nobody whether it was paid, and goes on from the result that was recorded.`,
		sources: []string{"https://github.com/langchain-ai/langgraph/issues/8039"},
	}
	for _, slow := range []step{theResult, theAdvance} {
		for _, kind := range []sessionKind{inStore, plain} {
			s.variants = append(s.variants, variant{name: string(slow) + " is slow, " + string(kind) + " session, dies", impossible: ordered,
				play: func(w *world) { s23Dies(w, slow, kind) }})
		}
		s.variants = append(s.variants, variant{name: string(slow) + " is slow, the advance fails",
			play: func(w *world) { s23Fails(w, slow) }, impossible: engineWrites})
	}
	return s
}

const s23Paid = "user pay; call c1 pay; output c1 receipt-5; message done"

func s23Dies(w *world, slow step, kind sessionKind) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{plainPay}, kind
	script := payBy("pay", "output c1 receipt-5")
	asked := 1
	if kind == inStore { // the result commits with the batch and the next request, so what dies is the response to that
		script, asked = append(script, script[1]), 2
	}
	w.model(script...)
	w.dies(request{Input: []item.Item{item.UserText("pay")}, Slow: slow, Dies: atAdvance})
	w.requests(asked)
	w.effects("pay c1")

	w.resume()
	w.ends("done")
	w.effects("pay c1")
	w.requests(asked + 1)
	w.holds(s23Paid)
}

func s23Fails(w *world, slow step) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{plainPay}, plain
	w.model(payBy("pay", "output c1 receipt-5")...)
	w.do(request{Input: []item.Item{item.UserText("pay")}, Slow: slow, AdvanceFails: true})
	w.fails("session fault")
	w.requests(1)
	w.effects("pay c1")

	w.resume()
	w.ends("done")
	w.effects("pay c1")
	w.requests(2)
	w.holds(s23Paid)
}

// step is one of the two writes that follow an effect.
type step string

const (
	theResult  step = "the result"
	theAdvance step = "the advance"
)

// order is the two writes of a call of the API: which is slow, and what becomes of the second. The advance is what is written
// after an effect and does not hold its result, in whatever order they arrive.
type order struct {
	request
	log *pawltest.EffectLog

	mu      sync.Mutex
	entered map[step]bool
}

const slowness = 80 * time.Millisecond

// enter is called at the entry of a write. The first of its kind may be slow.
func (o *order) enter(kind step) error {
	effects, err := o.log.Effects()
	if err != nil || len(effects) == 0 {
		return err
	}
	o.mu.Lock()
	first := !o.entered[kind]
	o.entered[kind] = true
	o.mu.Unlock()
	if first && kind == o.Slow {
		time.Sleep(slowness)
	}
	if kind == theAdvance {
		o.Dies.here(atAdvance)
		if first && o.AdvanceFails {
			return pawltest.ErrSessionFault
		}
	}
	return nil
}

func newOrder(r request, log string) *order {
	return &order{request: r, log: pawltest.OpenEffectLog(log), entered: map[step]bool{}}
}

// orderedStore is a store whose appends are those writes.
type orderedStore struct {
	journal.Driver
	order *order
}

func (s *orderedStore) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	kind := theAdvance
	if slices.ContainsFunc(recs, isResult) {
		kind = theResult
	}
	if err := s.order.enter(kind); err != nil {
		return err
	}
	return s.Driver.Append(ctx, run, epoch, after, recs, with...)
}

// isResult reports whether a record is the outcome of a tool call.
func isResult(r journal.Record) bool {
	var payload struct{ ID string }
	_ = json.Unmarshal([]byte(r.Payload), &payload) // what has no id is not a call's
	return r.Kind == journal.KindSettled && strings.HasPrefix(payload.ID, "t")
}
