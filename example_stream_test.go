package pawl_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// A customer reads the answer while the model writes it.
func answerAloud(ctx context.Context, r *pawl.Runner, agent *pawl.Agent, text string) error {
	for ev, err := range r.Stream(ctx, agent, pawl.UserText(text), nil) {
		if err != nil {
			return err
		}
		switch ev := ev.(type) { // every event is a pointer
		case *pawl.Delta:
			if ev.Kind == pawl.DeltaText { // arguments, reasoning and refusals come in pieces, too
				fmt.Print(ev.Text)
			}
		case *pawl.Reset:
			fmt.Println("\n(once more)") // the attempt failed: what it wrote is void
		case *pawl.ToolStarted:
			fmt.Printf("[%s]\n", ev.Tool)
		case *pawl.Paused:
			fmt.Println("please decide", ev.Result.Run, ev.Interruptions)
		case *pawl.Done:
			fmt.Println()
		}
	}
	return nil
}

// Deltas tell what they are pieces of: of the answer, or of the arguments of a call.
func ExampleRunner_Stream_deltas() {
	agent := &pawl.Agent{Name: "Support", Tools: []pawl.Tool{trackTool()}, Model: pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "track", `{"order":9}`)),
		pawltest.ScriptedText("Your parcel is in Lyon, on its way to you."),
	)}
	if err := answerAloud(context.Background(), new(pawl.Runner), agent, "Where is order 9?"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [track]
	// Your parcel is in Lyon, on its way to you.
}

func trackTool() pawl.Tool {
	type order struct {
		Order int `json:"order"`
	}
	return pawl.NewTool(pawl.Func[order, string]{
		Name: "track", Description: "Says where a parcel is.", Effect: pawl.ReadOnly,
		Run: func(context.Context, *pawl.Call, order) (string, error) { return "Lyon", nil },
	})
}

// A guardrail of the reader's: the text is checked every 20 bytes, and who leaves the loop stops the model.
func ExampleRunner_Stream_check() {
	agent := &pawl.Agent{Name: "Teacher", Model: pawltest.NewScriptedModel(
		pawltest.ScriptedText("A black hole is a region of spacetime whose event horizon nothing leaves."),
	)}
	tooHard := func(text string) bool { return strings.Contains(text, "spacetime") } // or the run of another agent

	var r pawl.Runner
	var text strings.Builder
	checked := 0
	for ev, err := range r.Stream(context.Background(), agent, pawl.UserText("What is a black hole?"), nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if d, ok := ev.(*pawl.Delta); ok && d.Kind == pawl.DeltaText {
			text.WriteString(d.Text)
		}
		if _, done := ev.(*pawl.Done); done || text.Len() >= checked+20 {
			checked = text.Len()
			if tooHard(text.String()) {
				fmt.Println("too hard:", text.String())
				break
			}
		}
	}
	// Output: too hard: A black hole is a region of spacetime whose event horizon nothin
}

// Without a session the program keeps the conversation: the next run is asked everything so far, and goes to whoever has it.
func ExampleResult_ToInputList() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "transfer_to_french", `{}`)),
		pawltest.ScriptedText("Bonjour !"),
		pawltest.ScriptedText("Bien, merci."),
	)
	french := &pawl.Agent{Name: "French", Model: m}
	agent := &pawl.Agent{Name: "Desk", Handoffs: []pawl.Handoff{pawl.HandoffTo(french)}, Model: m}

	var r pawl.Runner
	var input pawl.Input
	for _, text := range []string{"Salut !", "Ça va ?"} {
		input = append(input, pawl.UserText(text)...)
		res, err := r.Run(context.Background(), agent, input, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.LastAgent.Name+":", res.FinalOutput)
		input, agent = res.ToInputList(), res.LastAgent
	}
	fmt.Println(len(input), "items")
	// Output:
	// French: Bonjour !
	// French: Bien, merci.
	// 6 items
}

// Runs beside each other are goroutines: a Runner, an agent and a model serve any number of them.
func ExampleRunner_Run_parallel() {
	translator := &pawl.Agent{Name: "Translator", Model: pawltest.NewScriptedModel(
		pawltest.ScriptedText("Hola."), pawltest.ScriptedText("Hola."), pawltest.ScriptedText("Hola."))}
	picker := &pawl.Agent{Name: "Picker", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("The first one."))}

	ctx := context.Background()
	var r pawl.Runner
	var wg sync.WaitGroup
	drafts, errs := make([]string, 3), make([]error, 3)
	for i := range drafts {
		wg.Go(func() {
			res, err := r.Run(ctx, translator, pawl.UserText("Hello."), nil)
			if errs[i] = err; err == nil {
				drafts[i] = res.FinalOutput
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	res, err := r.Run(ctx, picker, pawl.UserText("Which is the best?\n"+strings.Join(drafts, "\n")), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output: The first one.
}
