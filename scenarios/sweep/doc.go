// Package sweep sweeps a list of scenarios: every fault at every boundary of each, see pawltest.Sweep. It has tests only.
package sweep
