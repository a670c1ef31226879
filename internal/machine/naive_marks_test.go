package machine_test

import (
	"fmt"
	"strings"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// marks returns what a run of the property must reach: every rule, every kind of fact accepted and refused, every error
// of Check, and the branches of clauses that the second reading marks.
func marks() []string {
	list := []string{"refused: decided otherwise"}
	for _, rule := range strings.Fields("1 2 3 3a 3b 4 5 6 7 8 8a 9 10 11 12 12a 12b 13 13a 14 15") {
		list = append(list, "M2.2 rule "+rule)
	}
	for _, k := range []journal.Kind{journal.KindStarted, journal.KindForked, journal.KindClaimed, journal.KindResumed,
		journal.KindLoaded, journal.KindPrepared, journal.KindIntended, journal.KindResponded, journal.KindPlanned,
		journal.KindDecided, journal.KindSettled, journal.KindExpired, journal.KindJudged, journal.KindConfirmed, journal.KindAbsent,
		journal.KindFailed, journal.KindFired, journal.KindTransferred, journal.KindChecked, journal.KindHandled,
		journal.KindAdded, journal.KindAdmitted, journal.KindObserved, journal.KindCancelled, journal.KindFinished} {
		list = append(list, string(k)+" accepted", string(k)+" refused")
	}
	for _, err := range []error{machine.ErrNotDue, machine.ErrSame, machine.ErrInFlight, machine.ErrDigest, machine.ErrVerdict, journal.ErrNewerJournal} {
		list = append(list, fmt.Sprintf("refused: %v", err))
	}
	return append(append(list, loopMarks()...), callMarks()...)
}

// loopMarks are the branches of clauses about the loop.
func loopMarks() []string {
	return []string{
		"M1.4 refused after the end",
		"M1.5 failed",
		"M1.5 waiting",
		"M1.7 ended",
		"M1.8 all is owed to the new session",
		"M1.8 the history was not loaded",
		"M2.3 ended, not handed again",
		"M4.6 cancelled with a request",
		"M5.3 reconciled",
		"M5.3 the next attempt",
		"M5.3 waits",
		"M5.6 in doubt",
		"M5.7 absent",
		"M5.9 counted by the next attempt",
		"M5.10 fired",
		"M5.11 a request with an approval",
		"M6.4 a response without an id",
		"M7.3 the plan's own tool",
		"M7.5 a twin",
		"M7.6 a call id used before",
		"M10.3 own",
		"M10.5 reconciled",
		"M10.5 the session remembers",
		"M10.6 absent",
		"M10.7 an append failed",
		"M10.8 confirmed in doubt",
		"M11.1 no failure of a cancelled run",
		"M11.1 the first counts",
		"M11.5 cancelled after a failure",
		"M14.1 a message",
		"M14.1 a result, tool use first",
		"M14.1 a result, tool use names",
		"M14.1 a verdict",
		"M14.1 empty",
		"M15.4 a response without a plan",
		"M15.5 cancelled at its end",
		"M17.3 what a frame around is on",
		"M17.6 left",
		"M17.8 the run fails",
		"M17.8 told",
		"M17.8 told further out",
		"M17.9 with those in it",
		"M17.10 stopped",
		"M17.10 unknown",
		"M17.11 e fails the run",
		"M17.11 e is told",
		"M17.11 v fails the run",
		"M17.11 v is told",
		"M17.12 a frame on a session or a conversation",
		"M19.3 beside",
		"M19.4 a call waits for the verdict",
		"M19.5 held",
		"M19.7 asked",
		"M19.7 rejected",
		"M19.9 a handler's message",
		"M19.9 an output is replaced",
		"M19.9 dropped",
		"M19.11 in a closed frame",
		"M19.11 the run",
		"M19.12 told",
		"M20.4 declined",
		"M20.4 invalid_output",
		"M20.4 max_turns",
		"M20.4 refusal",
		"M21.2 admitted",
		"M21.3 checked",
		"M21.4 followed by input",
		"M18.3 handed",
		"M18.5 handed over",
		"M18.5 no result ends the run",
		"M18.7 a view",
		"M18.9 a view",
		"M18.9 sent first",
	}
}

// callMarks are the branches of clauses about calls.
func callMarks() []string {
	return []string{
		"M8.1 settled by the plan",
		"M8.3 ready again",
		"M8.3 the model is told at once",
		"M8.3 unknown and running",
		"M8.3 unknown too often",
		"M8.8 a call waits for its turn",
		"M8.9 told",
		"M8.9 waits",
		"M8.11 not executed",
		"M8.24 approved",
		"M9.21 no edit",
		"M8.12 a late result",
		"M8.13 evidence", "M9.20 a finding", "M9.20 after the end",
		"M8.16 asked about again",
		"M8.17 asks the far side",
		"M8.18 absent",
		"M8.19 the far side cannot tell",
		"M8.20 claimed",
		"M8.20 its result",
		"M8.20 pending",
		"M8.21 asks",
		"M9.4 its own decision though a sticky one covers it",
		"M9.5 decided by a sticky one",
		"M9.7 edited",
		"M9.7 too late for an edit",
		"M9.8 approved but unreadable",
		"M9.9 a sticky approval",
		"M9.9 a sticky rejection",
		"M9.10 denied",
		"M9.10 give up",
		"M9.10 rejected",
		"M9.10 rejected when an attempt may have happened",
		"M9.10 settle",
		"M9.11 retry",
		"M9.12 to be asked about",
		"M9.13 no decision in a cancelled run",
		"M9.14 approved again",
		"M9.16 a question of the tool expires",
		"M9.18 rejected by the deadline",
		"M9.19 the run fails",
		"M12.3 a harmless call is ready again",
		"M12.5 an older owner",
		"M12.5 the owner is gone",
		"M12.8 no late result",
		"M12.8 a transactional call is ready again",
		"M15.3 dropped",
		"M15.3 unknown",
	}
}
