package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/pawltest"
)

// menu is what a kitchen has today. A source may ask anybody: package mcp asks a server.
type menu struct{ today func() []string }

func (menu) Label() string { return "kitchen" }

func (m menu) Tools(context.Context, *pawl.RunContext) ([]pawl.Tool, error) {
	var tools []pawl.Tool
	for _, dish := range m.today() {
		tools = append(tools, pawl.NewTool(pawl.Func[struct{}, string]{Name: "serve_" + dish,
			Run: func(context.Context, *pawl.Call, struct{}) (string, error) { return dish + " is served", nil }}))
	}
	return tools, nil
}

// The tools of a source are listed anew in every turn: when the soup is gone, nobody is offered it.
func ExampleToolSource() {
	dishes := []string{"soup", "bread"}
	kitchen := menu{func() []string {
		list := dishes
		dishes = dishes[1:]
		return list
	}}
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("call_1", "serve_soup")), pawltest.ScriptedText("Enjoy."))
	waiter := &pawl.Agent{Name: "Waiter", Model: m, Tools: namedTools("greet"), ToolSources: []pawl.ToolSource{kitchen}}

	if _, err := new(pawl.Runner).Run(context.Background(), waiter, pawl.UserText("Soup, please."), nil); err != nil {
		fmt.Println(err)
		return
	}
	for _, request := range m.Calls() {
		var names []string
		for _, t := range request.Tools {
			names = append(names, t.Name)
		}
		fmt.Println(names)
	}
	// Output:
	// [serve_soup serve_bread greet]
	// [serve_bread greet]
}
