package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// lie is a way to break what the campaign checks. A check that no lie fails proves nothing.
type lie string

// The lies.
const (
	liePay     lie = "pay"     // the runner is told that a payment may be repeated
	lieBook    lie = "book"    // a booking is written beside the transaction that has its outcome
	lieLate    lie = "late"    // a late result is posted under two names
	lieRecover lie = "recover" // the far side says of every charge that it did not happen
	lieExpiry  lie = "expiry"  // approvals expire long before their time
	lieDeliver lie = "deliver" // what is delivered is not what was sent
	lieAlone   lie = "alone"   // nobody works
)

var lies = []lie{liePay, lieBook, lieLate, lieRecover, lieExpiry, lieDeliver, lieAlone}

// String implements flag.Value.
func (l *lie) String() string { return string(*l) }

// Set implements flag.Value.
func (l *lie) Set(word string) error {
	if word != "" && !slices.Contains(lies, lie(word)) {
		return fmt.Errorf("there is no such lie; there are %s", strings.Trim(fmt.Sprint(lies), "[]"))
	}
	*l = lie(word)
	return nil
}
