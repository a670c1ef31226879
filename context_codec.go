package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/pawl-agents/pawl/internal/schema"
)

// ContextCodec writes and reads the value of RunOptions.Context. It must be safe for concurrent
// use if runs share it.
type ContextCodec interface {
	// Encode returns the value as text, valid UTF-8 and not empty.
	Encode(value any) ([]byte, error)
	// Decode returns the value that Encode wrote, perhaps in another process and by an older
	// version of the program.
	Decode(data []byte) (any, error)
}

// JSONContext returns the codec of context values of type T as JSON, written and read as
// encoding/json does, but for members that T does not have: they are an error, so that nothing
// is lost silently.
func JSONContext[T any]() ContextCodec { return jsonContext[T]{} }

type jsonContext[T any] struct{}

func (jsonContext[T]) Encode(value any) ([]byte, error) {
	v, ok := value.(T)
	if !ok {
		return nil, fmt.Errorf("pawl: RunOptions.Context is of type %T, and the codec is for %s", value, reflect.TypeFor[T]())
	}
	return json.Marshal(v)
}

func (jsonContext[T]) Decode(data []byte) (any, error) {
	var v T
	if err := schema.ReadWritten(data, &v); err != nil {
		return nil, err
	}
	return v, nil
}

// ContextError says that the codec could not write or read the context value of a run. Nothing
// was done.
type ContextError struct{ Err error }

// Error says why.
func (e *ContextError) Error() string {
	return "pawl: RunOptions.ContextCodec: " + bare(e.Err)
}

// Unwrap returns the cause.
func (e *ContextError) Unwrap() error { return e.Err }

// recordedContext is the context value of the options as the ledger has it, empty if it is not
// recorded.
func (o *RunOptions) recordedContext() (text string, err error) {
	if o.Context == nil || o.ContextCodec == nil {
		return "", nil
	}
	err = inCodec(func() error {
		data, err := o.ContextCodec.Encode(o.Context)
		switch text = string(data); {
		case err != nil:
			return err
		case text == "":
			return errors.New("pawl: the value was written as nothing")
		case !utf8.ValidString(text):
			return errors.New("pawl: what was written " + notUTF8)
		}
		return nil
	})
	return text, err
}

// recallContext gives the drive the context value that the ledger of a run has, unless the
// options have one. A run that only has to be cancelled needs none.
func (d *drive) recallContext(ctx context.Context, s *RunState) error {
	opts, text := d.root.opts, s.fold().Context()
	if opts.Context != nil || text == "" || d.root.team.bare || s.fold().Finished() != nil {
		return nil
	}
	if opts.ContextCodec == nil {
		if cancelled, err := d.r.cancelAsked(ctx, s); err != nil || cancelled {
			return err
		}
		return &ConfigError{Field: "RunOptions.ContextCodec", Problem: "is missing, and so is a Context: the context value of the run was recorded"}
	}
	o := *opts
	err := inCodec(func() (err error) {
		o.Context, err = opts.ContextCodec.Decode([]byte(text))
		return err
	})
	d.root.opts = &o
	return err
}

// inCodec calls a codec; its error is a *ContextError, and so is its panic.
func inCodec(f func() error) (err error) {
	defer func() {
		if err != nil {
			err = &ContextError{Err: err}
		}
	}()
	defer panicked("the codec", "", &err)
	return f()
}
