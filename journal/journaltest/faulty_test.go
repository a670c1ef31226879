package journaltest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
)

// facts returns n different records.
func facts(n int) []journal.Record {
	var recs []journal.Record
	for i := range n {
		recs = append(recs, journal.Encode(journal.Fact{Body: &journal.Confirmed{N: i + 1}}, [16]byte{}))
	}
	return recs
}

func claimed(t *testing.T, plan journaltest.Plan) (*journaltest.FaultyDriver, uint64) {
	t.Helper()
	d := journaltest.Faulty(journal.NewMemory(), plan)
	c, err := d.Claim(t.Context(), "r", journal.ClaimRequest{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return d, c.Epoch
}

func wantLedger(t *testing.T, d journal.Driver, want []journal.Record) {
	t.Helper()
	if got, err := d.Read(t.Context(), "r", 0); err != nil || !slices.Equal(got, want) {
		t.Errorf("ledger %v, %v, want %v", got, err, want)
	}
}

func TestFaultyAbsentAndStored(t *testing.T) {
	recs := facts(3)
	d, epoch := claimed(t, journaltest.Plan{1: journaltest.Absent, 3: journaltest.Stored, 4: journaltest.Stored})
	for i, tt := range []struct {
		after  uint64
		recs   []journal.Record
		want   error
		ledger []journal.Record
	}{
		{0, recs[:1], journaltest.ErrLost, nil},
		{0, recs[:1], nil, recs[:1]},
		{1, recs[1:], journaltest.ErrLost, recs},
		{1, recs[1:], journaltest.ErrLost, recs}, // a conflict, but its answer is lost
	} {
		if err := d.Append(t.Context(), "r", epoch, tt.after, tt.recs); err != tt.want {
			t.Errorf("append %d: %v, want %v", i+1, err, tt.want)
		}
		wantLedger(t, d, tt.ledger)
	}
	if d.Appends() != 4 {
		t.Errorf("%d appends, want 4", d.Appends())
	}
}

func TestFaultyLater(t *testing.T) {
	recs := facts(2)
	d, epoch := claimed(t, journaltest.Plan{1: journaltest.Later, 2: journaltest.Later})
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		if err := d.Append(ctx, "r", epoch, 0, recs); err != journaltest.ErrLost {
			t.Errorf("append: %v, want ErrLost", err)
		}
	}
	cancel()
	wantLedger(t, d, nil)
	if err := d.Deliver(1); err != nil {
		t.Errorf("Deliver(1): %v", err)
	}
	wantLedger(t, d, recs)
	if _, ok := errors.AsType[*journal.ConflictError](d.Deliver(2)); !ok {
		t.Error("the second append was stored too")
	}
	for _, n := range []int{1, 3} {
		if err := d.Deliver(n); err == nil {
			t.Errorf("Deliver(%d) found something", n)
		}
	}
	wantLedger(t, d, recs)
}

func TestFaultyHeld(t *testing.T) {
	recs := facts(1)
	d, epoch := claimed(t, journaltest.Plan{1: journaltest.Held, 2: journaltest.Held})
	done := make(chan error, 1)
	go func() { done <- d.Append(t.Context(), "r", epoch, 0, recs) }()
	<-d.Arrived(1)
	wantLedger(t, d, nil)
	d.LetGo(1)
	if err := <-done; err != nil {
		t.Errorf("append: %v", err)
	}
	wantLedger(t, d, recs)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Append(ctx, "r", epoch, 1, recs); !errors.Is(err, context.Canceled) {
		t.Errorf("held append with a cancelled context: %v", err)
	}
	wantLedger(t, d, recs)
	if d.Arrived(3) != nil {
		t.Error("an append that passes can be waited for")
	}
	d.LetGo(3)
}

func ExampleFaulty() {
	ctx := context.Background()
	d := journaltest.Faulty(journal.NewMemory(), journaltest.Plan{1: journaltest.Stored})
	claim, err := d.Claim(ctx, "run-1", journal.ClaimRequest{TTL: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	rec := journal.Encode(journal.Fact{Body: &journal.Started{Run: "run-1"}}, [16]byte{})
	fmt.Println(d.Append(ctx, "run-1", claim.Epoch, 0, []journal.Record{rec}))
	recs, err := d.Read(ctx, "run-1", 0)
	fmt.Println(len(recs), err)
	// Output:
	// pawl: the answer of the store was lost
	// 1 <nil>
}
