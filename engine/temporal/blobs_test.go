package temporal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/pawltest"
)

// A directory that cannot take blobs is found before a worker is made, and one that is not there
// before a run is begun.
func TestBlobsCheck(t *testing.T) {
	c, err := client.NewLazyClient(client.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	place := t.TempDir()
	file, missing, good := filepath.Join(place, "file"), filepath.Join(place, "missing"), filepath.Join(place, "good")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(good, 0o700)); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		file:    "pawl: Options.Blobs: cannot be used: " + file + " is no directory",
		missing: "pawl: Options.Blobs: cannot be used: stat " + missing + ": no such file or directory",
		good:    "",
	} {
		opts := Options{Blobs: Dir(dir)}
		store := memory()
		agent := &pawl.Agent{Name: "clerk", Model: pawltest.NewScriptedModel()}
		_, err := NewWorker(c, &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}, WorkerOptions{Options: opts})
		var config *pawl.ConfigError
		switch {
		case want == "" && err != nil, want != "" && (!errors.As(err, &config) || err.Error() != want):
			t.Errorf("a worker with %s: %v, want %q", filepath.Base(dir), err, want)
		case want == "":
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Error(left, err)
			}
			continue
		}
		r := &pawl.Runner{Store: store, Engine: New(c, opts)}
		_, err = r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"})
		if !errors.As(err, &config) || config.Error() != want {
			t.Errorf("a run with %s: %v, want %q", filepath.Base(dir), err, want)
		}
		if records, err := store.Read(t.Context(), "r", 0); err != nil || len(records) > 0 {
			t.Errorf("%d facts of a run that was refused, %v", len(records), err)
		}
	}
}

// A worker without a client, or without the store that the runs are in, is none.
func TestWorkerRefuses(t *testing.T) {
	c, err := client.NewLazyClient(client.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var config *pawl.ConfigError
	for field, try := range map[string]func() (worker.Worker, error){
		"NewWorker":    func() (worker.Worker, error) { return NewWorker(nil, &pawl.Runner{Store: memory()}, WorkerOptions{}) },
		"Runner.Store": func() (worker.Worker, error) { return NewWorker(c, &pawl.Runner{}, WorkerOptions{}) },
	} {
		if _, err := try(); !errors.As(err, &config) || config.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
