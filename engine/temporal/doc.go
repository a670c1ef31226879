// Package temporal drives the runs of Pawl on Temporal: a workflow is the loop of a run, and every
// effect is an activity with the retries that its class allows. The same agents, keys and outcomes
// as with a Runner alone, and a program changes in how its Runner is made:
//
//	opts := temporal.Options{Blobs: blobs}
//	c, err := client.Dial(client.Options{DataConverter: temporal.DataConverter(blobs)})
//	r := pawl.Runner{Store: store, Agents: agents, Engine: temporal.New(c, opts)}
//
// A worker process has the agents and carries the effects out:
//
//	w, err := temporal.NewWorker(c, &r, temporal.WorkerOptions{Options: opts})
//	err = w.Run(worker.InterruptCh())
//
// The history of the workflow is the ledger of the run. The Runner's Store has a copy of it, which
// every activity brings up to date before it acts; it is what Watch, State and Decide read, also
// while no worker is up. Client and workers open the same store.
package temporal
