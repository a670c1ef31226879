package pawl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// thought is a reasoning item with an id.
func thought(id string) pawl.Item { return item.ReasoningItem(id, "hm") }

// reasoningIDs returns the ids of the reasoning items of a list.
func reasoningIDs(list []pawl.Item) (ids []string) {
	for _, it := range list {
		if it.Type() == item.TypeReasoning {
			ids = append(ids, it.Head().ID)
		}
	}
	return ids
}

// What is sent, stored and returned is equal and has no ids of reasoning items, over a pause and
// a round trip; the ledger has them [S13.1] [S13.2].
func TestOmitReasoningIDs(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		s := newScript(items(thought("rs_1"), fc("c1", "pay", `{"cents":1}`)), items(thought("rs_2"), item.MessageItem("msg_1", "done")))
		agent := agentWith(s, charging("pay", &e, asking))
		store, sess := journal.NewMemory(), session.NewMemory("s")
		r := &pawl.Runner{Store: store}
		res := must(t)(m.run(r, t.Context(), agent, pawl.Input{item.UserText("go"), thought("rs_0")},
			&pawl.RunOptions{ID: "r", Session: sess, OmitReasoningIDs: true}))
		state := viaJSON(t, res.State())
		if err := state.Approve(state.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		res = must(t)(m.resume(r, t.Context(), agent, state, &pawl.RunOptions{Session: sess}))
		sameViews(t, res, s, sess)
		if diff := cmp.Diff([]string{"", "", ""}, reasoningIDs(res.ToInputList())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		last, _ := res.NewItems()[len(res.NewItems())-1].Message()
		if id := res.NewItems()[len(res.NewItems())-1].Head().ID; id != "msg_1" || last.Text() != "done" {
			t.Errorf("the message became %s", res.NewItems()[len(res.NewItems())-1])
		}
		var recorded []string
		for _, f := range facts(t, store, "r") {
			switch b := f.Body.(type) {
			case *journal.Started:
				recorded = append(recorded, reasoningIDs(b.Input)...)
			case *journal.Responded:
				recorded = append(recorded, reasoningIDs(b.Items)...)
			}
		}
		if diff := cmp.Diff([]string{"rs_0", "rs_1", "rs_2"}, recorded); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
	})
}

// What an older run left in the session stays there as it is, and is sent without ids; a batch
// whose append failed is found behind it all the same.
func TestOmitReasoningIDsOfAnOlderRun(t *testing.T) {
	for stored, name := range map[int]string{0: "absent", pawltest.AllItems: "there"} {
		t.Run(name, func(t *testing.T) {
			held := session.NewMemory("s")
			if err := held.Append(t.Context(), []pawl.Item{item.UserText("before"), thought("rs_0"), item.MessageItem("", "yes")}); err != nil {
				t.Fatal(err)
			}
			sess := pawltest.NewFaultySession(held, map[int]pawltest.SessionFault{2: {Stored: stored}})
			s := newScript(items(thought("rs_1"), item.MessageItem("", "done")))
			agent := agentWith(s)
			var r pawl.Runner
			_, err := r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", Session: sess, OmitReasoningIDs: true})
			if !errors.Is(err, pawltest.ErrSessionFault) {
				t.Fatal(err)
			}
			res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{Session: sess}))
			list, err := held.Items(t.Context(), -1)
			if diff := cmp.Diff([]string{"rs_0", ""}, reasoningIDs(list)); diff != "" || err != nil {
				t.Errorf("session: %v (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff([]string{"", ""}, reasoningIDs(res.ToInputList())); diff != "" {
				t.Errorf("replay (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{""}, reasoningIDs(s.calls()[0].Input)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// Without the option ids stay.
func TestReasoningIDsAreKept(t *testing.T) {
	var e effects
	sess := session.NewMemory("s")
	s := newScript(items(thought("rs_1"), fc("c1", "pay", `{"cents":1}`)), says("done"))
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agentWith(s, charging("pay", &e, nil)), pawl.UserText("go"), &pawl.RunOptions{Session: sess}))
	sameViews(t, res, s, sess)
	if i := slices.IndexFunc(res.NewItems(), func(it pawl.Item) bool { return strings.Contains(it.Raw(), "rs_1") }); i != 0 {
		t.Errorf("new items %v", res.NewItems())
	}
}
