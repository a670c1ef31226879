package temporal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"

	"github.com/pawl-agents/pawl/journal"
)

// identity is what a worker calls itself to the server, which writes it into the history where an
// activity begins. It ends in the process, as JSON. Nothing else says, at no cost, who did what
// is lost.
func identity(name string, self journal.Owner) string {
	host, _ := os.Hostname()
	process, err := json.Marshal(self)
	if err != nil {
		panic(err) // it has no member that could fail
	}
	return cmp.Or(name, fmt.Sprintf("%d@%s", os.Getpid(), host)) + " " + string(process)
}

// process is the process that an identity names; one that is no worker of ours names none.
func process(identity string) (o journal.Owner) {
	if i := strings.LastIndex(identity, ` {"Host":`); i < 0 || json.Unmarshal([]byte(identity[i+1:]), &o) != nil {
		return journal.Owner{}
	}
	return o
}

// workers finds out in which processes activities were carried out that began with these events
// of the workflow. One that cannot be found is not known to be gone.
func (a *activities) workers(ctx context.Context, begun []int64) []journal.Owner {
	if len(begun) == 0 {
		return nil
	}
	names := make(map[int64]string)
	of := activity.GetInfo(ctx).WorkflowExecution
	events := a.client.GetWorkflowHistory(ctx, of.ID, of.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		ev, err := events.Next()
		if err != nil {
			break
		}
		if s := ev.GetActivityTaskStartedEventAttributes(); s != nil {
			names[ev.EventId] = s.Identity
		}
	}
	owners := make([]journal.Owner, len(begun))
	for i, event := range begun {
		owners[i] = process(names[event])
	}
	return owners
}
