package demo

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// Row is what became of one call of a run, counted where it can be seen.
type Row struct {
	Call string `json:"call"`
	Tool string `json:"tool"`
	// Arguments are those that were decided on, which a reviewer may have changed; then Edited is set.
	Arguments string `json:"arguments"`
	Edited    bool   `json:"edited,omitempty"`
	// Moves says that the tool changes the shop. Effects counts the rows that the shop holds of the call, Requests how
	// often the shop was asked for it.
	Moves    bool `json:"moves"`
	Effects  int  `json:"effects"`
	Requests int  `json:"requests"`
	// Session, Input and Replay count the outputs of the call: in the session's rows, in what the model saw
	// last, and in the run's replay. Session is -1 in a run without one.
	Session int `json:"session"`
	Input   int `json:"model_input"`
	Replay  int `json:"replay"`
}

// Whole reports whether the call has one output everywhere and no effect twice.
func (r Row) Whole() bool {
	return r.Effects <= 1 && (r.Session == 1 || r.Session == -1) && r.Input == 1 && r.Replay == 1
}

// Table counts every call of the result: its effects in the shop's rows, its outputs in the session's rows,
// in the body of the newest request as the model's server captured it, and in the replay list.
func (d *Desk) Table(ctx context.Context, res *pawl.Result) ([]Row, error) {
	replay := res.ToInputList()
	edits, err := d.edits(ctx, res.Run)
	if err != nil {
		return nil, fmt.Errorf("pawl: read the ledger: %w", err)
	}
	input, err := d.captures.last(res.Run)
	if err != nil {
		return nil, err
	}
	var rows []item.Item
	id := d.Ticket.Session()
	if id != "" {
		if rows, err = d.session(id).Items(ctx, -1); err != nil {
			return nil, fmt.Errorf("pawl: read the session: %w", err)
		}
	}
	var table []Row
	for _, it := range replay {
		fc, err := it.FunctionCall()
		if err != nil {
			continue
		}
		r := Row{Call: fc.CallID, Tool: fc.Name, Arguments: fc.Arguments, Moves: fc.Name == "refund" || fc.Name == "send_mail", Session: -1,
			Input: outputsOf(input, fc.CallID), Replay: outputsOf(replay, fc.CallID)}
		if args, ok := edits[fc.CallID]; ok {
			r.Arguments, r.Edited = args, true
		}
		if id != "" {
			r.Session = outputsOf(rows, fc.CallID)
		}
		if r.Effects, r.Requests, err = d.world.Shop.Effects(ctx, res.Run, fc.CallID); err != nil {
			return nil, fmt.Errorf("pawl: read the shop: %w", err)
		}
		table = append(table, r)
	}
	return table, nil
}

// edits are the arguments that reviewers gave to calls of a run, by the calls' ids.
func (d *Desk) edits(ctx context.Context, run string) (map[string]string, error) {
	records, err := d.world.Store.Read(ctx, run, 0)
	if err != nil {
		return nil, err
	}
	var responses [][]item.Item
	edits := map[string]string{}
	for _, rec := range records {
		f, err := journal.Decode(rec)
		if err != nil {
			return nil, err
		}
		switch b := f.Body.(type) {
		case *journal.Responded:
			responses = append(responses, b.Items)
		case *journal.Decided:
			if b.Arguments != "" {
				edits[responses[b.Call.N-1][b.Call.P].Head().CallID] = b.Arguments
			}
		}
	}
	return edits, nil
}

func outputsOf(items []item.Item, call string) int {
	n := 0
	for _, it := range items {
		if h := it.Head(); h.Type == item.TypeFunctionCallOutput && h.CallID == call {
			n++
		}
	}
	return n
}

// Look is what an operator of the shop finds out about a call in doubt: the output it is known to have had, or
// that it left no trace. Only mails can be in doubt.
func (d *Desk) Look(ctx context.Context, in pawl.Interruption) (output string, happened bool, err error) {
	n, _, err := d.world.Shop.Effects(ctx, in.Run, in.CallID)
	return mailSent, n > 0, err
}

// Refunds counts the refunds the shop holds of a run.
func (s *Shop) Refunds(ctx context.Context, run string) (n int, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM refunds WHERE run = ?`, run).Scan(&n)
	return n, err
}

// Left says what a failed run left behind: the refunds the shop has booked, and those whose output the session
// holds.
func (d *Desk) Left(ctx context.Context) (refunds, outputs int, err error) {
	if refunds, err = d.world.Shop.Refunds(ctx, d.Ticket.Run()); err != nil {
		return 0, 0, err
	}
	items, err := d.session(d.Ticket.Session()).Items(ctx, -1)
	if err != nil {
		return 0, 0, err
	}
	for _, it := range items {
		if isRefundCall(it) {
			outputs += outputsOf(items, it.Head().CallID)
		}
	}
	return refunds, outputs, nil
}
