package pawltest_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/pawltest"
)

func TestEffectLog(t *testing.T) {
	log := pawltest.NewEffectLog(t)
	if effects, err := log.Effects(); err != nil || effects != nil {
		t.Errorf("a new log has %v (%v)", effects, err)
	}
	want := []pawltest.Effect{
		{Tool: "refund", Key: "k1", CallID: "c1", Attempt: 1, Arguments: "{\"a\":\"line\\nbreak\"}"},
		{Tool: "refund", Key: "k1", CallID: "c1", Attempt: 2},
		{Tool: "mail", Arguments: strings.Repeat("x", 200_000)},
	}
	for _, e := range want {
		if err := log.Record(e); err != nil {
			t.Fatal(err)
		}
	}
	got, err := pawltest.OpenEffectLog(log.Path()).Effects()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	if n := log.Count(t, "refund"); n != 2 {
		t.Errorf("%d refunds, want 2", n)
	}
}

func TestEffectLogFromManyWriters(t *testing.T) {
	log := pawltest.NewEffectLog(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if err := pawltest.OpenEffectLog(log.Path()).Record(pawltest.Effect{Tool: "t"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := log.Count(t, "t"); n != 400 {
		t.Errorf("%d effects, want 400", n)
	}
}

func TestEffectLogErrors(t *testing.T) {
	missing := pawltest.OpenEffectLog(t.TempDir() + "/no/such/log")
	if err := missing.Record(pawltest.Effect{Tool: "t"}); err == nil || !strings.HasPrefix(err.Error(), "pawltest: effect log: ") {
		t.Errorf("error %v, want one about the file", err)
	}
	damaged := pawltest.NewEffectLog(t)
	if err := os.WriteFile(damaged.Path(), []byte("{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := damaged.Effects(); err == nil {
		t.Error("a damaged log was read")
	}
}
