package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/sqlstore"
)

// A tool that books in a table beside the store's own: the booking and the record that the call happened commit together,
// so no crash leaves one without the other.
func ExampleNewTxTool() {
	ctx := context.Background()
	store, err := sqlstore.OpenSQLite(":memory:", nil) // or pawl.db
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	err = store.Update(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `CREATE TABLE bookings (seat TEXT PRIMARY KEY)`)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	type seat struct {
		Seat string `json:"seat"`
	}
	book := sqlstore.NewTxTool(sqlstore.TxFunc[seat, string]{
		Name: "book", Description: "Books a seat.",
		Run: func(ctx context.Context, tx *sql.Tx, c *pawl.Call, in seat) (string, error) {
			_, err := tx.ExecContext(ctx, `INSERT INTO bookings VALUES (?)`, in.Seat)
			return "booked " + in.Seat, err
		},
	})
	model := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "book", `{"seat":"12A"}`)),
		pawltest.ScriptedText("You have seat 12A."))
	r := pawl.Runner{Store: store}
	res, err := r.Run(ctx, &pawl.Agent{Name: "Desk", Model: model, Tools: []pawl.Tool{book}}, pawl.UserText("Seat 12A, please."), nil)
	if err != nil {
		log.Fatal(err)
	}
	err = store.View(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var seats int
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM bookings`).Scan(&seats)
		fmt.Println(res.FinalOutput, seats, "booking")
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: You have seat 12A. 1 booking
}
