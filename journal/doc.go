// Package journal holds the facts of a run and the drivers that store them.
//
// A run is an append-only ledger of facts; everything else about it is derived
// from them. The package has the fact types, their one encoding, the Driver interface
// and a driver that keeps ledgers in memory.
package journal
