package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

// adapter is one step of a job, in a process of its own.
type adapter struct {
	step, dir, url string
}

// adapterMain runs an adapter: its name, the step, a directory and the harness's URL.
func adapterMain(args []string) int {
	if len(args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: chaos adapter NAME STEP DIR URL")
		return 2
	}
	a := &adapter{args[1], args[2], args[3]}
	run, ok := map[string]func(context.Context) (standing, error){
		"pawl": a.pawl(false), "pawl-idempotent": a.pawl(true), "eino": a.eino,
	}[args[0]]
	if !ok {
		fmt.Fprintf(os.Stderr, "there is no adapter %q\n", args[0])
		return 2
	}
	st, err := run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	json.NewEncoder(os.Stdout).Encode(st)
	return 0
}

// ask makes a request of the harness.
func (a *adapter) ask(ctx context.Context, path string, b body) (r reply, err error) {
	text, err := json.Marshal(b)
	if err != nil {
		return r, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+path, bytes.NewReader(text))
	if err != nil {
		return r, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	return r, json.NewDecoder(res.Body).Decode(&r)
}

// pay is the body of every tool.
func (a *adapter) pay(ctx context.Context, key string) (string, error) {
	r, err := a.ask(ctx, "/pay", body{Key: key})
	return r.Text, err
}
