package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-agents/pawl"
)

// The work every measure does: a model that calls one tool, turn after turn, and then says that it is done. A call has
// 200 bytes of arguments and 200 bytes of output.

const (
	instructions = "Look up every entry before you answer."
	question     = "Which entries are there?"
	answer       = "All entries are looked up."
	toolName     = "lookup"
	toolText     = "Look an entry up."
)

// filler is 200 bytes of text.
var filler = strings.Repeat("The quick brown fox jumps over a dog. ", 6)[:200]

// lookupArgs are the tool's arguments; as JSON they are 200 bytes long.
type lookupArgs struct {
	Text string `json:"text" jsonschema:"what to look up"`
}

var (
	arguments = `{"text":"` + filler[:200-len(`{"text":""}`)] + `"}`
	output    = filler
)

// lookup is the tool's body, the same for Pawl and for the floors.
func lookup(in lookupArgs) (string, error) {
	if in.Text == "" {
		return "", fmt.Errorf("nothing to look up")
	}
	return output, nil
}

// toolSchema is what NewTool derives for lookupArgs; the floors send it too.
var toolSchema = lookupTool().Schema()

func lookupTool() pawl.Tool {
	return pawl.NewTool(pawl.Func[lookupArgs, string]{
		Name: toolName, Description: toolText,
		Run: func(_ context.Context, _ *pawl.Call, in lookupArgs) (string, error) { return lookup(in) },
	})
}

// callItem is call i of turn n as the API spells it.
func callItem(n, i int) string {
	id := strconv.Itoa(n) + "_" + strconv.Itoa(i)
	return `{"id":"fc_` + id + `","type":"function_call","status":"completed","arguments":` + quoted(arguments) +
		`,"call_id":"call_` + id + `","name":"` + toolName + `"}`
}

// outputItem is the output of that call as a hand-written loop sends it.
type outputItem struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output string `json:"output"`
}

func messageItem(n int) string {
	return `{"id":"msg_` + strconv.Itoa(n) + `","type":"message","status":"completed","content":[{"type":"output_text",` +
		`"annotations":[],"logprobs":[],"text":` + quoted(answer) + `}],"role":"assistant"}`
}

// outputItems are the items of the response of turn n, from 1, in a run of so many turns with calls.
func outputItems(n, turns, calls int) []string {
	if n > turns {
		return []string{messageItem(n)}
	}
	items := make([]string, calls)
	for i := range items {
		items[i] = callItem(n, i)
	}
	return items
}

// turnBytes is the size of the items that a turn with one call adds, call and output.
func turnBytes(n int) int {
	out, _ := json.Marshal(outputItem{"function_call_output", fmt.Sprintf("call_%d_0", n), output})
	return len(callItem(n, 0)) + len(out)
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string always can
	return string(b)
}
