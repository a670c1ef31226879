package pawl_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// echoing is a model that answers from its input alone, so that any number of runs may ask it.
type echoing func(input []pawl.Item) []pawl.Item

func (echoing) Info() model.Info { return model.Info{Name: "echoing"} }

func (f echoing) Call(_ context.Context, req *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
	return &model.Response{Items: f(req.Input.Items()), Usage: &model.Usage{InputTokens: 3, OutputTokens: 2, TotalTokens: 5}}, nil
}

// wanted is what the user, or the calling agent, wants of an agent.
func wanted(input []pawl.Item) string {
	m, err := input[0].Message()
	if err != nil {
		return err.Error()
	}
	return m.Text()
}

// An agent value is only read: any number of runs may have it at a time, with its tools, the agents it hands over to and those
// it calls as tools, and each run has its own.
func TestOneAgentInManyRuns(t *testing.T) {
	const runs = 64
	var e effects
	bank := &pawl.Agent{Name: "Bank", Instructions: pawl.Text("Add up."), Tools: []pawl.Tool{charging("charge", &e, nil)},
		Model: echoing(func(in []pawl.Item) []pawl.Item {
			if len(in) == 1 {
				return []pawl.Item{fc("n1", "charge", fmt.Sprintf(`{"cents":%s}`, wanted(in)))}
			}
			return []pawl.Item{item.MessageItem("", "charged "+wanted(in))}
		})}
	closing := &pawl.Agent{Name: "Closing", Tools: []pawl.Tool{charging("refund", &e, asking)},
		Model: echoing(func(in []pawl.Item) []pawl.Item {
			if in[len(in)-1].Head().CallID != "c9" {
				return []pawl.Item{fc("c9", "refund", fmt.Sprintf(`{"cents":%s}`, wanted(in)))}
			}
			return []pawl.Item{item.MessageItem("", "closed "+wanted(in))}
		})}
	desk := &pawl.Agent{Name: "Desk", Tools: []pawl.Tool{pawl.AgentTool(bank, nil)}, Handoffs: []pawl.Handoff{pawl.HandoffTo(closing)},
		Settings: &pawl.ModelSettings{Metadata: map[string]string{"desk": "one"}},
		Model: echoing(func(in []pawl.Item) []pawl.Item {
			if len(in) == 1 {
				ask := fmt.Sprintf(`{"input":%q}`, wanted(in))
				return []pawl.Item{fc("c1", "bank", ask), fc("c2", "bank", ask)}
			}
			return []pawl.Item{ho("h1", "closing")}
		})}
	before := fmt.Sprintf("%+v %+v %+v", *desk.Settings, len(desk.Tools), len(closing.Tools))

	var r pawl.Runner
	var all sync.WaitGroup
	for n := range runs {
		all.Go(func() { oneOfMany(t, &r, desk, n) })
	}
	all.Wait()
	if after := fmt.Sprintf("%+v %+v %+v", *desk.Settings, len(desk.Tools), len(closing.Tools)); after != before {
		t.Errorf("the agents were %s, and are %s", before, after)
	}
	counts := map[string]int{}
	for _, did := range e.list {
		counts[did]++
	}
	for n := range runs {
		if counts[fmt.Sprint("charge ", n)] != 2 || counts[fmt.Sprint("refund ", n)] != 1 {
			t.Errorf("run %d: %d charges and %d refunds", n, counts[fmt.Sprint("charge ", n)], counts[fmt.Sprint("refund ", n)])
		}
	}
}

// oneOfMany makes a run with its own number, blocking or as a stream, approves its refund, and checks that all it read was its own.
func oneOfMany(t *testing.T, r *pawl.Runner, desk *pawl.Agent, n int) {
	m := modes[n%len(modes)]
	sess := session.NewMemory(fmt.Sprint("s", n))
	res, err := m.run(r, t.Context(), desk, pawl.UserText(fmt.Sprint(n)), &pawl.RunOptions{ID: fmt.Sprint("r", n), Session: sess})
	if err != nil || len(res.Interruptions) != 1 || res.Interruptions[0].Agent != "Closing" {
		t.Errorf("run %d: %+v, %v", n, res, err)
		return
	}
	state := res.State()
	if err := state.Approve(res.Interruptions[0], "ann"); err != nil {
		t.Error(err)
		return
	}
	if res, err = m.resume(r, t.Context(), desk, state, &pawl.RunOptions{Session: sess}); err != nil {
		t.Error(err)
		return
	}
	want := strings.ReplaceAll("user: N\ncall c1\ncall c2\nc1: charged N\nc2: charged N\ncall h1\nh1: {\"assistant\":\"Closing\"}\ncall c9\nc9: receipt N\nassistant: closed N", "N", fmt.Sprint(n))
	if diff := cmp.Diff(want, texts(res.ToInputList())); diff != "" || res.Usage.Requests != 8 || res.LastAgent.Name != "Closing" {
		t.Errorf("run %d: %+v by %s (-want +got):\n%s", n, res.Usage, res.LastAgent.Name, diff)
	}
	kept, err := sess.Items(t.Context(), -1)
	if diff := cmp.Diff([]pawl.Item(res.ToInputList()), kept); diff != "" || err != nil {
		t.Errorf("run %d: session: %v (-want +got):\n%s", n, err, diff)
	}
}
