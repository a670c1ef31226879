package audit_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/audit"
	"github.com/pawl-agents/pawl/pawltest"
)

type order struct {
	Order int    `json:"order"`
	Note  string `json:"note,omitempty"`
}

// desk is an agent with a tool that asks, one that does not, and one that nobody may use.
func desk(steps ...pawltest.ScriptedStep) *pawl.Agent {
	did := func(_ context.Context, c *pawl.Call, in order) (string, error) {
		return c.Tool + " is done \u2028 <b>", nil
	}
	return &pawl.Agent{Name: "Desk", Model: pawltest.NewScriptedModel(steps...), Tools: []pawl.Tool{
		pawl.NewTool(pawl.Func[order, string]{Name: "look", Effect: pawl.ReadOnly, Run: did}),
		pawl.NewTool(pawl.Func[order, string]{Name: "refund", Approve: pawl.AlwaysAsk[order], Run: did}),
		pawl.NewTool(pawl.Func[order, string]{Name: "burn", Run: did,
			Approve: func(context.Context, *pawl.Call, order) (pawl.Gate, error) { return pawl.Deny, nil }}),
	}}
}

func calls(list ...[3]string) pawltest.ScriptedStep {
	items := []item.Item{item.MessageItem("", "A secret of the customer's.")}
	for _, c := range list {
		items = append(items, item.FunctionCallItem("", c[0], c[1], c[2]))
	}
	return pawltest.ScriptedItems(items...)
}

// ticket is a run with calls of every fate: approved and edited, rejected, covered by a sticky approval, allowed, denied and
// unreadable.
func ticket(t *testing.T) []journal.Record {
	t.Helper()
	store := journal.NewMemory()
	r := pawl.Runner{Store: store}
	agent := desk(
		calls([3]string{"call_1", "look", `{ "order": 9 }`}, [3]string{"call_2", "refund", `{"order":9}`}, [3]string{"call_3", "refund", `{"order":8, "note":"no"}`},
			[3]string{"call_4", "burn", `{"order":1}`}, [3]string{"call_5", "refund", `{"order":`}),
		calls([3]string{"call_6", "refund", `{"order":7}`}),
		calls([3]string{"call_7", "refund", `{"order":6}`}),
		pawltest.ScriptedText("All is done."))
	decide(t, &r, agent, pawl.UserText("Refund me."), func(in pawl.Interruption) pawl.Decision {
		d := pawl.Approve(in.ID, "ada")
		switch in.CallID {
		case "call_2":
			d = pawl.Edit(in.ID, "ada", `{"note":"half","order":9}`)
		case "call_3":
			d = pawl.Reject(in.ID, "bob", "Not this one.")
		case "call_6":
			d.Always = true
		}
		d.Why = "I looked at " + in.CallID
		return d
	})
	records, err := store.Read(t.Context(), "ticket-1", 0)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// decide runs ticket-1 to its end.
func decide(t *testing.T, r *pawl.Runner, agent *pawl.Agent, input pawl.Input, d func(pawl.Interruption) pawl.Decision) {
	t.Helper()
	res, err := r.Run(t.Context(), agent, input, &pawl.RunOptions{ID: "ticket-1"})
	for err == nil && res.Status == pawl.StatusWaiting {
		s := res.State()
		for _, in := range s.Interruptions() {
			if err := s.Decide(d(in)); err != nil {
				t.Fatal(err)
			}
		}
		res, err = r.Resume(t.Context(), agent, s, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// headOf is audit.HeadOf of ticket-1.
func headOf(t *testing.T, records []journal.Record) audit.Head {
	t.Helper()
	h, err := audit.HeadOf("ticket-1", records)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// edited returns the record with another payload and the hash that fits it, as a forger would make it.
func edited(rec journal.Record, payload string) journal.Record {
	rec.Payload = payload
	rec.Hash = journal.LeafHash(&rec)
	return rec
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
