package chaos

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/pawl-agents/pawl"
)

// mode says where a run's conversation is kept.
type mode string

// The modes. A conversation is nowhere but in the run; in a session in the run store; in a session in another database, which
// remembers batches or is plain; or with the model's server, as a chain of responses or as a conversation.
const (
	modeNone         mode = "none"
	modeOwn          mode = "own"
	modeBatches      mode = "batches"
	modePlain        mode = "plain"
	modeChain        mode = "chain"
	modeConversation mode = "conversation"
)

// plan is what one run is to do. It is the same in every process that drives the run.
type plan struct {
	Run   string `json:"run"`
	Mode  mode   `json:"mode"`
	Turns int    `json:"turns"`
	// Session is the session's id, or the conversation's.
	Session string `json:"session,omitempty"`
	// Leave means that nobody ever decides about the run; Cancel that somebody cancels it.
	Leave  bool `json:"leave,omitempty"`
	Cancel bool `json:"cancel,omitempty"`
	// Alone means that nobody resumes the run once it has begun, but those who look for runs without an owner.
	Alone bool `json:"alone,omitempty"`
}

// holdsSession says that the conversation is a session, which runs after this one go on with.
func (m mode) holdsSession() bool { return m == modeOwn || m == modeBatches || m == modePlain }

// newPlan draws the plan of a run. Its session, if it has one, is chosen by who knows which are free.
func newPlan(rnd *rand.Rand, n int) plan {
	modes := []mode{modeNone, modeOwn, modeOwn, modeBatches, modePlain, modePlain, modeChain, modeConversation}
	return plan{
		Run:    fmt.Sprintf("r%06d", n),
		Mode:   modes[rnd.IntN(len(modes))],
		Turns:  1 + rnd.IntN(5),
		Leave:  rnd.IntN(50) == 0,
		Cancel: rnd.IntN(25) == 0,
		Alone:  rnd.IntN(3) == 0,
	}
}

const request = "Work on %s for %d turns."

// input is what the run starts with.
func (p plan) input() pawl.Input { return pawl.UserText(fmt.Sprintf(request, p.Run, p.Turns)) }

// readOrder reads what input wrote.
func readOrder(text string) (run string, turns int, ok bool) {
	n, err := fmt.Sscanf(text, request, &run, &turns)
	return run, turns, err == nil && n == 2
}

// drawn is a source of chance for one question: the same question is answered the same in every process.
func drawn(seed uint64, question ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, question...)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// callID names a call after the run, the turn, the position and the request that asked for it. A request that is made
// again is another request, and gets another answer.
func callID(run string, turn, position, request int) string {
	return fmt.Sprintf("call_%s_%d_%d_%d", run, turn, position, request)
}

// readCallID reads what callID wrote.
func readCallID(id string) (run string, turn, request int, ok bool) {
	parts := strings.Split(id, "_")
	if len(parts) != 5 {
		return "", 0, 0, false
	}
	n, err := fmt.Sscan(parts[2]+" "+parts[4], &turn, &request)
	return parts[1], turn, request, err == nil && n == 2
}

const farewell = "Done with %s. (%d)"

// readFarewell returns the request that was answered with a run's last words.
func readFarewell(text string) (request int, ok bool) {
	var run string
	n, err := fmt.Sscanf(strings.ReplaceAll(text, ". (", " ("), strings.ReplaceAll(farewell, ". (", " ("), &run, &request)
	return request, err == nil && n == 2
}
