package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Record is a fact as it is stored: the payload is the fact's JSON, written by
// Encode, and Hash is an RFC 6962 leaf hash over salt and content.
type Record struct {
	Kind    Kind
	Version int
	Frame   string
	Time    int64
	Payload string
	Salt    [16]byte
	Hash    [32]byte
}

// Driver is a store of ledgers. It is linearizable per run and safe for concurrent
// use. An error of Append means that the records are absent, stored, or stored
// later; the comparison with after makes a repeat safe. A driver holds no lock
// while it waits for anything but its own storage. The contract is numbered in
// docs/spec.md; journaltest checks it. It grows with Pawl: implementations outside
// this module must expect new methods.
type Driver interface {
	// Claim takes the run for an owner and returns a new epoch, larger than
	// any before. A run that was never appended to may be claimed. While
	// another claim is live it returns *ClaimedError, unless req.Takeover
	// equals that claim's epoch. From then on appends under older epochs fail.
	Claim(ctx context.Context, run string, req ClaimRequest) (Claim, error)
	// Renew extends the claim's lease; ErrFenced if the epoch is not current.
	Renew(ctx context.Context, run string, epoch uint64, ttl time.Duration) error
	// Release ends the claim; its epoch is not current any more. Releasing a
	// claim that is not current does nothing.
	Release(ctx context.Context, run string, epoch uint64, rest Rest) error
	// Next claims the run that is to be driven now, and returns nil if there is none: one that
	// is due, see Query.Due, and has no live claim. Of those it is one with the highest
	// priority, of these one of a queue with the lowest load, and of these the one that has
	// been due for longest. Of several that ask at once each gets another run, without waiting.
	Next(ctx context.Context, req NextRequest) (*Next, error)

	// Append adds the records after record number after, all or none, and
	// commits the companions with them. It returns ErrFenced if the epoch is not
	// current, whether or not the lease ran out, *ConflictError if the ledger
	// has not exactly after records, and *BusyError, with SoleRun, if another run has
	// the conversation. Success means that the records survive a
	// crash of the process and, for a durable store, of the machine. Without
	// records only the companions commit.
	Append(ctx context.Context, run string, epoch uint64, after uint64, recs []Record, with ...Companion) error
	// Read returns the records after number after, in order, in one consistent
	// view: a prefix of the ledger is never missing. A run that does not exist
	// has no records.
	Read(ctx context.Context, run string, after uint64) ([]Record, error)

	// Post puts an entry in the run's inbox. The same entry again does
	// nothing; an entry with the same key and another body is an *EntryError
	// that holds the first. Entries stay after they were consumed, so a second
	// verdict is refused for ever. It needs no claim. ErrUnknownRun if the run has
	// no records.
	Post(ctx context.Context, run string, e Entry) error
	// Inbox returns the entries not consumed, in the order they were posted.
	Inbox(ctx context.Context, run string) ([]Entry, error)

	// List returns the runs that have records, the newest by first append first.
	List(ctx context.Context, q Query) ([]RunInfo, error)
	// Backend names the store; equal in every process that opens the same one.
	Backend() string
}

// Listener is what a driver implements that can say at once when a run becomes due.
type Listener interface {
	// Listen calls posted when it begins to listen and whenever an entry is posted to a run
	// of the store, or a run is released that is due at once, by any process, until ctx ends or an error ends the listening. It may miss
	// one: whoever waits for entries looks now and then, too.
	Listen(ctx context.Context, posted func()) error
}

// Companion is a write of the same store that commits together with an append.
type Companion interface {
	// Commit does the write. tx is the store's own transaction (a *sql.Tx of
	// sqlstore, a *pgstore.Tx of pgstore; nil for the memory driver). An error aborts the append.
	Commit(ctx context.Context, tx any) error
}

// Consume returns the companion that marks inbox entries as consumed. Every driver
// of this module knows it. The append fails if a key has no entry or its entry was
// consumed before.
func Consume(keys ...string) Companion { return Consumed(keys) }

// Consumed are the keys of inbox entries that an append consumes. Drivers handle
// it themselves; Commit does nothing.
type Consumed []string

// Commit does nothing: the driver marks the entries itself.
func (Consumed) Commit(context.Context, any) error { return nil }

// SoleRun is the companion that lets only one open run continue a conversation. The
// append fails with *BusyError, and changes nothing, if another run without a finished
// fact has the Binding that this run has once the records are appended. Every driver of
// this module knows it. A run without a binding, or that ends with the records, has no
// rival.
type SoleRun struct{}

// Commit does nothing: the driver compares the bindings itself.
func (SoleRun) Commit(context.Context, any) error { return nil }

// Binding is the conversation that a run continues: a session, by backend and id, or
// one that the model's server holds. The zero Binding is none.
type Binding struct{ Backend, Session, Conversation string }

// BindingOf returns what a started or forked fact binds its run to; ok is false for
// other facts, which leave the run's binding as it is.
func BindingOf(b Body) (to Binding, ok bool) {
	var ref *SessionRef
	switch b := b.(type) {
	case *Started:
		ref, to.Conversation = b.Session, b.Conversation
	case *Forked:
		ref = b.Session
	default:
		return Binding{}, false
	}
	if ref != nil {
		to.Backend, to.Session = ref.Backend, ref.ID
	}
	return to, true
}

