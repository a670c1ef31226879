package chaos

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// A call that comes to what no call should come to is seen.
func TestReadCalls(t *testing.T) {
	id := func(attempt int) journal.EffectID {
		return journal.EffectID{Kind: journal.EffectTool, N: 1, A: attempt}
	}
	intended := func(attempt int) journal.Body { return &journal.Intended{ID: id(attempt), NotAfter: 100} }
	settled := func(attempt int, o journal.Outcome) journal.Body {
		s := &journal.Settled{ID: id(attempt), Outcome: o}
		if o != journal.NotExecuted && o != journal.Pending && o != journal.AsksAgain {
			s.Output = item.FunctionOutput("c", "x")
		}
		return s
	}
	late := func(attempt int) journal.Body {
		return &journal.Settled{ID: id(attempt), Output: item.FunctionOutput("c", "x"), Late: true}
	}
	decided := func(stage int, v journal.Verdict) journal.Body {
		return &journal.Decided{Call: id(0), Stage: stage, Verdict: v}
	}
	claimed, absent := &journal.Claimed{}, &journal.Absent{ID: id(1)}
	expired := func(stage int) journal.Body { return &journal.Expired{Call: id(0), Stage: stage} }
	type bodies = []journal.Body
	for _, tt := range []struct {
		name, tool string
		gate       journal.Gate
		facts      []journal.Body
		want       []string
	}{
		{"once", toolPay, journal.Allow, bodies{intended(1), settled(1, journal.Done)}, nil},
		{"again after an end", toolPay, journal.Allow, bodies{intended(1), settled(1, journal.Done), intended(2)},
			[]string{"attempt 2 was intended when the call was settled"}},
		{"again in doubt", toolPay, journal.Allow, bodies{intended(1), claimed, intended(2)},
			[]string{"attempt 2 was intended when another might have happened"}},
		{"again, harmless", toolPut, journal.Allow, bodies{intended(1), claimed, intended(2)}, nil},
		{"again, not executed", toolPay, journal.Allow, bodies{intended(1), settled(1, journal.NotExecuted), intended(2)}, nil},
		{"again, as somebody said", toolPay, journal.Allow, bodies{intended(1), claimed, decided(1, journal.Retry), intended(2)}, nil},
		{"again, and was not in doubt", toolPay, journal.Allow, bodies{intended(1), decided(1, journal.Retry)},
			[]string{"somebody had it run again, and it was not in doubt"}},
		{"again, and the far side could tell", toolCharge, journal.Allow, bodies{intended(1), claimed, decided(1, journal.Retry)},
			[]string{"somebody had it run again, and the far side could have told that it had not happened"}},
		{"the far side tells", toolCharge, journal.Allow, bodies{intended(1), claimed, absent, intended(2)}, nil},
		{"the far side tells unasked", toolCharge, journal.Allow, bodies{intended(1), absent},
			[]string{"attempt 1 is said not to have happened, and was not in doubt"}},
		{"settled, and was not in doubt", toolPay, journal.Allow, bodies{intended(1), decided(1, journal.GiveUp)},
			[]string{"somebody settled it, and it was not in doubt"}},
		{"a result that was to come", toolShip, journal.Allow, bodies{intended(1), settled(1, journal.Pending), claimed, decided(1, journal.Settle)}, nil},
		{"given up, and was to come", toolShip, journal.Allow, bodies{intended(1), settled(1, journal.Pending), decided(1, journal.GiveUp)},
			[]string{"somebody settled it, and it was not in doubt"}},
		{"without an approval", toolRefund, journal.Ask, bodies{intended(1)}, []string{"attempt 1 was intended without an approval"}},
		{"approved", toolRefund, journal.Ask, bodies{decided(0, journal.Approve), intended(1)}, nil},
		{"decided twice", toolRefund, journal.Ask, bodies{decided(0, journal.Approve), decided(0, journal.Reject)},
			[]string{"stage 0 was decided twice"}},
		{"without an answer", toolSell, journal.Allow, bodies{intended(1), settled(1, journal.AsksAgain), intended(2)},
			[]string{"attempt 2 was intended without an approval"}},
		{"answered", toolSell, journal.Allow, bodies{intended(1), settled(1, journal.AsksAgain), decided(1, journal.Approve), intended(2)}, nil},
		{"answered unasked", toolSell, journal.Allow, bodies{intended(1), decided(1, journal.Approve)},
			[]string{"approve at stage 1, and nobody had asked"}},
		{"expired too early", toolSell, journal.Allow, bodies{intended(1), settled(1, journal.AsksAgain), expired(1)},
			[]string{"it expired 1000 ms before its time"}},
		{"expired, and approved", toolOffer, journal.Ask, bodies{expired(0), decided(0, journal.Approve)}, []string{"stage 0 was decided twice"}},
		{"expired, and ran", toolBid, journal.Ask, bodies{expired(0), intended(1)}, []string{"attempt 1 was intended without an approval"}},
		{"expired, failed, and approved", toolBid, journal.Ask, bodies{expired(0), decided(0, journal.Approve), intended(1)}, nil},
		{"expired, and has no deadline", toolRefund, journal.Ask, bodies{expired(0)}, []string{"it expired, and had no deadline"}},
		{"found out", toolPay, journal.Allow, bodies{intended(1), settled(1, journal.Unknown), decided(1, journal.Settle)}, nil},
		{"found out, and was known", toolPay, journal.Allow, bodies{intended(1), settled(1, journal.Done), decided(1, journal.Settle)},
			[]string{"somebody settled it, and it was not in doubt"}},
		{"late, and open", toolMail, journal.Allow, bodies{intended(1), late(1)}, []string{"a result of attempt 1 came late, and the call was open"}},
		{"late", toolMail, journal.Allow, bodies{intended(1), settled(1, journal.Unknown), late(1)}, nil},
	} {
		c := &call{id: "c", tool: tt.tool, gate: tt.gate, asking: tt.gate == journal.Ask, askedAt: -patience.Milliseconds()}
		l := &ledger{always: map[string]bool{}, responses: []*response{{calls: []*call{c}}}}
		for _, b := range tt.facts {
			if _, ok := b.(*journal.Claimed); ok {
				l.claimed()
			} else if err := l.aboutCall(journal.Fact{Body: b}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(tt.want, c.odd); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.name, diff)
		}
	}
}

// What a campaign of some length never came upon, it has not tested.
func TestSightsMissing(t *testing.T) {
	all := sights{1, 1, 1, 1, 1, 1, 1, 1, 1}
	some := all
	some.late, some.told = 0, 0
	for _, tt := range []struct {
		seen sights
		long bool
		want []string
	}{
		{all, true, nil},
		{some, true, []string{"no late results", "no doubts the far side ended"}},
		{some, false, nil},
	} {
		duration := enough
		if !tt.long {
			duration--
		}
		if diff := cmp.Diff(tt.want, tt.seen.missing(duration, Host{})); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
