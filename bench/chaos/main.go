// Command chaos compares what becomes of one payment when the process that makes it is killed: with Pawl, with eino
// (github.com/cloudwego/eino) and with the OpenAI Agents SDK for JavaScript, each made durable in the way that it recommends. See
// README.md.
//
// The harness plays the model and the bank, over HTTP, and starts an adapter for every step of a job. It kills the adapter
// when one of its requests arrives, so every system dies at the same points. Then it does what the operator of such a job
// does: it starts the adapter again, until the job is done or needs a person.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "adapter" {
		os.Exit(adapterMain(os.Args[2:]))
	}
	js := flag.String("js", "js", "the `directory` of the JavaScript adapter, with its packages installed")
	flag.Parse()
	if err := compare(context.Background(), os.Stdout, *js); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// system is what is compared.
type system struct {
	name    string
	command []string // of its adapter; the step, a directory and the harness's URL follow
}

// systems are the systems; js is where the JavaScript adapter is.
func systems(js string) ([]system, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	script := filepath.Join(js, "adapter.mjs")
	if _, err := os.Stat(script); err != nil {
		return nil, err
	}
	return []system{
		{"OpenAI Agents SDK for JavaScript", []string{"node", script}},
		{"eino", []string{self, "adapter", "eino"}},
		{"Pawl, `AtMostOnce` (default)", []string{self, "adapter", "pawl"}},
		{"Pawl, `Idempotent`", []string{self, "adapter", "pawl-idempotent"}},
	}, nil
}

// row is what came of all jobs of one system.
type row struct {
	jobs, effects, keyed, lost, people, stuck, repeated int
}

// compare plays every job with every system and prints the table.
func compare(ctx context.Context, out io.Writer, js string) error {
	all, err := systems(js)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "| | jobs | most effects of one call | the same, if the bank honours the key | lost calls | runs that wait for a person | stuck runs | repeated model calls |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, s := range all {
		var r row
		for _, p := range points {
			for kills := 1; kills <= 2; kills++ {
				o, err := play(ctx, s, p, kills)
				if err != nil {
					return fmt.Errorf("%s, killed %d times at %q: %w", s.name, kills, p, err)
				}
				r.add(o)
			}
		}
		fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d | %d | %d |\n", s.name, r.jobs, r.effects, r.keyed, r.lost, r.people, r.stuck, r.repeated)
	}
	return nil
}

func (r *row) add(o outcome) {
	r.jobs++
	r.effects, r.keyed = max(r.effects, o.effects), max(r.keyed, o.keyed)
	r.lost += count(o.lost)
	r.people += count(o.person)
	r.stuck += count(o.stuck)
	r.repeated += o.repeated
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
