package scenarios

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/pawltest"
)

// An oracle that sees nothing would let everything pass.
func TestOracleSeesDamagedConversations(t *testing.T) {
	const (
		c1   = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"t"}`
		c2   = `{"type":"function_call","call_id":"c2","name":"t"}`
		out1 = `{"type":"function_call_output","call_id":"c1","output":"o"}`
		out2 = `{"type":"function_call_output","call_id":"c2","output":"o"}`
		msg  = `{"type":"message","id":"msg_1","role":"assistant","content":"x"}`
	)
	for _, test := range []struct {
		name  string
		items []string
		want  []string
	}{
		{"sound", []string{c1, c2, out1, msg, out2}, nil},
		{"no output", []string{c1, c2, out2}, []string{"the call c1 has no output"}},
		{"no call", []string{out1}, []string{"the output of c1 has no call before it"}},
		{"output first", []string{out1, c1}, []string{"the call c1 has no output", "the output of c1 has no call before it"}},
		{"two outputs", []string{c1, out1, out1}, []string{"the call c1 has two outputs"}},
		{"two calls", []string{c2, out2, c2}, []string{"the call c2 has no output", "the call c2 is there twice"}},
		{"one id twice", []string{msg, msg}, []string{"two items have the id msg_1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var items []json.RawMessage
			for _, it := range test.items {
				items = append(items, json.RawMessage(it))
			}
			if diff := cmp.Diff(test.want, unpaired(items)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOracleSeesWhatNobodyAllowed(t *testing.T) {
	tools := []tool{{Name: "gated", Gated: true}, {Name: "free"}}
	yes := pawltest.Effect{Tool: reviewer, CallID: "c1", Arguments: "approve"}
	no := pawltest.Effect{Tool: reviewer, CallID: "c1", Arguments: "reject"}
	ran := pawltest.Effect{Tool: "gated", Key: "pawl_1", CallID: "c1", Attempt: 1}
	other := pawltest.Effect{Tool: "gated", Key: "pawl_2", CallID: "c1", Attempt: 1}
	again := pawltest.Effect{Tool: "gated", Key: "pawl_1", CallID: "c1", Attempt: 2}
	free := pawltest.Effect{Tool: "free", Key: "pawl_3", CallID: "c2", Attempt: 1}
	always := pawltest.Effect{Tool: reviewer, Key: "gated", CallID: "c0", Arguments: "approve always"}
	freely := pawltest.Effect{Tool: reviewer, Key: "free", CallID: "c0", Arguments: "approve always"}
	for _, test := range []struct {
		name string
		log  []pawltest.Effect
		want int
	}{
		{"allowed", []pawltest.Effect{free, yes, ran}, 0},
		{"not asked", []pawltest.Effect{ran}, 1},
		{"rejected", []pawltest.Effect{no, ran}, 1},
		{"allowed afterwards", []pawltest.Effect{ran, yes}, 1},
		{"allowed once, done for two", []pawltest.Effect{yes, ran, other}, 1},
		{"allowed twice, done for two", []pawltest.Effect{yes, yes, ran, other}, 0},
		{"all allowed", []pawltest.Effect{always, ran, other}, 0},
		{"all allowed of another tool", []pawltest.Effect{freely, ran}, 1},
		{"all allowed but this one", []pawltest.Effect{always, no, ran}, 1},
		{"twice with one key", []pawltest.Effect{yes, yes, ran, again}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := unauthorised(test.log, tools); len(got) != test.want {
				t.Errorf("problems %q, want %d", got, test.want)
			}
		})
	}
}
