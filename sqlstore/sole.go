package sqlstore

import (
	"database/sql"

	"github.com/pawl-agents/pawl/journal"
)

// The open runs, other than run ?, that have its session or its conversation, if it is
// open itself.
const (
	sqlRival = `SELECT o.run, o.epoch, o.until, o.host, o.boot, o.pid, o.start FROM pawl_runs r JOIN pawl_runs o
		ON o.id <> r.id AND o.ended = 0 AND `
	sqlSessionRival      = sqlRival + `o.session = r.session AND o.backend IS r.backend WHERE r.id = ? AND r.ended = 0 LIMIT 1`
	sqlConversationRival = sqlRival + `o.conversation = r.conversation WHERE r.id = ? AND r.ended = 0 LIMIT 1`
)

// alone returns *journal.BusyError if another open run has the conversation of the run.
func (t *txn) alone(run string, id int64) error {
	for _, q := range []string{sqlSessionRival, sqlConversationRival} {
		busy := &journal.BusyError{Run: run}
		var r runRow
		o := &r.holder.Owner
		err := t.get(q, []any{id}, &busy.Open, &r.epoch, &r.until, &o.Host, &o.Boot, &o.PID, &o.Start)
		if err == sql.ErrNoRows {
			continue
		}
		if err != nil {
			return err
		}
		busy.Holder = r.live()
		return busy
	}
	return nil
}
