package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journal.Driver { return journal.NewMemory() })
}

func claim(t *testing.T, m *journal.Memory, run string, ttl time.Duration) journal.Claim {
	t.Helper()
	c, err := m.Claim(t.Context(), run, journal.ClaimRequest{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// facts returns records of the bodies.
func facts(bodies ...journal.Body) []journal.Record {
	var recs []journal.Record
	for i, b := range bodies {
		recs = append(recs, journal.Encode(journal.Fact{Time: int64(i), Body: b}, [16]byte{1}))
	}
	return recs
}

func TestMemoryLeaseEndsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := journal.NewMemory()
		first := claim(t, m, "a", time.Minute)
		if err := m.Append(t.Context(), "a", first.Epoch, 0, facts(&journal.Started{})); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if err := m.Renew(t.Context(), "a", first.Epoch, time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute - time.Nanosecond)
		_, err := m.Claim(t.Context(), "a", journal.ClaimRequest{TTL: time.Minute})
		claimed, ok := errors.AsType[*journal.ClaimedError](err)
		if !ok || time.Until(claimed.Holder.Until) != time.Nanosecond {
			t.Errorf("claim a nanosecond before the end: %v, want *ClaimedError", err)
		}
		if infos, err := m.List(t.Context(), journal.Query{}); err != nil || infos[0].Holder == nil {
			t.Errorf("List: %v, %v, want a holder", infos, err)
		}
		time.Sleep(time.Nanosecond)
		if infos, err := m.List(t.Context(), journal.Query{}); err != nil || infos[0].Holder != nil {
			t.Errorf("List: %v, %v, want no holder", infos, err)
		}
		if second := claim(t, m, "a", time.Minute); second.Previous == nil || second.Previous.Epoch != first.Epoch {
			t.Errorf("claim at the end: %+v", second)
		}
	})
}

func TestMemoryRefusesWhatItCannotRead(t *testing.T) {
	m := journal.NewMemory()
	c := claim(t, m, "a", time.Hour)
	newer := facts(&journal.Started{})
	newer[0].Version = 2
	if err := m.Append(t.Context(), "a", c.Epoch, 0, newer); !errors.Is(err, journal.ErrNewerJournal) {
		t.Errorf("append of a started fact of version 2: %v, want ErrNewerJournal", err)
	}
	damaged := facts(&journal.Forked{})
	damaged[0].Payload = `{"session":1}`
	if err := m.Append(t.Context(), "a", c.Epoch, 0, damaged); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("append of a damaged forked fact: %v, want ErrCorrupt", err)
	}
	if recs, err := m.Read(t.Context(), "a", 0); err != nil || len(recs) != 0 {
		t.Errorf("the ledger has %v, %v", recs, err)
	}
}

// probe is a companion that runs a function.
type probe func(tx any) error

func (p probe) Commit(_ context.Context, tx any) error { return p(tx) }