// ClaimRequest asks for a claim.
type ClaimRequest struct {
	Owner Owner
	// TTL is how long the claim lives without Renew; it must be positive.
	TTL time.Duration
	// Takeover is the epoch of a live claim whose owner is known to be gone; 0
	// means none.
	Takeover uint64
	// Above is an epoch the new one must be larger than: a ledger that comes from
	// another store has claims of its own.
	Above uint64
}

// Rest is how a driver leaves a run.
type Rest struct {
	// Due is when somebody should look at the run again: the zero time is at once, Never only
	// when an entry is posted.
	Due time.Time
	// Unread is how many entries of its inbox the driver has seen and left there. Only one more
	// makes the run due.
	Unread int
}

// NextRequest asks for a run to drive.
type NextRequest struct {
	Owner Owner
	// TTL is how long the claim lives without Renew; it must be positive.
	TTL time.Duration
	// Agents are the keys of the agents whose runs are wanted; nil means all. A run whose inbox
	// makes it due is wanted whatever its agent.
	Agents []string
	// Queues are the queues whose runs are wanted; nil means all.
	Queues []string
	// Full are queues whose runs are not wanted.
	Full []string
	// Load is that of the queues by name; a queue that is not named has 0.
	Load map[string]int64
}

// Next is a run that was claimed, and the queue it is in.
type Next struct {
	Run   string
	Queue string
	Claim Claim
}

// Claim is a granted claim.
type Claim struct {
	Epoch uint64
	// Head is the number of records in the ledger.
	Head uint64
	// Previous is the claim before, if there was one that was not released.
	Previous *Holder
}

// Holder is who holds a claim and until when.
type Holder struct {
	Epoch uint64
	Owner Owner
	Until time.Time
}

// Entry is a message to a run: a decision or a cancellation.
type Entry struct {
	// Key identifies what the entry settles, for example an interruption id.
	Key string
	// Body is the fact to step, encoded.
	Body Record
}

// Never is the due time of a run that is not due before an entry is posted.
var Never = time.UnixMilli(1 << 62)

// Query selects runs.
type Query struct {
	// Session selects the runs bound to the session of that id.
	Session string
	// Open selects runs that have not ended.
	Open bool
	// Due selects open runs that somebody should look at: that were claimed and not released
	// since, whose release named a time that has come, or that have an entry in their inbox
	// that whoever released them had not seen.
	Due bool
	// Host selects open runs that were claimed by a process of that host and not released
	// since.
	Host string
	// Limit is the most runs to return; 0 means 100.
	Limit int
	// Before continues a listing: only runs created before this run;
	// ErrUnknownRun if there is no such run.
	Before string
}

// RunInfo is a run in a listing.
type RunInfo struct {
	Run     string
	Session string
	// Agent, Queue and Priority are those of the run's started fact.
	Agent    string
	Queue    string
	Priority int
	Head     uint64
	// Created and Updated are the times of the first and the last append, by the
	// clock of the store or of the process that appended.
	Created time.Time
	Updated time.Time
	// Ended says that the ledger has a finished fact of the run itself.
	Ended bool
	// Inbox is the number of entries that were posted and not consumed.
	Inbox int
	// Holder is who drives the run now; nil if nobody does.
	Holder *Holder
}

// Errors of a driver.
var (
	// ErrFenced: the claim is no longer current.
	ErrFenced = errors.New("pawl: the run was claimed by another driver")
	// ErrUnknownRun: the store has no such run.
	ErrUnknownRun = errors.New("pawl: the store has no such run")
	// ErrForeignStore: the file or database holds something that is not ours.
	ErrForeignStore = errors.New("pawl: the store was made by something else")
	// ErrNewerStore: the store was written by a newer version.
	ErrNewerStore = errors.New("pawl: the store was made by a newer version of Pawl")
	// ErrNewerJournal: a fact's kind or version is not known here.
	ErrNewerJournal = errors.New("pawl: the journal was written by a newer version of Pawl")
	// ErrCorrupt: stored bytes are not what was written.
	ErrCorrupt = errors.New("pawl: the journal is damaged")
)

// ClaimedError says that another driver holds the run.
type ClaimedError struct {
	Run    string
	Holder Holder
}

// Error names the run and who holds it.
func (e *ClaimedError) Error() string {
	return fmt.Sprintf("pawl: run %s is driven by process %d on %s until %s", e.Run, e.Holder.Owner.PID,
		e.Holder.Owner.Host, e.Holder.Until.UTC().Format(time.RFC3339))
}

// ConflictError says that the ledger is not where the writer thought.
type ConflictError struct {
	Run         string
	After, Head uint64
}

// Error names the run and both positions.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("pawl: run %s has %d facts, the writer knew %d", e.Run, e.Head, e.After)
}

// BusyError says that a run cannot have a conversation, because another open run has
// it. These records were not stored by this append.
type BusyError struct {
	// Run was refused; Open is the run that has the conversation.
	Run, Open string
	// Holder is who drives the open run; nil if nobody does.
	Holder *Holder
}

// Error names both runs.
func (e *BusyError) Error() string {
	return fmt.Sprintf("pawl: run %s cannot have the conversation of run %s, which is open", e.Run, e.Open)
}

// EntryError says that an inbox key already has another entry.
type EntryError struct {
	Run   string
	First Entry
}

// Error names the run and the key.
func (e *EntryError) Error() string {
	return fmt.Sprintf("pawl: run %s: %s was already decided otherwise", e.Run, e.First.Key)
}
