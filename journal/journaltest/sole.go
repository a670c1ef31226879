package journaltest

import (
	"errors"
	"slices"
	"sync"

	"github.com/pawl-agents/pawl/journal"
)

// bound returns the first record of a run that continues what to says.
func (s *store) bound(run string, to journal.Binding) journal.Record {
	b := &journal.Started{Run: run, Conversation: to.Conversation}
	if to.Session != "" {
		b.Session = &journal.SessionRef{ID: to.Session, Backend: to.Backend}
	}
	return s.record(b)
}

// alone appends records to a claimed run that is to have its conversation alone. It returns
// the run that has it, "" if the append was taken.
func (s *store) alone(run string, c journal.Claim, recs []journal.Record, with ...journal.Companion) (open string) {
	s.Helper()
	err := s.Append(s.ctx, run, c.Epoch, c.Head, recs, append(with, journal.SoleRun{})...)
	busy, ok := errors.AsType[*journal.BusyError](err)
	if !ok && err != nil || ok && busy.Run != run {
		s.Fatalf("append to %s as the sole run of its conversation: %v", run, err)
	}
	if !ok {
		return ""
	}
	return busy.Open
}

// begin is alone for the first record of a run.
func (s *store) begin(run string, to journal.Binding) (open string) {
	s.Helper()
	return s.alone(run, s.seize(run), []journal.Record{s.bound(run, to)})
}

func soleRun(s *store) {
	chat := journal.Binding{Backend: "x", Session: "chat"}
	held := journal.Binding{Conversation: "conv_1"}
	for _, tt := range []struct {
		run  string
		to   journal.Binding
		open string // the run that has the conversation
	}{
		{"a", chat, ""},
		{"b", chat, "a"},
		{"c", journal.Binding{Backend: "y", Session: "chat"}, ""},
		{"d", journal.Binding{Backend: "x", Session: "Chat"}, ""},
		{"e", held, ""},
		{"f", held, "e"},
		{"g", journal.Binding{Conversation: "conv_2"}, ""},
		{"h", journal.Binding{}, ""},
		{"i", journal.Binding{}, ""},
		{"b", chat, "a"},
	} {
		if open := s.begin(tt.run, tt.to); open != tt.open {
			s.Errorf("run %s on %+v met open run %q, want %q", tt.run, tt.to, open, tt.open)
		}
	}
	s.soleRunChangesNothing(chat)
	s.soleRunOverTime(chat)
	s.soleRunOfMany(journal.Binding{Backend: "x", Session: "raced"})
}

// soleRunChangesNothing checks a refused append; run a has the conversation.
func (s *store) soleRunChangesNothing(chat journal.Binding) {
	s.Helper()
	holder := s.seize("a")
	c := s.seize("b")
	err := s.Append(s.ctx, "b", c.Epoch, 0, []journal.Record{s.bound("b", chat)}, journal.SoleRun{})
	busy, ok := errors.AsType[*journal.BusyError](err)
	if !ok || busy.Holder == nil || busy.Holder.Epoch != holder.Epoch || busy.Holder.Owner != owner(1) {
		s.Errorf("refused with %+v, want *BusyError with the holder of run a", err)
	}
	s.holds("b", nil)
	for _, info := range s.mustList(journal.Query{}) {
		if info.Run == "b" {
			s.Error("a run whose first append was refused is listed")
		}
	}
	if err := s.Release(s.ctx, "a", holder.Epoch, journal.Rest{}); err != nil {
		s.Fatal(err)
	}
	err = s.Append(s.ctx, "b", c.Epoch, 0, []journal.Record{s.bound("b", chat)}, journal.SoleRun{})
	if busy, ok := errors.AsType[*journal.BusyError](err); !ok || busy.Holder != nil {
		s.Errorf("refused with %+v, want *BusyError without a holder", err)
	}
	if err := s.Append(s.ctx, "b", c.Epoch-1, 0, []journal.Record{s.bound("b", chat)}, journal.SoleRun{}); !errors.Is(err, journal.ErrFenced) {
		s.Errorf("under an old epoch: %v, want ErrFenced", err)
	}
}

// soleRunOverTime follows a conversation from run to run; run a has it.
func (s *store) soleRunOverTime(chat journal.Binding) {
	s.Helper()
	if open := s.alone("a", s.seize("a"), s.batch(1)); open != "" {
		s.Errorf("a later append met open run %q", open)
	}
	s.mustAppend("unchecked", []journal.Record{s.bound("unchecked", chat)})
	if open := s.alone("a", s.seize("a"), s.batch(1)); open != "unchecked" {
		s.Errorf("a later append met open run %q, want the one that nobody checked", open)
	}
	if open := s.alone("a", s.seize("a"), []journal.Record{s.record(&journal.Finished{})}); open != "" {
		s.Errorf("the append that ends the run met %q", open)
	}
	s.mustAppend("unchecked", []journal.Record{s.record(&journal.Forked{Run: "unchecked"})})
	if open := s.begin("b", chat); open != "" {
		s.Errorf("run b met %q, which has ended or has another session", open)
	}
	s.mustAppend("fork", []journal.Record{s.bound("fork", journal.Binding{})})
	given := &journal.Forked{Run: "fork", Session: &journal.SessionRef{ID: chat.Session, Backend: chat.Backend}}
	if open := s.alone("fork", s.seize("fork"), []journal.Record{s.record(given)}); open != "b" {
		s.Errorf("a fork that is given the session met %q, want b", open)
	}
}

// soleRunOfMany checks that of runs that begin at once one has the conversation.
func (s *store) soleRunOfMany(to journal.Binding) {
	s.Helper()
	runs := []string{"r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"}
	errs := make([]error, len(runs))
	var wg sync.WaitGroup
	for i, run := range runs {
		c, rec := s.seize(run), s.bound(run, to)
		wg.Go(func() {
			errs[i] = s.Append(s.ctx, run, c.Epoch, 0, []journal.Record{rec}, journal.SoleRun{})
		})
	}
	wg.Wait()
	first := slices.Index(errs, nil)
	for i, err := range errs {
		busy, ok := errors.AsType[*journal.BusyError](err)
		if i != first && (!ok || first < 0 || busy.Open != runs[first]) {
			s.Errorf("%s beside %v: %v", runs[i], errs, err)
		}
	}
}
