// Package duel holds the tests of two processes that have one run: they resume it at the same moment, or one is
// stopped for so long that the other takes the run over, and then wakes up. It has nothing but tests. The processes are the
// test binary, run again as a puppet that does what it is told.
package duel
