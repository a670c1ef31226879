// Package enginetest has tests only: the conformance suite of package enginetest of Pawl, on a Temporal server that the
// tests start and kill.
package enginetest
