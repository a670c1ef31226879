// Command pawl shows what Pawl does, and looks after the runs in a store: "pawl demo" runs a support desk agent in
// a terminal, the other commands list runs, show what happened, decide what waits and go on.
//
//	go run ./cmd/pawl demo
//	go run ./cmd/pawl help
package main

import (
	"os"

	"github.com/pawl-agents/pawl/cmd/pawl/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
