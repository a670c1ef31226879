package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-agents/pawl"
)

// TxFunc describes a tool whose body works in the run store's own transaction: what it writes
// to tables of yours beside the store's own and the record of its outcome commit together, so
// that a call happens exactly once. The fields that pawl.Func has too mean what they mean
// there. sqlstore.NewTxTool is the same for those who have a *sql.Tx, and works with this store
// as well.
type TxFunc[In, Out any] struct {
	Name, Description string
	Approve           func(ctx context.Context, c *pawl.Call, in In) (pawl.Gate, error)
	Expires           time.Duration
	OnExpiry          pawl.OnExpiry
	// Run is the body. It keeps a connection and the row of its run while it works. It must use
	// tx with ctx, must not end tx or keep it, and must not call the store or a Runner of it:
	// that is ErrInTransaction. Its error, or the end of ctx, rolls back all it did. What it
	// does elsewhere is not rolled back, and may happen again.
	Run func(ctx context.Context, tx pgx.Tx, c *pawl.Call, in In) (Out, error)
	// Timeout bounds the body; 0 means pawl.DefaultTxTimeout.
	Timeout time.Duration
	OnError func(ctx context.Context, c *pawl.Call, err error) string
	// OutputGuardrails are asked inside the transaction. What they reject or trip on commits;
	// if one gives no verdict it is rolled back.
	InputGuardrails  []pawl.ToolInputGuardrail
	OutputGuardrails []pawl.ToolOutputGuardrail
}

// NewTxTool makes a transactional tool, for agents whose Runner's store is a *Store. What is
// wrong with it is returned by its Err, as for pawl.NewTool.
func NewTxTool[In, Out any](f TxFunc[In, Out]) pawl.Tool {
	tool := pawl.Func[In, Out]{Name: f.Name, Description: f.Description, Effect: pawl.Transactional, Approve: f.Approve,
		Expires: f.Expires, OnExpiry: f.OnExpiry, Timeout: f.Timeout, OnError: f.OnError,
		InputGuardrails: f.InputGuardrails, OutputGuardrails: f.OutputGuardrails}
	if f.Run != nil {
		tool.Run = func(ctx context.Context, c *pawl.Call, in In) (out Out, err error) {
			tx, ok := c.Tx.(*Tx)
			if !ok {
				return out, fmt.Errorf("pawl: tool %q needs a transaction of a PostgreSQL store, and has a %T", c.Tool, c.Tx)
			}
			return f.Run(ctx, tx, c, in)
		}
	}
	return pawl.NewTool(tool)
}
