package temporal

import (
	"crypto/sha256"
	"encoding/hex"

	sdk "go.temporal.io/sdk/temporal"
)

// The server's own bounds: it has five priorities, the first of which is the highest and the third
// the default, and a key of fairness has at most 64 bytes
// (https://docs.temporal.io/develop/task-queue-priority-fairness).
const (
	lowest, usual, highest = 5, 3, 1
	maxFairnessKey         = 64
)

// priority is the order among activities that wait for a worker, from the priority and the queue
// of their run.
func priority(of int, queue string) sdk.Priority {
	p := sdk.Priority{FairnessKey: queue}
	if of != 0 {
		p.PriorityKey = usual - min(max(of, usual-lowest), usual-highest)
	}
	if len(queue) > maxFairnessKey {
		sum := sha256.Sum256([]byte(queue))
		p.FairnessKey = hex.EncodeToString(sum[:])
	}
	return p
}
