package chaos

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// The brain remembers what each request showed it, and which answer the request went on from.
func TestBrainRemembers(t *testing.T) {
	start := plan{Run: "r1", Turns: 3}.input()[0]
	call := func(turn, request int) item.Item {
		return item.FunctionCallItem("", callID("r1", turn, 0, request), toolLook, "{}")
	}
	output := func(turn, request int) item.Item { return item.FunctionOutput(callID("r1", turn, 0, request), "x") }
	first := []item.Item{start}
	second := append(first, call(1, 4), output(1, 4))
	third := append(second, call(2, 5), output(2, 5))
	b := &brain{seen: map[int]shown{}, asked: map[string][]int{}}
	for i, history := range [][]item.Item{first, second, third} {
		b.respond(&pawltest.ResponsesRequest{Number: 4 + i, Input: history})
	}
	if diff := cmp.Diff(map[string][]int{"r1": {4, 5, 6}}, b.asked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for n, want := range map[int]shown{4: {items: 1, answer: 0}, 5: {items: 3, answer: 4}, 6: {items: 5, answer: 5}} {
		got := b.seen[n]
		if got.items != want.items || got.answer != want.answer {
			t.Errorf("request %d: %d items, goes on from %d", n, got.items, got.answer)
		}
		if want.answer > 0 && got.before != b.seen[want.answer].digest {
			t.Errorf("request %d does not go on from what request %d showed", n, want.answer)
		}
	}
}
