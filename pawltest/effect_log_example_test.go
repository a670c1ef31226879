package pawltest_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-agents/pawl/pawltest"
)

// A tool under test records what it did. A test that kills the process and resumes the run opens the same file.
func ExampleEffectLog() {
	dir, err := os.MkdirTemp("", "effects")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	log := pawltest.OpenEffectLog(filepath.Join(dir, "effects.jsonl"))
	for attempt := range 2 {
		if err := log.Record(pawltest.Effect{Tool: "refund", Key: "pawl_1", Attempt: attempt + 1}); err != nil {
			fmt.Println(err)
		}
	}
	effects, err := pawltest.OpenEffectLog(log.Path()).Effects()
	fmt.Println(len(effects), effects[1].Attempt, err)
	// Output: 2 2 <nil>
}
