package journal

import "github.com/pawl-agents/pawl/item"

// Added is input for a run that goes on: it waits until the next turn.
type Added struct {
	Items []item.Item
	By    string
	// At is when it was given, in Unix milliseconds.
	At int64
}

// Admitted says that pending input is part of the history from now on.
type Admitted struct {
	// N counts the Added facts, from 1.
	N int
}

// Observed says that the hooks were called for the first N facts.
type Observed struct{ N uint64 }

// Kind returns the fact's kind.
func (*Added) Kind() Kind    { return KindAdded }
func (*Admitted) Kind() Kind { return KindAdmitted }
func (*Observed) Kind() Kind { return KindObserved }

func appendAdded(dst []byte, b *Added) []byte {
	dst = appendItems(dst, "items", b.Items)
	dst = appendText(dst, "by", b.By)
	return appendInt(dst, "at", b.At)
}

func (b *Added) read(name, value string) error {
	switch name {
	case "items":
		return scanItems(&b.Items, value)
	case "by":
		return scanText(&b.By, value)
	case "at":
		return scanInt(&b.At, value)
	}
	return errUnknown
}

func (b *Admitted) read(name, value string) error {
	if name == "n" {
		return scanInt(&b.N, value)
	}
	return errUnknown
}

func (b *Observed) read(name, value string) error {
	if name == "n" {
		return scanUint(&b.N, value)
	}
	return errUnknown
}
