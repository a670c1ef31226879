package scenarios

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"
)

// goroutineCount is how many goroutines there were.
type goroutineCount int

func goroutines() goroutineCount { return goroutineCount(runtime.NumGoroutine()) }

// settleLimit is how long goroutines may take to notice that what they served is over.
const settleLimit = 10 * time.Second

// settled waits until no goroutine is left that was not there before [G5].
func (before goroutineCount) settled(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(settleLimit)
	for runtime.NumGoroutine() > int(before) {
		select {
		case <-tick.C:
		case <-limit:
			t.Errorf("G5: %d goroutines are left of %d:\n%s", runtime.NumGoroutine(), before, stacks())
			return
		}
	}
}

// stacks returns the stacks of all goroutines but the test runner's.
func stacks() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var b strings.Builder
	for stack := range bytes.SplitSeq(buf, []byte("\n\n")) {
		if !bytes.Contains(stack, []byte("testing.tRunner")) && !bytes.Contains(stack, []byte("testing.(*M)")) {
			b.Write(stack)
			b.WriteString("\n\n")
		}
	}
	return b.String()
}
