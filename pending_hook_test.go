package pawl_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// Input that a hook adds counts before what follows what the hook is told of: before a response that the server has is read as the
// final one, and before the last turn is made. So it is by any Runner of the store [S20.4].
func TestAddInputFromAHookIsNotTooLate(t *testing.T) {
	for name, tt := range map[string]struct {
		opts pawl.RunOptions
		at   string // what hook
		want string
	}{
		"final response on a conversation": {pawl.RunOptions{ConversationID: "conv_1"}, "model", "user: go\nassistant: soon\nuser: think\nassistant: done"},
		"last turn":                        {pawl.RunOptions{MaxTurns: 2}, "tool", "user: go\ncall c1\nc1: receipt 5\nuser: think\nassistant: done"},
	} {
		for by, same := range map[string]bool{"this runner": true, "another": false} {
			t.Run(name+"/"+by, func(t *testing.T) {
				store := journal.NewMemory()
				r := &pawl.Runner{Store: store}
				by := r
				if !same {
					by = &pawl.Runner{Store: store}
				}
				first := response("resp_1", item.MessageItem("", "soon"))
				if tt.at == "tool" {
					first = calling(fc("c1", "look", `{"cents":5}`))
				}
				s := newScript(first, response("resp_2", item.MessageItem("", "done")))
				s.info.ServerState = true
				added := 0
				add := func(ctx context.Context, at, run string) {
					if at != tt.at || added > 0 {
						return
					}
					added++
					if err := by.AddInput(ctx, run, pawl.UserText("think")); err != nil {
						t.Error(err)
					}
				}
				opts := tt.opts
				opts.Hooks = &pawl.Hooks{
					ModelEnd: func(ctx context.Context, ev *pawl.ModelEnd) { add(ctx, "model", ev.Run) },
					ToolEnd:  func(ctx context.Context, ev *pawl.ToolEnd) { add(ctx, "tool", ev.Run) },
				}
				res := must(t)(r.Run(t.Context(), agentWith(s, charging("look", new(effects), nil)), pawl.UserText("go"), &opts))
				if got := texts(res.ToInputList()); got != tt.want || added != 1 {
					t.Errorf("added %d times; the conversation is\n%s", added, got)
				}
				replays(t, r, res.Run)
			})
		}
	}
}

// The same words, added twice in one moment, are two inputs.
func TestAddInputTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes
		r, agent, state := waiting5(t)
		for range 2 {
			if err := r.AddInput(t.Context(), "r", pawl.UserText("yes")); err != nil {
				t.Fatal(err)
			}
			if err := state.AddInput(pawl.UserText("and yes")); err != nil {
				t.Fatal(err)
			}
		}
		res := must(t)(r.Resume(t.Context(), agent, state, nil))
		if got := texts(res.State().PendingInput()); got != "user: yes\nuser: yes\nuser: and yes\nuser: and yes" {
			t.Errorf("it waits:\n%s", got)
		}
		res = must(t)(r.Resume(t.Context(), agent, state, nil))
		if got := texts(res.State().PendingInput()); got != "user: yes\nuser: yes\nuser: and yes\nuser: and yes" {
			t.Errorf("resumed once more, it waits:\n%s", got)
		}
	})
}
