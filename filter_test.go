package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// What a filter returns is what the target reads, and what follows is behind it. The session
// and the replay list have everything [M18.7] [S15.5].
func TestHandoffFilter(t *testing.T) {
	note := item.UserText("in short: a refund")
	for name, tt := range map[string]struct {
		own, all pawl.HandoffFilter
		want     func(all []pawl.Item) []pawl.Item
	}{
		"none":         {want: func(all []pawl.Item) []pawl.Item { return all }},
		"no tools":     {own: pawl.RemoveTools(), want: func(all []pawl.Item) []pawl.Item { return []pawl.Item{all[0], all[1], all[2], all[3]} }},
		"of the run":   {all: pawl.RemoveTools(), want: func(all []pawl.Item) []pawl.Item { return []pawl.Item{all[0], all[1], all[2], all[3]} }},
		"the own wins": {own: func(_ context.Context, h *pawl.HandoffData) ([]pawl.Item, error) { return h.Items(), nil }, all: pawl.RemoveTools(), want: func(all []pawl.Item) []pawl.Item { return all }},
		"the history":  {own: func(_ context.Context, h *pawl.HandoffData) ([]pawl.Item, error) { return h.History, nil }, want: func(all []pawl.Item) []pawl.Item { return all[:3] }},
		"before":       {own: func(_ context.Context, h *pawl.HandoffData) ([]pawl.Item, error) { return h.PreHandoff, nil }, want: func(all []pawl.Item) []pawl.Item { return all[3:6] }},
		"the response": {own: func(_ context.Context, h *pawl.HandoffData) ([]pawl.Item, error) { return h.New, nil }, want: func(all []pawl.Item) []pawl.Item { return all[6:] }},
		"another word": {own: func(context.Context, *pawl.HandoffData) ([]pawl.Item, error) { return []pawl.Item{note}, nil }, want: func([]pawl.Item) []pawl.Item { return []pawl.Item{note} }},
		"backwards": {own: func(_ context.Context, h *pawl.HandoffData) ([]pawl.Item, error) {
			return []pawl.Item{h.History[2], note, h.History[0]}, nil
		},
			want: func(all []pawl.Item) []pawl.Item { return []pawl.Item{all[2], note, all[0]} }},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				d := newDesk([]step{items(item.MessageItem("m", "let me look"), fc("c1", "look", `{"cents":1}`)), items(item.ReasoningItem("rs", "hm"), ho("h1", "billing"))},
					[]step{calling(fc("c2", "bill", `{"cents":7}`)), says("billed")})
				d.triage.Tools, d.billing.Tools = []pawl.Tool{charging("look", &d.e, nil)}, []pawl.Tool{charging("bill", &d.e, nil)}
				d.noting(func(f *pawl.HandoffFunc[struct{}]) { f.Filter = tt.own })
				sess := session.NewMemory("s")
				if err := sess.Append(t.Context(), []pawl.Item{item.UserText("hello"), item.MessageItem("", "hello to you")}); err != nil {
					t.Fatal(err)
				}
				res := must(t)(m.run(new(pawl.Runner), t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{Session: sess, HandoffFilter: tt.all}))
				whole := []pawl.Item(res.ToInputList())
				if len(whole) != 12 {
					t.Fatalf("%d items", len(whole))
				}
				sameViews(t, res, d.asked, sess)
				first := tt.want(whole[:9:9])
				for i, want := range [][]pawl.Item{first, append(first[:len(first):len(first)], whole[9:11]...)} {
					if diff := cmp.Diff(want, d.answered.calls()[i].Input); diff != "" {
						t.Errorf("request %d (-want +got):\n%s", i+1, diff)
					}
				}
			})
		})
	}
}

