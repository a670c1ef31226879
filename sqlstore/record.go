package sqlstore

import (
	"fmt"

	"github.com/pawl-agents/pawl/journal"
)

// recordRow takes the columns of a record from a result: kind, version, frame,
// time, payload, salt, hash.
type recordRow struct{ rec journal.Record }

func (r *recordRow) dest() []any {
	return []any{(*string)(&r.rec.Kind), &r.rec.Version, &r.rec.Frame, &r.rec.Time, &r.rec.Payload,
		blob(r.rec.Salt[:]), blob(r.rec.Hash[:])}
}

// blob takes a column of its own length.
type blob []byte

// Scan implements sql.Scanner.
func (b blob) Scan(src any) error {
	s, ok := src.([]byte)
	if !ok || len(s) != len(b) {
		return fmt.Errorf("%w: %d bytes where %d belong", journal.ErrCorrupt, len(s), len(b))
	}
	copy(b, s)
	return nil
}