func TestMemoryCommitsCompanionsBeforeAnybodySees(t *testing.T) {
	m := journal.NewMemory()
	c := claim(t, m, "a", time.Hour)
	read := make(chan int, 1)
	err := m.Append(t.Context(), "a", c.Epoch, 0, facts(&journal.Started{}), probe(func(tx any) error {
		if tx != nil {
			t.Errorf("tx is %v", tx)
		}
		// Other runs go on; a reader of this one waits until all has committed.
		if infos, err := m.List(t.Context(), journal.Query{}); err != nil || len(infos) != 0 {
			t.Errorf("List: %v, %v, want nothing yet", infos, err)
		}
		go func() {
			recs, _ := m.Read(context.WithoutCancel(t.Context()), "a", 0)
			read <- len(recs)
		}()
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if n := <-read; n != 1 {
		t.Errorf("the reader saw %d records, want 1", n)
	}
}

func TestMemorySurvivesACompanionThatPanics(t *testing.T) {
	m := journal.NewMemory()
	c := claim(t, m, "a", time.Hour)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = m.Append(t.Context(), "a", c.Epoch, 0, facts(&journal.Started{}), probe(func(any) error { panic("no") }))
	}()
	if err := m.Append(t.Context(), "a", c.Epoch, 0, facts(&journal.Started{})); err != nil {
		t.Errorf("append after a panic: %v", err)
	}
}

func TestMemoryImport(t *testing.T) {
	all := facts(&journal.Started{Session: &journal.SessionRef{ID: "s"}}, &journal.Claimed{Epoch: 41}, &journal.Cancelled{},
		&journal.Finished{Cancelled: true})
	other := facts(&journal.Started{}, &journal.Claimed{Epoch: 41})
	m := journal.NewMemory()
	for _, tt := range []struct {
		name     string
		recs     []journal.Record
		conflict bool
		head     int
	}{
		{"a new run", all[:2], false, 2},
		{"the same again", all[:2], false, 2},
		{"nothing", nil, false, 2},
		{"its beginning", all[:1], false, 2},
		{"what follows", all, false, 4},
		{"its beginning", all[:3], false, 4},
		{"another run", other, true, 4},
	} {
		err := m.Import("a", tt.recs)
		if conflict, ok := errors.AsType[*journal.ConflictError](err); ok != tt.conflict {
			t.Errorf("import of %s: %v", tt.name, err)
		} else if ok && *conflict != (journal.ConflictError{Run: "a", After: 2, Head: 4}) {
			t.Errorf("import of %s: %+v", tt.name, conflict)
		}
		if recs, err := m.Read(t.Context(), "a", 0); err != nil || !slices.Equal(recs, all[:tt.head]) {
			t.Errorf("after the import of %s: %v, %v", tt.name, recs, err)
		}
	}
	infos, err := m.List(t.Context(), journal.Query{Session: "s"})
	if err != nil || len(infos) != 1 || !infos[0].Ended {
		t.Errorf("List: %+v, %v, want the run, ended", infos, err)
	}
	if c := claim(t, m, "a", time.Hour); c.Epoch != 43 || c.Head != 4 {
		t.Errorf("claim %+v, want epoch 42 after 4 records", c)
	}
}

func TestMemoryImportRefuses(t *testing.T) {
	m := journal.NewMemory()
	damaged := facts(&journal.Started{})
	damaged[0].Payload = `{"run":"x"}`
	if err := m.Import("a", damaged); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("import of a damaged record: %v, want ErrCorrupt", err)
	}
	newer := facts(&journal.Started{})
	newer[0].Version = 2
	newer[0].Hash = journal.LeafHash(&newer[0])
	if err := m.Import("a", newer); !errors.Is(err, journal.ErrNewerJournal) {
		t.Errorf("import of a newer record: %v, want ErrNewerJournal", err)
	}
	held := claim(t, m, "a", time.Hour)
	_, ok := errors.AsType[*journal.ClaimedError](m.Import("a", facts(&journal.Started{})))
	if !ok {
		t.Error("a run that somebody drives was imported")
	}
	if err := m.Release(t.Context(), "a", held.Epoch, journal.Rest{}); err != nil {
		t.Fatal(err)
	}
	if err := m.Import("a", facts(&journal.Started{})); err != nil {
		t.Errorf("import after the release: %v", err)
	}
}

func BenchmarkMemoryAppend(b *testing.B) {
	m := journal.NewMemory()
	ctx := b.Context()
	c, err := m.Claim(ctx, "a", journal.ClaimRequest{TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	recs := records(1)
	b.ReportAllocs()
	for after := uint64(0); b.Loop(); after += uint64(len(recs)) {
		if err := m.Append(ctx, "a", c.Epoch, after, recs); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleMemory() {
	ctx := context.Background()
	store := journal.NewMemory()
	claim, err := store.Claim(ctx, "run-1", journal.ClaimRequest{TTL: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	rec := journal.Encode(journal.Fact{Body: &journal.Started{Run: "run-1", Agent: "desk"}}, [16]byte{})
	if err := store.Append(ctx, "run-1", claim.Epoch, claim.Head, []journal.Record{rec}); err != nil {
		fmt.Println(err)
		return
	}
	// Somebody else cannot write: the claim has another epoch.
	fmt.Println(store.Append(ctx, "run-1", claim.Epoch-1, 1, []journal.Record{rec}))
	recs, err := store.Read(ctx, "run-1", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range recs {
		fmt.Println(r.Kind, r.Payload)
	}
	// Output:
	// pawl: the run was claimed by another driver
	// started {"run":"run-1","agent":"desk"}
}

func ExampleEncode() {
	fact := journal.Fact{Time: 1764444000123, Body: &journal.Confirmed{N: 1, Upto: 3}}
	rec := journal.Encode(fact, [16]byte{}) // a real salt is random
	fmt.Println(rec.Kind, rec.Payload, rec.Verify())
	again, err := journal.Decode(rec)
	fmt.Println(again.Body.(*journal.Confirmed).Upto, err)
	// Output:
	// confirmed {"n":1,"upto":3} <nil>
	// 3 <nil>
}
