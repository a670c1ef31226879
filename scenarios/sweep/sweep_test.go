package sweep

import (
	"flag"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

var (
	full     = flag.Bool("full", false, "play every point in memory, and more of those with SQLite")
	scenario = flag.String("scenario", "", "sweep this scenario only")
	only     = flag.String("only", "", "play these points only, see pawltest.Scenario.Only")
	sqlite   = flag.Bool("sqlite", true, "play points with SQLite, too")
)

// One of so many points is played: of those in memory, and of those with SQLite, which cost a hundred times as much. Some
// scenarios only are played with SQLite if there is little time.
var every = map[bool]struct{ inMemory, inSQLite, scenarios int }{
	false: {23, 180, 4},
	true:  {1, 20, 1},
}

// openSQLite opens a store. What a loss of power would do is not asked here.
func openSQLite(dir string) (journal.Driver, error) {
	return sqlstore.OpenSQLite(filepath.Join(dir, "pawl.db"), &sqlstore.Options{Sync: sqlstore.UnsafeSyncOff})
}

func sessionOf(store journal.Driver, id string) session.Session {
	return store.(*sqlstore.Store).Session(id)
}

// retryTwice is a short retry.
func retryTwice() *model.Retry {
	return &model.Retry{MaxRetries: 2, InitialDelay: 10 * time.Millisecond}
}

// TestSweep sweeps every scenario: in memory, and the rows with a store in SQLite too.
func TestSweep(t *testing.T) {
	var mu sync.Mutex
	points, violations := 0, 0
	sweep := func(t *testing.T, s pawltest.Scenario, every int) {
		s.Every = every
		if *only != "" {
			s.Only, s.Every = *only, 1
		}
		r := pawltest.Sweep(t, s)
		mu.Lock()
		defer mu.Unlock()
		points += r.Points
		violations += len(r.Violations)
	}
	list := scenarios()
	if len(list) < 86 {
		t.Errorf("%d scenarios, want 86", len(list))
	}
	t.Run("scenarios", func(t *testing.T) {
		for i, s := range list {
			if *scenario != "" && s.Name != *scenario {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				if s.Store == nil {
					sweep(t, s, every[*full].inMemory)
					s = inStore(s)
					s.Only = "store"
					if !*sqlite || i%every[*full].scenarios > 0 {
						return
					}
				}
				sweep(t, s, every[*full].inSQLite)
			})
		}
	})
	fmt.Printf("sweep: %d points, %d violations\n", points, violations)
	if least := map[bool]int{false: 1500, true: 50_000}[*full]; points < least && *scenario+*only == "" && *sqlite {
		t.Errorf("%d points, want %d", points, least)
	}
}
