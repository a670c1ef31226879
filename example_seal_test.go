package pawl_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/pawltest"
)

// A state that travels through a browser comes back as it was, or not at all.
func ExampleRunState_Seal() {
	key := make([]byte, pawl.MinSealKey) // in earnest from a secret store
	rand.Read(key)

	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(pay("call_1", "Bob", 9000)), pawltest.ScriptedText("Bob has his money."))
	agent := &pawl.Agent{Name: "Treasurer", Model: m, Tools: []pawl.Tool{payTool()}}
	ctx := context.Background()
	var r pawl.Runner
	res, err := r.Run(ctx, agent, pawl.UserText("Pay Bob $90."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	sealed, err := res.State().Seal(key)
	if err != nil {
		fmt.Println(err)
		return
	}

	forged := append([]byte(nil), sealed...)
	forged[100]++
	_, err = pawl.OpenRunState(forged, key)
	fmt.Println("forged:", errors.Is(err, pawl.ErrSeal))

	state, err := pawl.OpenRunState(sealed, key)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(state.Status(), state.Interruptions()[0].Arguments)
	// Output:
	// forged: true
	// waiting {"to":"Bob","cents":9000}
}
