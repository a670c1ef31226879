package sqlstore

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/journal"
)

func encode(frame string, b journal.Body) journal.Record {
	return journal.Encode(journal.Fact{Frame: frame, Time: 1, Body: b}, [16]byte{})
}

func started(run, session string) journal.Record {
	b := &journal.Started{Run: run}
	if session != "" {
		b.Session = &journal.SessionRef{ID: session}
	}
	return encode("", b)
}

func TestListing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	epochs := map[string]uint64{}
	for _, run := range []string{"claimed", "c", "b", "a"} {
		epochs[run] = claim(t, s, run)
	}
	heads := map[string]uint64{}
	add := func(run string, recs ...journal.Record) {
		t.Helper()
		if err := s.Append(t.Context(), run, epochs[run], heads[run], recs); err != nil {
			t.Fatal(err)
		}
		heads[run] += uint64(len(recs))
	}
	list := func(q journal.Query) string {
		t.Helper()
		infos, err := s.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var runs []string
		for _, r := range infos {
			runs = append(runs, r.Run)
		}
		return strings.Join(runs, " ")
	}
	check := func(when string, want map[string]journal.Query) {
		t.Helper()
		for runs, q := range want {
			if got := list(q); got != runs {
				t.Errorf("%s, List(%+v) = %q, want %q", when, q, got, runs)
			}
		}
	}

	add("a", started("a", "s"))
	add("b", started("b", ""))
	add("c", started("c", "s"), encode("child", &journal.Started{Run: "child", Session: &journal.SessionRef{ID: "theirs"}}))
	add("a", encode("child", &journal.Finished{}))
	check("newest first by the first facts; frames do not count", map[string]journal.Query{
		"c b a": {},
		"c a":   {Session: "s", Open: true},
		"":      {Session: "theirs"},
		"b a":   {Before: "c"},
		"a":     {Session: "s", Before: "b"},
		"c b":   {Open: true, Limit: 2},
	})

	add("b", encode("", &journal.Forked{Run: "b", Session: &journal.SessionRef{ID: "s"}}))
	add("c", encode("", &journal.Forked{Run: "c"}))
	add("a", encode("", &journal.Finished{}))
	add("a", encode("", &journal.Settled{Late: true}))
	check("a fork is bound anew; an ended run stays ended", map[string]journal.Query{
		"b a": {Session: "s"},
		"b":   {Session: "s", Open: true},
		"c b": {Open: true},
	})
	if infos, err := s.List(t.Context(), journal.Query{Before: "b"}); err != nil || len(infos) != 1 ||
		infos[0].Head != 4 || !infos[0].Ended || infos[0].Session != "s" || infos[0].Holder == nil {
		t.Errorf("run a is listed as %+v, %v", infos, err)
	}
}

// A run whose first fact cannot be read here is refused before it is stored.
func TestAppendRefusesWhatItCannotRead(t *testing.T) {
	s := open(t, memory, nil)
	epoch := claim(t, s, "run")
	newer := started("run", "s")
	newer.Version = 99
	for name, r := range map[string]journal.Record{
		"newer":   newer,
		"damaged": {Kind: journal.KindStarted, Version: 1, Payload: `{`},
	} {
		if err := s.Append(t.Context(), "run", epoch, 0, []journal.Record{r}); err == nil {
			t.Errorf("%s: the fact was stored", name)
		}
	}
	if got, err := s.Read(t.Context(), "run", 0); err != nil || len(got) != 0 {
		t.Errorf("the run has %v, %v", got, err)
	}
}

