package pawl

import (
	"fmt"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
)

// frame is the drive's side of the run itself, or of a run nested in it: whose loop it is and
// what is kept from one of its effects to the next. One code path drives both.
type frame struct {
	d       *drive
	m       *machine.Frame
	agent   *Agent
	opts    *RunOptions
	session session.Session

	request request
	read    reading
}

// effectRef names an effect of a run: its id is unique within its frame only.
type effectRef struct {
	frame string
	id    journal.EffectID
}

// String names the effect for people.
func (r effectRef) String() string {
	if r.frame == "" {
		return effectName(r.id)
	}
	return fmt.Sprintf("%s of nested run %s", effectName(r.id), r.frame)
}

// use makes the drive go on from what a ledger says.
func (d *drive) use(m *machine.Machine) {
	d.m = m
	d.root.m = m.Frame("")
}

// outputOf returns the output a call of a frame is settled with, zero while it is open or if
// there is no such call.
func (d *drive) outputOf(frame string, call journal.EffectID) Item {
	if f := d.m.Frame(frame); f != nil {
		return f.OutputOf(call)
	}
	return Item{}
}
