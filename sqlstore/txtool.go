package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pawl-agents/pawl"
)

// TxFunc describes a tool whose body works in the run store's own transaction: what it
// writes to tables of yours beside the store's own and the record of its outcome commit
// together, so that a call happens exactly once. The fields that pawl.Func has too mean what
// they mean there.
type TxFunc[In, Out any] struct {
	Name, Description string
	Approve           func(ctx context.Context, c *pawl.Call, in In) (pawl.Gate, error)
	Expires           time.Duration
	OnExpiry          pawl.OnExpiry
	// Run is the body. It holds the database's only writer, so it must be short: compute and
	// ask others before, in other tools. It must use tx with ctx, must not end tx or keep it, and
	// must not call the store or a Runner of it: that is ErrInTransaction. Its error, or the end
	// of ctx, rolls back all it did. What it does elsewhere is not rolled back, and may
	// happen again.
	Run func(ctx context.Context, tx *sql.Tx, c *pawl.Call, in In) (Out, error)
	// Timeout bounds the body; 0 means pawl.DefaultTxTimeout.
	Timeout time.Duration
	OnError func(ctx context.Context, c *pawl.Call, err error) string
	// OutputGuardrails are asked inside the transaction. What they reject or trip on commits;
	// if one gives no verdict it is rolled back.
	InputGuardrails  []pawl.ToolInputGuardrail
	OutputGuardrails []pawl.ToolOutputGuardrail
}

// NewTxTool makes a transactional tool, for agents whose Runner's store is a *Store, or one of
// package pgstore. What is wrong with it is returned by its Err, as for pawl.NewTool.
func NewTxTool[In, Out any](f TxFunc[In, Out]) pawl.Tool {
	tool := pawl.Func[In, Out]{Name: f.Name, Description: f.Description, Effect: pawl.Transactional, Approve: f.Approve,
		Expires: f.Expires, OnExpiry: f.OnExpiry, Timeout: f.Timeout, OnError: f.OnError,
		InputGuardrails: f.InputGuardrails, OutputGuardrails: f.OutputGuardrails}
	if f.Run != nil {
		tool.Run = func(ctx context.Context, c *pawl.Call, in In) (out Out, err error) {
			switch tx := c.Tx.(type) {
			case *sql.Tx:
				return f.Run(ctx, tx, c, in)
			case interface{ SQL() *sql.Tx }: // of package pgstore
				return f.Run(ctx, tx.SQL(), c, in)
			}
			return out, fmt.Errorf("pawl: tool %q needs a transaction of an SQL store, and has a %T", c.Tool, c.Tx)
		}
	}
	return pawl.NewTool(tool)
}

// Update runs fn in a transaction of the store's database and commits it, for tables of
// yours beside the store's own. An error or a panic of fn rolls it back and is returned,
// wrapped. It is a write like any other of the store: it waits for its turn, others wait for
// it, and what Transact says of fn holds.
func (s *Store) Update(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	return s.doAlone(ctx, func(t *txn) error {
		return t.lend(ctx, "", func(ctx context.Context, tx any) error { return fn(ctx, tx.(*sql.Tx)) })
	})
}

// View runs fn in a transaction that only reads: all it sees is of one moment.
func (s *Store) View(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	return s.view(ctx, func(v view) error { return fn(ctx, v.tx) })
}
