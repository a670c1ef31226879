package journal_test

import (
	"testing"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journal.Driver { return journal.NewMemory() })
}
