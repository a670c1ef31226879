// Package explore checks every way a small run can go, to a bound.
//
// The pure machine is its own model: the explorer puts it between a driver's loop and a
// store, as the root package does, and tries every order of what can happen. Two
// processes drive one run. Every append is stored, is not, is stored with the answer lost, or is
// stored any number of steps later; processes die, sleep beyond their lease, or are told
// to stop; tools, sessions and model servers lose answers; results come later, late or twice, tools ask
// by themselves, far sides are asked what happened; people decide, in time or not, and cancel. In
// each state that can be reached the rules of [explorer.check] must hold, and from each of
// them the run must come to its end once nothing goes wrong any more.
//
// The driver is a small imitation of the root package's loop (drive.go, commit.go,
// effects.go, effect_tool.go, effect_tx.go, effect_recover.go, late.go, lease.go, resume.go there), with the real machine in it. It is
// cut into the steps between which others may act. [Broken] removes one rule of the driver, of the
// store or of time, and tests show that each removal is found, and each of some breaks of the machine: what is explored
// can fail.
//
// What is not explored: a body or a session that acts after its process slept through the
// moment between the last look at the clock and the act itself. No store can prevent that; only a
// far side that honours the key can.
package explore
