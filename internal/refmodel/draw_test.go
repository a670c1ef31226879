package refmodel_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/pawl-agents/pawl/internal/refmodel"
)

// drawRun draws a run. Its last answer is a message, so that it ends.
func drawRun(t *rapid.T) *refmodel.Run {
	run := &refmodel.Run{Input: "go", Decisions: map[string]refmodel.Decision{}, Decreed: map[string]bool{}}
	for i := range rapid.IntRange(1, 3).Draw(t, "tools") {
		run.Tools = append(run.Tools, refmodel.Tool{Name: fmt.Sprint("tool", i), Gate: rapid.SampledFrom([]refmodel.Gate{refmodel.Open, refmodel.Open,
			refmodel.Asks, refmodel.Allows, refmodel.Denies}).Draw(t, "gate"), Once: rapid.Bool().Draw(t, "once"), Fails: rapid.IntRange(0, 4).Draw(t, "fails") == 4})
	}
	run.After = rapid.SampledFrom([]refmodel.After{refmodel.AfterAgain, refmodel.AfterAgain, refmodel.AfterFirst, refmodel.AfterNames, refmodel.AfterTwo}).Draw(t, "after")
	if run.After == refmodel.AfterNames {
		run.StopAt = []string{"tool0"}
	}
	run.MaxTurns = rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "max turns")
	run.TellUnknown = rapid.Bool().Draw(t, "tell unknown")
	for i := range rapid.IntRange(0, 2).Draw(t, "before") {
		run.Before = append(run.Before, fmt.Sprint("before ", i))
	}
	for n := range rapid.IntRange(0, 3).Draw(t, "turns") {
		run.Turns = append(run.Turns, drawTurn(t, run, n+1))
	}
	run.Turns = append(run.Turns, refmodel.Turn{Text: rapid.SampledFrom([]string{"done", ""}).Draw(t, "last")})
	return run
}

func drawTurn(t *rapid.T, run *refmodel.Run, n int) (turn refmodel.Turn) {
	turn.Text = rapid.SampledFrom([]string{"", "", "let me see"}).Draw(t, "text")
	for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
		c := refmodel.Call{ID: fmt.Sprintf("t%dc%d", n, i), N: rapid.IntRange(1, 3).Draw(t, "n"), Bad: rapid.IntRange(0, 5).Draw(t, "bad") == 5}
		c.Tool = fmt.Sprint("tool", rapid.IntRange(0, len(run.Tools)-1).Draw(t, "tool"))
		if rapid.IntRange(0, 9).Draw(t, "unknown") == 9 {
			c.Tool = "nobody"
		}
		if i > 0 && rapid.IntRange(0, 5).Draw(t, "twin") == 5 {
			c = turn.Calls[i-1]
		}
		turn.Calls = append(turn.Calls, c)
		if rapid.Bool().Draw(t, "decision") {
			run.Decisions[c.ID] = drawDecision(t)
		}
	}
	return turn
}

func drawDecision(t *rapid.T) refmodel.Decision {
	d := refmodel.Decision{Reject: rapid.Bool().Draw(t, "reject"), Always: rapid.IntRange(0, 3).Draw(t, "always") == 3}
	if d.Reject {
		d.Message = rapid.SampledFrom([]string{"", "no"}).Draw(t, "message")
	} else {
		d.Edit = rapid.SampledFrom([]int{0, 0, 7}).Draw(t, "edit")
	}
	return d
}

// place is where a run's conversation is kept.
type place string

const (
	nowhere      place = "nowhere"
	plain        place = "a plain session"
	remembering  place = "a session that remembers batches"
	chain        place = "a chain of responses"
	conversation place = "a conversation"
)

// trouble is what goes wrong in one drive, At a point that is counted within it.
type trouble struct {
	Kind kind
	At   int
	// Many is how often it goes wrong from there on.
	Many int
	// Stream, Again and State say how the run is driven: shown as it happens, with Run rather than
	// Resume, from the state of the error before rather than from the run's id.
	Stream, Again, State bool
}

type kind string

const (
	none         kind = "nothing"
	stops        kind = "the caller stops the drive"
	leaves       kind = "the reader leaves"
	dies         kind = "the process dies"
	full         kind = "the store takes nothing any more"
	lostStored   kind = "appends are stored, and the answers lost"
	lostAbsent   kind = "appends are lost"
	lostLater    kind = "appends are lost, and stored later"
	sessionDown  kind = "the session takes nothing"
	sessionDeaf  kind = "the session's answers are lost"
	modelRefuses kind = "the model refuses"
	modelDeaf    kind = "the model's answers are lost"
	rival        kind = "somebody else resumes the run too"
)

// setting is a run and the world it is played in.
type setting struct {
	Run      *refmodel.Run
	Place    place
	Parallel int
	Troubles []trouble
}

func drawSetting(t *rapid.T) setting {
	s := setting{Run: drawRun(t), Parallel: rapid.IntRange(0, 2).Draw(t, "parallel")}
	s.Place = rapid.SampledFrom([]place{nowhere, plain, remembering, chain, conversation}).Draw(t, "place")
	kinds := []kind{none, stops, leaves, dies, full, lostStored, lostAbsent, lostLater, rival}
	switch s.Place {
	case plain, remembering:
		kinds = append(kinds, sessionDown, sessionDeaf)
	default:
		s.Run.Before = nil
	}
	if s.Place == conversation {
		// What becomes of a request that nobody heard of cannot always be found out there.
		return s
	}
	kinds = append(kinds, modelRefuses, modelDeaf)
	for range rapid.IntRange(0, 5).Draw(t, "troubles") {
		tr := trouble{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), At: rapid.IntRange(1, 20).Draw(t, "at"), Many: rapid.IntRange(1, 4).Draw(t, "many"),
			Stream: rapid.Bool().Draw(t, "stream"), Again: rapid.Bool().Draw(t, "again"), State: rapid.Bool().Draw(t, "state")}
		if slices.Contains([]kind{sessionDown, sessionDeaf, modelRefuses, modelDeaf}, tr.Kind) {
			tr.At = 1 + tr.At%3 // a run has few of them
		}
		s.Troubles = append(s.Troubles, tr)
	}
	return s
}
