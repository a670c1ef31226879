package journal

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Memory keeps ledgers in the memory of the process. It is safe for concurrent use.
// What it holds lasts as long as the process; to keep a run longer, save its state.
//
// Companions commit under the run's lock, with a nil tx, before the records become
// visible. There is nothing to roll back in memory: if an append has several
// companions and one fails, those before it have happened.
type Memory struct {
	mu   sync.Mutex
	runs map[string]*memoryRun
	// created are the runs that have records, in the order of their first append.
	created []*memoryRun
	// open are the runs that have a conversation and have not ended.
	open map[Binding][]*memoryRun
}

// memoryRun is a ledger with its claim and its inbox. Who holds its lock may take
// the lock of Memory, never the other way round.
type memoryRun struct {
	id string

	mu      sync.Mutex
	parts   [][]Record // as they were appended, so that a ledger grows without being copied
	head    uint64     // number of records
	bound   Binding
	ended   bool
	created time.Time
	updated time.Time
	epoch   uint64    // of the newest claim
	holder  *Holder   // the newest claim, nil if it was released
	due     time.Time // when somebody should look at it; zero while it has a claim
	unread  int       // entries that whoever released it had seen
	inbox   []memoryEntry

	agent, queue string
	priority     int
}

type memoryEntry struct {
	Entry
	consumed bool
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{runs: map[string]*memoryRun{}, open: map[Binding][]*memoryRun{}}
}

// Backend returns "memory".
func (m *Memory) Backend() string { return "memory" }

// lock returns the run of that id with its lock held. Nothing is kept for an id that
// was only asked for: a run that is not there is empty.
func (m *Memory) lock(id string) *memoryRun {
	m.mu.Lock()
	r := m.runs[id]
	m.mu.Unlock()
	if r == nil {
		r = &memoryRun{id: id}
	}
	r.mu.Lock()
	return r
}

// lockOrCreate is lock for a run that is to be kept.
func (m *Memory) lockOrCreate(id string) *memoryRun {
	m.mu.Lock()
	if m.runs[id] == nil {
		m.runs[id] = &memoryRun{id: id}
	}
	m.mu.Unlock()
	return m.lock(id)
}

// Claim implements Driver.
func (m *Memory) Claim(ctx context.Context, run string, req ClaimRequest) (Claim, error) {
	if err := checkTTL(ctx, run, req.TTL); err != nil {
		return Claim{}, err
	}
	r := m.lockOrCreate(run)
	defer r.mu.Unlock()
	now := time.Now()
	if h := r.live(now); h != nil && h.Epoch != req.Takeover {
		return Claim{}, &ClaimedError{Run: run, Holder: *h}
	}
	return r.claim(now, req), nil
}

// claim grants a claim of a locked run.
func (r *memoryRun) claim(now time.Time, req ClaimRequest) Claim {
	claim := Claim{Epoch: max(r.epoch, req.Above) + 1, Head: r.head, Previous: r.holder}
	r.epoch = claim.Epoch
	r.holder, r.due = &Holder{Epoch: claim.Epoch, Owner: req.Owner, Until: now.Add(req.TTL)}, time.Time{}
	return claim
}

// Renew implements Driver.
func (m *Memory) Renew(ctx context.Context, run string, epoch uint64, ttl time.Duration) error {
	if err := checkTTL(ctx, run, ttl); err != nil {
		return err
	}
	r := m.lock(run)
	defer r.mu.Unlock()
	if !r.holds(epoch) {
		return ErrFenced
	}
	r.holder.Until = time.Now().Add(ttl)
	return nil
}

// Release implements Driver.
func (m *Memory) Release(ctx context.Context, run string, epoch uint64, rest Rest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := m.lock(run)
	defer r.mu.Unlock()
	if r.holds(epoch) {
		r.holder, r.due, r.unread = nil, rest.Due, rest.Unread
		if rest.Due.IsZero() {
			r.due = time.Now()
		}
	}
	return nil
}

func checkTTL(ctx context.Context, run string, ttl time.Duration) error {
	if ttl <= 0 {
		return fmt.Errorf("pawl: claim of run %s for %v: the time must be positive", run, ttl)
	}
	return ctx.Err()
}

// live returns a copy of the claim if there is one and its time is not over.
func (r *memoryRun) live(now time.Time) *Holder {
	if r.holder == nil || !now.Before(r.holder.Until) {
		return nil
	}
	h := *r.holder
	return &h
}

// holds reports whether the epoch is the one of the current claim.
func (r *memoryRun) holds(epoch uint64) bool {
	return r.holder != nil && r.holder.Epoch == epoch
}

// Append implements Driver.
func (m *Memory) Append(ctx context.Context, run string, epoch, after uint64, recs []Record, with ...Companion) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rival, err := m.append(ctx, run, epoch, after, recs, with)
	if rival != nil { // its lock is not taken under another run's
		info, _ := rival.info(time.Now())
		return &BusyError{Run: run, Open: rival.id, Holder: info.Holder}
	}
	return err
}

// append returns the open run that has the conversation which the run is to have alone.
func (m *Memory) append(ctx context.Context, run string, epoch, after uint64, recs []Record, with []Companion) (rival *memoryRun, err error) {
	r := m.lock(run)
	defer r.mu.Unlock()
	if !r.holds(epoch) {
		return nil, ErrFenced
	}
	if r.head != after {
		return nil, &ConflictError{Run: run, After: after, Head: r.head}
	}
	about, err := readAbout(recs)
	if err != nil {
		return nil, err
	}
	consumed, err := r.find(with)
	if err != nil {
		return nil, err
	}
	before := r.standing()
	if rival := m.bind(r, before.with(about), slices.Contains(with, Companion(SoleRun{}))); rival != nil {
		return rival, nil
	}
	for _, c := range with {
		if err := c.Commit(ctx, nil); err != nil {
			m.bind(r, before, false)
			return nil, fmt.Errorf("pawl: companion of an append to run %s: %w", run, err)
		}
	}
	for _, i := range consumed {
		r.inbox[i].consumed = true
	}
	r.index(about.started)
	m.store(r, recs)
	return nil, nil
}

