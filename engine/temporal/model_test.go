package temporal

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

// calls is a model that calls a tool so many times, one a turn, and then is done. What it answers
// follows from what it reads, so that any process can go on.
type calls struct {
	tool  string
	turns int
	words int // bytes of the argument
}

func (calls) Info() model.Info { return model.Info{Provider: "test", Name: "calls"} }

func (c calls) Call(_ context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
	done := 0
	for _, it := range req.Input.Items() {
		if item.IsOutput(it.Type()) {
			done++
		}
	}
	usage := &model.Usage{InputTokens: 1, OutputTokens: 1, TotalTokens: 2}
	if done >= c.turns {
		if emit != nil {
			for _, text := range []string{"do", "ne"} {
				emit(&model.Event{Kind: model.EventTextDelta, Type: "text", Delta: text})
			}
		}
		return &model.Response{Items: []item.Item{item.MessageItem("", "done")}, Usage: usage}, nil
	}
	args := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", c.words))
	return &model.Response{Items: []item.Item{item.FunctionCallItem("", fmt.Sprintf("c%d", done+1), c.tool, args)}, Usage: usage}, nil
}