// No listing and no read scans a table or sorts.
func TestQueriesUseIndexes(t *testing.T) {
	s := open(t, memory, nil)
	const count = "; CORRELATED SCALAR SUBQUERY 1; SEARCH i USING COVERING INDEX pawl_inbox_waiting (run=?)"
	const unseen = "SCAN i USING COVERING INDEX pawl_inbox_waiting; CORRELATED SCALAR SUBQUERY 3; SEARCH r USING INTEGER PRIMARY KEY (rowid=?)"
	const due = "; LIST SUBQUERY 4; COMPOUND QUERY; LEFT-MOST SUBQUERY; SEARCH pawl_runs USING COVERING INDEX pawl_runs_due (due<?)" +
		"; UNION ALL; " + unseen
	const rival = "SEARCH r USING INTEGER PRIMARY KEY (rowid=?); SEARCH o USING INDEX "
	for q, want := range map[string]string{
		sqlHead:            "SEARCH pawl_runs USING INDEX sqlite_autoindex_pawl_runs_1 (run=?)",
		sqlList:            "SEARCH pawl_runs USING INTEGER PRIMARY KEY (rowid<?)" + count,
		sqlListOpen:        "SEARCH pawl_runs USING INDEX pawl_runs_open (id<?)" + count,
		sqlListSession:     "SEARCH pawl_runs USING INDEX pawl_runs_session (session=? AND rowid<?)" + count,
		sqlListSessionOpen: "SEARCH pawl_runs USING INDEX pawl_runs_session_open (session=? AND rowid<?)" + count,
		sqlListDue:         "SEARCH pawl_runs USING INTEGER PRIMARY KEY (rowid=?)" + due + count,
		sqlListSessionDue:  "SEARCH pawl_runs USING INDEX pawl_runs_session_open (session=? AND rowid=?)" + due + count,
		sqlListHeld:        "SEARCH pawl_runs USING INTEGER PRIMARY KEY (rowid=?); LIST SUBQUERY 2; SEARCH pawl_runs USING INDEX pawl_runs_due (due=?)" + count,
		// It scans the lanes, which are few, and the entries that nobody has taken.
		sqlNext: "COMPOUND QUERY; LEFT-MOST SUBQUERY; CO-ROUTINE lane; SETUP; CO-ROUTINE (subquery-1); SCAN pawl_runs USING COVERING INDEX pawl_runs_lane; SCAN (subquery-1)" +
			"; RECURSIVE STEP; SCAN l; SEARCH n USING INTEGER PRIMARY KEY (rowid=?)" +
			"; CORRELATED SCALAR SUBQUERY 3; SEARCH r USING COVERING INDEX pawl_runs_lane (agent=? AND queue=? AND priority>?)" +
			"; CORRELATED SCALAR SUBQUERY 4; SEARCH r USING COVERING INDEX pawl_runs_lane (agent=? AND queue>?)" +
			"; CORRELATED SCALAR SUBQUERY 5; SEARCH r USING COVERING INDEX pawl_runs_lane (agent>?)" +
			"; SCAN l; LIST SUBQUERY 8; SCAN json_each VIRTUAL TABLE INDEX 1:; CREATE BLOOM FILTER; SEARCH n USING INTEGER PRIMARY KEY (rowid=?)" +
			"; CORRELATED SCALAR SUBQUERY 7; SEARCH r USING INDEX pawl_runs_lane (agent=? AND queue=? AND priority=? AND due<?)" +
			"; UNION ALL; SEARCH pawl_runs USING INTEGER PRIMARY KEY (rowid=?); LIST SUBQUERY 11; SCAN i USING COVERING INDEX pawl_inbox_waiting" +
			"; CORRELATED SCALAR SUBQUERY 10; SEARCH r USING INTEGER PRIMARY KEY (rowid=?)",
		sqlSessionRival:      rival + "pawl_runs_session_open (session=?)",
		sqlConversationRival: rival + "pawl_runs_conversation_open (conversation=?)",
		sqlFacts:             "SEARCH pawl_facts USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
		sqlNewest:            "SEARCH agent_messages USING INDEX idx_agent_messages_session_id (session_id=?)",
	} {
		var plan []string
		rows, err := s.read.Query("EXPLAIN QUERY PLAN "+q, make([]any, strings.Count(q, "?"))...)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, detail)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(plan, "; "); got != want {
			t.Errorf("%s\nis planned as %s\nwant          %s", q, got, want)
		}
	}
}