// standing is what a run stands for among the others.
type standing struct {
	bound Binding
	ended bool
}

func (r *memoryRun) standing() standing { return standing{r.bound, r.ended} }

// with returns the standing after facts of which about tells.
func (s standing) with(a about) standing {
	if a.rebound {
		s.bound = a.bound
	}
	s.ended = s.ended || a.ended
	return s
}

// bind gives a locked run its standing. If it is to be the sole run of its conversation
// and is not, nothing changes, and the other run is returned.
func (m *Memory) bind(r *memoryRun, to standing, sole bool) (rival *memoryRun) {
	if !sole && to == r.standing() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	open := !to.ended && to.bound != (Binding{})
	if i := slices.IndexFunc(m.open[to.bound], func(o *memoryRun) bool { return o != r }); sole && open && i >= 0 {
		return m.open[to.bound][i]
	}
	m.open[r.bound] = slices.DeleteFunc(m.open[r.bound], func(o *memoryRun) bool { return o == r })
	if len(m.open[r.bound]) == 0 {
		delete(m.open, r.bound)
	}
	if open {
		m.open[to.bound] = append(m.open[to.bound], r)
	}
	r.bound, r.ended = to.bound, to.ended
	return nil
}

// store adds records to a locked run.
func (m *Memory) store(r *memoryRun, recs []Record) {
	if len(recs) == 0 {
		return
	}
	now := time.Now()
	if r.head == 0 {
		r.created = now
		m.mu.Lock()
		m.created = append(m.created, r)
		m.mu.Unlock()
	}
	r.updated = now
	r.parts = append(r.parts, slices.Clone(recs))
	r.head += uint64(len(recs))
}

// find returns the places in the inbox of the entries that the companions consume.
func (r *memoryRun) find(with []Companion) ([]int, error) {
	var found []int
	for _, c := range with {
		keys, _ := c.(Consumed)
		for _, key := range keys {
			i := slices.IndexFunc(r.inbox, func(e memoryEntry) bool { return e.Key == key && !e.consumed })
			if i < 0 || slices.Contains(found, i) {
				return nil, fmt.Errorf("pawl: the inbox of run %s has no entry %q to consume", r.id, key)
			}
			found = append(found, i)
		}
	}
	return found, nil
}

// Read implements Driver.
func (m *Memory) Read(ctx context.Context, run string, after uint64) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := m.lock(run)
	defer r.mu.Unlock()
	if after >= r.head {
		return nil, nil
	}
	return r.after(after), nil
}

// after returns the records after number n.
func (r *memoryRun) after(n uint64) []Record {
	recs := make([]Record, 0, r.head-n)
	for _, part := range r.parts {
		skip := min(n, uint64(len(part)))
		recs = append(recs, part[skip:]...)
		n -= skip
	}
	return recs
}

// Post implements Driver.
func (m *Memory) Post(ctx context.Context, run string, e Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := m.lock(run)
	defer r.mu.Unlock()
	if r.head == 0 {
		return ErrUnknownRun
	}
	i := slices.IndexFunc(r.inbox, func(have memoryEntry) bool { return have.Key == e.Key })
	if i < 0 {
		r.inbox = append(r.inbox, memoryEntry{Entry: e})
		return nil
	}
	if first := r.inbox[i].Entry; first != e {
		return &EntryError{Run: run, First: first}
	}
	return nil
}

// Inbox implements Driver.
func (m *Memory) Inbox(ctx context.Context, run string) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := m.lock(run)
	defer r.mu.Unlock()
	var entries []Entry
	for _, e := range r.inbox {
		if !e.consumed {
			entries = append(entries, e.Entry)
		}
	}
	return entries, nil
}

// List implements Driver.
func (m *Memory) List(ctx context.Context, q Query) ([]RunInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	m.mu.Lock()
	runs := slices.Clone(m.created)
	m.mu.Unlock()
	if q.Before != "" {
		end := slices.IndexFunc(runs, func(r *memoryRun) bool { return r.id == q.Before })
		if end < 0 {
			return nil, fmt.Errorf("%w: %s", ErrUnknownRun, q.Before)
		}
		runs = runs[:end]
	}
	var infos []RunInfo
	now := time.Now()
	for _, r := range slices.Backward(runs) {
		info, due := r.info(now)
		if q.Session != "" && info.Session != q.Session || (q.Open || q.Due || q.Host != "") && info.Ended || q.Due && !due ||
			q.Host != "" && r.host() != q.Host {
			continue
		}
		if len(infos) == limit {
			break
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// info is the run in a listing; due says that somebody should look at it.
func (r *memoryRun) info(now time.Time) (info RunInfo, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info = RunInfo{Run: r.id, Session: r.bound.Session, Agent: r.agent, Queue: r.queue, Priority: r.priority, Head: r.head, Created: r.created, Updated: r.updated, Ended: r.ended, Holder: r.live(now)}
	for _, e := range r.inbox {
		if !e.consumed {
			info.Inbox++
		}
	}
	return info, info.Inbox > r.unread || !r.due.After(now)
}

// host is that of the process that claimed the run and did not release it.
func (r *memoryRun) host() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holder == nil {
		return ""
	}
	return r.holder.Owner.Host
}
