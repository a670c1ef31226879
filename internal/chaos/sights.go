package chaos

import (
	"fmt"
	"strings"
	"time"
)

// sights counts what a campaign came upon. What it never came upon it has not tested.
type sights struct {
	stopped    int // processes that were stopped, and went on or were killed then
	supervised int // runs that were taken up by those who look for runs without an owner
	late       int // results that came when the runner had gone on without them
	delivered  int // results that came from another process
	again      int // and came again
	questions  int // that tools asked themselves
	expired    int // approvals
	told       int // calls in doubt of which the far side knew
	booked     int // calls in the store's transaction
}

const takenUp = "runs taken up"

// add adds those of a run.
func (s *sights) add(o sights) {
	s.late += o.late
	s.questions += o.questions
	s.expired += o.expired
	s.told += o.told
}

// each calls f with every kind of sight.
func (s *sights) each(f func(n int, what string)) {
	f(s.stopped, "processes stopped")
	f(s.supervised, takenUp)
	f(s.late, "late results")
	f(s.delivered, "results delivered")
	f(s.again, "delivered again")
	f(s.questions, "questions of tools")
	f(s.expired, "approvals expired")
	f(s.told, "doubts the far side ended")
	f(s.booked, "bookings")
}

// String lists them.
func (s *sights) String() string {
	var list []string
	s.each(func(n int, what string) { list = append(list, fmt.Sprintf("%d %s", n, what)) })
	return strings.Join(list, ", ")
}

// enough is how long a campaign takes that comes upon everything; behind an engine's server much less happens in that time.
const (
	enough         = 30 * time.Second
	enoughOnEngine = 10 * time.Minute
)

// missing are the kinds that a campaign should have come upon. With an engine nobody has to take up runs.
func (s *sights) missing(duration time.Duration, h Host) (list []string) {
	if h.engine() && duration < enoughOnEngine || duration < enough {
		return nil
	}
	s.each(func(n int, what string) {
		if n == 0 && !(h.engine() && what == takenUp) {
			list = append(list, "no "+what)
		}
	})
	return list
}