// A filter that cannot be used is found before OnHandoff is called; the run goes on when it is
// mended.
func TestHandoffFilterFails(t *testing.T) {
	bang := errors.New("no answer")
	is := func(list ...pawl.Item) pawl.HandoffFilter {
		return func(context.Context, *pawl.HandoffData) ([]pawl.Item, error) { return list, nil }
	}
	for name, tt := range map[string]struct {
		filter pawl.HandoffFilter
		want   string
	}{
		"error":   {func(context.Context, *pawl.HandoffData) ([]pawl.Item, error) { return nil, bang }, "no answer"},
		"panic":   {func(context.Context, *pawl.HandoffData) ([]pawl.Item, error) { panic(bang) }, "panicked: no answer"},
		"nothing": {is(), "it returned no items"},
		"no item": {is(pawl.Item{}), "item 0 is empty"},
		"a call alone": {func(_ context.Context, h *pawl.HandoffData) ([]pawl.Item, error) { return h.New[:1], nil },
			`a model cannot be sent what it returned: the view has call "h1" without its output`},
		"an output alone": {func(_ context.Context, h *pawl.HandoffData) ([]pawl.Item, error) {
			return append(h.History, h.New[1]), nil
		},
			"a model cannot be sent what it returned: the view has the output at 2 without its call"},
		"the output first": {func(_ context.Context, h *pawl.HandoffData) ([]pawl.Item, error) {
			return []pawl.Item{h.New[1], h.New[0]}, nil
		},
			"a model cannot be sent what it returned: the view has the output at 2 without its call"},
		"an invented call": {is(fc("c9", "pay", `{}`), item.FunctionOutput("c9", "paid")),
			`a model cannot be sent what it returned: the view has a call "c9" that nobody made`},
		"an invented output": {is(item.FunctionOutput("h1", "paid")), `a model cannot be sent what it returned: the view has an output of call "h1" that is not open there`},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				d := newDesk([]step{calling(ho("h1", "billing"))}, []step{says("ok")})
				filter := tt.filter
				d.noting(func(f *pawl.HandoffFunc[struct{}]) {
					f.Filter = func(ctx context.Context, h *pawl.HandoffData) ([]pawl.Item, error) { return filter(ctx, h) }
				})
				_, err := m.run(new(pawl.Runner), t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"})
				if _, ok := errors.AsType[*pawl.FilterError](err); !ok || err.Error() != `pawl: run r, handoff 1.0: the filter of handoff "transfer_to_billing"`+map[bool]string{false: ": ", true: " "}[name == "panic"]+tt.want {
					t.Fatalf("error %v", err)
				}
				d.e.want(t)
				filter = pawl.RemoveTools()
				res := must(t)(m.resume(new(pawl.Runner), t.Context(), d.triage, viaJSON(t, stateOf(t, err)), nil))
				d.e.want(t, "Triage to Billing by h1")
				if diff := cmp.Diff([]pawl.Item{item.UserText("hi")}, d.answered.calls()[0].Input); diff != "" || res.LastAgent != d.billing {
					t.Errorf("request (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What was filtered stays so: over a process, over attempts, and for the next filter, which
// sees what its agent read.
func TestFilteredStaysFiltered(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		d := newDesk([]step{calling(ho("h1", "billing")), says("the end")}, []step{failing(&model.Error{Err: model.ErrStreamCut}), items(item.MessageItem("m", "back you go"), ho("h2", "triage"))})
		asked := 0
		filter := func(_ context.Context, h *pawl.HandoffData) ([]pawl.Item, error) {
			asked++
			if h.Agent == d.triage {
				return []pawl.Item{item.UserText("short")}, nil
			}
			if diff := cmp.Diff([]pawl.Item{item.UserText("short")}, h.History); diff != "" || len(h.PreHandoff) != 0 || len(h.New) != 3 {
				t.Errorf("%d and %d items, history (-want +got):\n%s", len(h.PreHandoff), len(h.New), diff)
			}
			return append(h.History, h.New[0]), nil
		}
		d.billing.Handoffs = []pawl.Handoff{pawl.HandoffTo(d.triage)}
		opts := &pawl.RunOptions{HandoffFilter: filter}
		_, err := m.run(new(pawl.Runner), t.Context(), d.triage, pawl.UserText("a long story"), opts)
		res := must(t)(m.resume(new(pawl.Runner), t.Context(), d.triage, viaJSON(t, stateOf(t, err)), opts))
		if asked != 2 {
			t.Errorf("asked %d times", asked)
		}
		short := []pawl.Item{item.UserText("short")}
		for i, want := range [][]pawl.Item{short, short} {
			if diff := cmp.Diff(want, d.answered.calls()[i].Input); diff != "" {
				t.Errorf("billing, request %d (-want +got):\n%s", i+1, diff)
			}
		}
		if diff := cmp.Diff(append(short, item.MessageItem("m", "back you go")), d.asked.calls()[1].Input); diff != "" {
			t.Errorf("triage (-want +got):\n%s", diff)
		}
		if got := len(res.ToInputList()); got != 7 {
			t.Errorf("%d items in the replay", got)
		}
	})
}

// A filter sees reasoning as it is sent.
func TestFilterSeesWhatIsSent(t *testing.T) {
	d := newDesk([]step{items(item.ReasoningItem("rs_1", "hm"), ho("h1", "billing"))}, []step{says("ok")})
	filter := func(_ context.Context, h *pawl.HandoffData) ([]pawl.Item, error) {
		if id := h.New[0].Head().ID; id != "" {
			t.Errorf("the id %q", id)
		}
		return h.New, nil
	}
	must(t)(new(pawl.Runner).Run(t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{OmitReasoningIDs: true, HandoffFilter: filter}))
	got := d.answered.calls()[0].Input
	if len(got) != 3 || strings.Contains(got[0].Raw(), "rs_1") {
		t.Errorf("sent %s", got)
	}
}
