package sqlstore_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/sqlstore"
)

// A session in a file, which the OpenAI Agents SDK for Python reads and writes too.
func ExampleStore_Session() {
	ctx := context.Background()
	store, err := sqlstore.OpenSQLite(":memory:", nil) // or conversations.db
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	s := store.Session("c-42")
	if err := s.Append(ctx, []item.Item{item.UserText("Hello"), item.AssistantText("Hi!")}); err != nil {
		log.Fatal(err)
	}
	newest, err := s.Items(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(newest)
	// Output: [{"role":"assistant","content":"Hi!"}]
}

// A batch of the session and the facts of a run commit together.
func ExampleSession_Companion() {
	dir, err := os.MkdirTemp("", "pawl")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store, err := sqlstore.OpenSQLite(filepath.Join(dir, "pawl.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	claim, err := store.Claim(ctx, "ticket-4711", journal.ClaimRequest{TTL: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	s := store.Session("c-42")
	fact := journal.Encode(journal.Fact{Body: &journal.Confirmed{N: 1, Upto: 1}}, [16]byte{1})
	batch := s.Companion("ticket-4711/1", []item.Item{item.UserText("Refund order 9.")})
	err = store.Append(ctx, "ticket-4711", claim.Epoch, claim.Head, []journal.Record{fact}, batch)
	if err != nil {
		log.Fatal(err)
	}
	items, err := s.Items(ctx, -1)
	fmt.Println(items, err)
	// Output: [{"role":"user","content":"Refund order 9."}] <nil>
}
