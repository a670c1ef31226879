package session_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/session/sessiontest"
)

func TestMemory(t *testing.T) {
	sessiontest.Run(t, func(*testing.T) sessiontest.Open {
		var mu sync.Mutex
		sessions := map[string]*session.Memory{}
		return func(id string) session.Session {
			mu.Lock()
			defer mu.Unlock()
			if sessions[id] == nil {
				sessions[id] = session.NewMemory(id)
			}
			return sessions[id]
		}
	})
}

func ExampleMemory() {
	ctx := context.Background()
	s := session.NewMemory("c-42")
	s.Append(ctx, []item.Item{item.UserText("Refund order 9."), item.AssistantText("Which order?")})
	s.AppendBatch(ctx, "run-1/2", []item.Item{item.UserText("Number 9.")})
	s.AppendBatch(ctx, "run-1/2", []item.Item{item.UserText("Number 9.")}) // does nothing

	newest, _ := s.Items(ctx, 2)
	for _, it := range newest {
		fmt.Println(it)
	}
	// Output:
	// {"role":"assistant","content":"Which order?"}
	// {"role":"user","content":"Number 9."}
}
