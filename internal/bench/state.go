package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// stateTurns is the length of the paused run whose state is saved and loaded.
const stateTurns = 1000

// paused returns a run of so many turns that waits for the approval of the last call.
func paused(turns int) (*pawl.RunState, error) {
	agent := newScripted(turns).agent()
	calls := 0
	agent.Tools[0] = pawl.NewTool(pawl.Func[lookupArgs, string]{
		Name: toolName, Description: toolText,
		Approve: func(context.Context, *pawl.Call, lookupArgs) (pawl.Gate, error) {
			if calls++; calls == turns {
				return pawl.Ask, nil
			}
			return pawl.Allow, nil
		},
		Run: func(_ context.Context, _ *pawl.Call, in lookupArgs) (string, error) { return lookup(in) },
	})
	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText(question), &pawl.RunOptions{MaxTurns: -1})
	if err != nil {
		return nil, err
	}
	if !res.Waiting() {
		return nil, fmt.Errorf("the run is %s", res.Status)
	}
	return res.State(), nil
}

// saveAndLoad marshals the state and reads it back.
func saveAndLoad(s *pawl.RunState) work {
	return func() (int, error) {
		doc, err := s.MarshalJSON()
		if err != nil {
			return 0, err
		}
		back, err := pawl.ParseRunState(doc)
		if err != nil {
			return 0, err
		}
		if len(back.Interruptions()) != 1 {
			return 0, errors.New("the state came back without its interruption")
		}
		return 1, nil
	}
}

// decodeAll decodes every item of the run once.
func decodeAll(s *pawl.RunState) work {
	var items []string
	for _, it := range s.Result().ToInputList() {
		items = append(items, it.Raw())
	}
	return func() (int, error) {
		for _, raw := range items {
			var it struct {
				ID        string `json:"id"`
				Type      string `json:"type"`
				Role      string `json:"role"`
				Status    string `json:"status"`
				CallID    string `json:"call_id"`
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
				Output    string `json:"output"`
			}
			if err := json.Unmarshal([]byte(raw), &it); err != nil {
				return 0, err
			}
		}
		return 1, nil
	}
}

// journalBytes returns what the ledger of a run of 1,000 turns takes for a turn, at its end, and the raw items of such a
// turn. What a record takes is its payload, salt and hash, and its other columns. A ledger that grows by more for a later
// turn than for an earlier one, beyond a digit here and there, is an error.
func journalBytes() (pawlBytes, raw float64, err error) {
	const turns, window = 1000, 100
	agent := newScripted(turns).agent()
	store := journal.NewMemory()
	r := pawl.Runner{Store: store}
	res, err := r.Run(context.Background(), agent, pawl.UserText(question), &pawl.RunOptions{MaxTurns: -1})
	if err != nil {
		return 0, 0, err
	}
	records, err := store.Read(context.Background(), res.Run, 0)
	if err != nil {
		return 0, 0, err
	}
	var ends []int // size up to each response
	size := 0
	for _, rec := range records {
		size += recordBytes(&rec)
		if rec.Kind == journal.KindResponded {
			ends = append(ends, size)
		}
	}
	late := ends[turns-1] - ends[turns-1-window]
	early := ends[2*window] - ends[window] // three digits to a number, as at the end
	if late > early*101/100 {
		return 0, 0, fmt.Errorf("the ledger grows by %d bytes for %d late turns, by %d for early ones", late, window, early)
	}
	return float64(late) / window, float64(turnBytes(turns / 2)), nil
}

func recordBytes(r *journal.Record) int {
	const numbers = 2 * 8 // time and place
	return len(r.Payload) + len(r.Salt) + len(r.Hash) + len(r.Kind) + len(r.Frame) + numbers
}
