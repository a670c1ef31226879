// Package listing reads from records what a store lists of their run.
package listing

import (
	"fmt"

	"github.com/pawl-agents/pawl/journal"
)

// Change is what an append changes in the listing of its run.
type Change struct {
	Binds bool // to what the newest such fact says
	To    journal.Binding
	Ends  bool
	// Started is the fact that begins the run; nil if it is not among the records.
	Started *journal.Started
}

// Of decodes the facts that bind a run to a conversation, no others. An error says that a
// record cannot be stored.
func Of(recs []journal.Record) (c Change, err error) {
	for _, r := range recs {
		if len(r.Payload) > journal.MaxPayload {
			return c, fmt.Errorf("pawl: fact %q has %d bytes, the limit is %d", r.Kind, len(r.Payload), journal.MaxPayload)
		}
		if r.Frame != "" {
			continue
		}
		switch r.Kind {
		case journal.KindFinished:
			c.Ends = true
		case journal.KindStarted, journal.KindForked:
			f, err := journal.Decode(r)
			if err != nil {
				return c, err
			}
			c.To, c.Binds = journal.BindingOf(f.Body)
			if s, ok := f.Body.(*journal.Started); ok {
				c.Started = s
			}
		}
	}
	return c, nil
}
