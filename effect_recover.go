package pawl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// recoverTimeout bounds a Recover function; a slower one cannot tell.
const recoverTimeout = 30 * time.Second

// startRecover asks a tool's far side, beside the driver, what became of a call in doubt.
// Another tool of the name is not asked: the tool it was has to come back.
func (f *frame) startRecover(e machine.Effect) error {
	if err := f.changed(e.About); err != nil {
		return err
	}
	of := effectRef{e.Frame, e.ID}
	info, _ := f.m.Call(e.About)
	b, err := f.newBody(e.About, e.Key, info)
	f.d.beside++
	if b == nil || err != nil || b.tool.recover == nil {
		s := &journal.Settled{ID: e.About, Outcome: journal.Unknown, Error: "nobody can be asked"}
		s.Output, _ = answer(info.Item, machine.EditedText(info.Edited)+machine.UnknownText(e.Key))
		f.d.queue = append(f.d.queue, outcome{of: of, body: s})
		return nil
	}
	go func() {
		ctx, cancel := context.WithTimeout(f.d.ctx, recoverTimeout)
		defer cancel()
		o := outcome{of: of, body: b.recovered(ctx)}
		if f.d.ctx.Err() != nil { // that is no answer: it is asked again
			o.body = nil
		}
		f.d.deliver(o)
	}()
	return nil
}

// recovered is what the far side says of the call, as an outcome of its last attempt.
func (b *body) recovered(ctx context.Context) journal.Body {
	type answer struct {
		Recovered[any]
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("pawl: Recover ended its goroutine")}
		defer func() {
			if v := recover(); v != nil {
				a.err = &PanicError{In: fmt.Sprintf("Recover of tool %q", b.tool.name), Value: v, Stack: string(debug.Stack())}
			}
			answers <- a
		}()
		r, err := b.tool.recover(ctx, &b.call)
		a = answer{r, err}
	}()
	var a answer
	select {
	case a = <-answers:
	case <-ctx.Done():
		a.err = ctx.Err()
	}
	switch {
	case a.err != nil:
		return b.unknown(errorText(a.err))
	case a.Answer == DidNotHappen:
		return &journal.Absent{ID: b.of.id}
	case a.Answer == Happened:
		out, err := outputItem(b.fc, a.Output, b.note())
		if err == nil {
			return b.checked(ctx, &journal.Settled{ID: b.of.id, Output: out})
		}
		return b.unknown(errorText(err))
	}
	return b.unknown("the far side cannot tell")
}
