package chaos

import (
	"slices"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/sqlstore"
)

// The tools, one or more of every class.
const (
	toolLook   = "look"   // reads
	toolPut    = "put"    // idempotent: the far side honours the key
	toolGift   = "gift"   // likewise, and has to be approved
	toolPay    = "pay"    // at most once
	toolRefund = "refund" // at most once, and has to be approved
	toolOffer  = "offer"  // likewise, and an approval that comes too late is none
	toolBid    = "bid"    // likewise, and without an approval in time the run fails
	toolSell   = "sell"   // at most once, and asks for itself before it does anything
	toolCable  = "cable"  // at most once, slow: it does not always end in time, and the model is told
	toolWire   = "wire"   // likewise, and somebody has to look
	toolMail   = "mail"   // at most once, and does not notice that its time is over; the model is told
	toolHaul   = "haul"   // likewise, and somebody has to look
	toolCharge = "charge" // at most once, and the far side can be asked what became of it
	toolShip   = "ship"   // at most once, and its result comes later
	toolBook   = "book"   // in the transaction of the run store
	toolRent   = "rent"   // likewise, and asks for itself when it has written
)

// tool is what the campaign knows of a tool, whatever a ledger says of it.
type tool struct {
	name  string
	share int // of a hundred calls
	kind  pawl.Effect
	// A gated tool has to be approved, a tool that asks does so itself. An approval expires after so long; fails says
	// that the run fails then.
	gated, asks bool
	expires     time.Duration
	fails       bool
	// A tool in a hurry has less time than it needs now and then; a deaf one does not notice that it is over.
	hurry, deaf bool
	// waits says that a person looks what became of a call, canTell that the far side is asked first.
	waits, canTell bool
	// later says that the body only starts what has a result.
	later bool
}

// patience is how long the approvals may take that expire.
const patience = time.Second

var tools = []tool{
	{name: toolLook, share: 8, kind: pawl.ReadOnly},
	{name: toolPut, share: 10, kind: pawl.Idempotent},
	{name: toolGift, share: 6, kind: pawl.Idempotent, gated: true},
	{name: toolPay, share: 14},
	{name: toolRefund, share: 8, gated: true},
	{name: toolOffer, share: 4, gated: true, expires: patience},
	{name: toolBid, share: 2, gated: true, expires: patience, fails: true},
	{name: toolSell, share: 6, asks: true, expires: patience},
	{name: toolCable, share: 4, hurry: true},
	{name: toolWire, share: 3, hurry: true, waits: true},
	{name: toolMail, share: 4, hurry: true, deaf: true},
	{name: toolHaul, share: 3, hurry: true, deaf: true, waits: true},
	{name: toolCharge, share: 9, waits: true, canTell: true},
	{name: toolShip, share: 7, later: true},
	{name: toolBook, share: 8, kind: pawl.Transactional},
	{name: toolRent, share: 4, kind: pawl.Transactional, asks: true},
}

// toolOf is the tool of a name. Without one it is at most once.
func toolOf(name string) tool {
	if i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name }); i >= 0 {
		return tools[i]
	}
	return tool{name: name}
}

// order is what every tool is called with.
type order struct {
	Call  string `json:"call"`
	Pause int    `json:"pause" minimum:"0" maximum:"1000" jsonschema:"milliseconds"`
	// Freeze asks that the process be stopped while the body is at work.
	Freeze bool `json:"freeze"`
}

// The times of the tools. A body that does not notice the end of its time has done what it does long after it, when the
// runner has gone on without it.
const (
	usualTimeout = 2 * time.Second
	hurryTimeout = 30 * time.Millisecond
	deafFactor   = 25
)

func (b *toolbox) agent(m model.Model) *pawl.Agent {
	a := &pawl.Agent{Name: "Chaos", Instructions: pawl.Text("Do what you are told."), Model: m}
	for _, t := range tools {
		a.Tools = append(a.Tools, b.tool(t))
	}
	return a
}

// tool is the tool as the agent has it.
func (b *toolbox) tool(t tool) pawl.Tool {
	if b.lie == lieExpiry && t.expires > 0 {
		t.expires = time.Millisecond
	}
	if t.kind == pawl.Transactional && b.lie != lieBook {
		f := sqlstore.TxFunc[order, string]{Name: t.name, Description: "Does a " + t.name + ".", Run: b.book, Expires: t.expires}
		return sqlstore.NewTxTool(f)
	}
	f := pawl.Func[order, string]{Name: t.name, Description: "Does a " + t.name + ".", Effect: t.kind, Timeout: usualTimeout,
		Expires: t.expires, Run: b.body(t)}
	if t.gated {
		f.Approve = pawl.AlwaysAsk[order]
	}
	if t.fails {
		f.OnExpiry = pawl.ExpiryFails
	}
	if t.hurry {
		f.Timeout, f.OnUnknown = hurryTimeout*time.Duration(b.slow), pawl.UnknownTell
	}
	if t.waits {
		f.OnUnknown = pawl.UnknownWait
	}
	if t.canTell {
		f.Recover = b.recover
	}
	switch {
	case t.kind == pawl.Transactional:
		f.Effect, f.Run = pawl.AtMostOnce, b.bookOutside
	case t.name == toolPay && b.lie == liePay:
		f.Effect = pawl.ReadOnly
	}
	return pawl.NewTool(f)
}
