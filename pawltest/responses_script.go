package pawltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"testing"

	"github.com/pawl-agents/pawl/item"
)

// ResponsesStep is the answer to one request, and what that request must look like. Steps are taken in order by requests
// that passed every check of the server, never by refused ones.
type ResponsesStep struct {
	// Want is the input the request must carry, its own and not what it continues; items are compared as JSON values. Nil
	// accepts any input, an empty slice asks for none.
	Want []item.Item
	// Check is asked besides Want when it is not nil.
	Check func(*ResponsesRequest) error

	Reply ResponsesReply
	// Derive makes the reply from the request when it is not nil; Reply is then ignored.
	Derive Responder

	Fault *ResponsesFault
}

// responsesScript hands out steps and remembers what did not go by it.
type responsesScript struct {
	mu       sync.Mutex
	steps    []ResponsesStep
	taken    int
	problems []string
}

func (s *responsesScript) add(steps []ResponsesStep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, steps...)
}

// note remembers a problem for report.
func (s *responsesScript) note(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, problem)
}

// mismatch notes that a request did not go by the script and is the answer to it: a status that clients don't retry.
func (s *responsesScript) mismatch(format string, args ...any) *ResponsesError {
	problem := fmt.Sprintf(format, args...)
	s.note(problem)
	return &ResponsesError{
		Status: http.StatusBadRequest, Message: problem, Type: "pawltest_error", Code: "script_mismatch",
	}
}

// notKept notes that the server could not write its directory and is the answer to the request that wanted it.
func (s *responsesScript) notKept(err error) *ResponsesError {
	problem := fmt.Sprintf("the server's directory: %v", err)
	s.note(problem)
	return &ResponsesError{Status: http.StatusInternalServerError, Message: problem}
}

// next takes the next step for a request and compares the two.
func (s *responsesScript) next(r *ResponsesRequest) (ResponsesStep, *ResponsesError) {
	s.mu.Lock()
	if s.taken == len(s.steps) {
		s.mu.Unlock()
		return ResponsesStep{}, s.mismatch("request %d is beyond the script of %d steps; its input:\n%s",
			r.Number, s.taken, lines(r.Input))
	}
	step := s.steps[s.taken]
	s.taken++
	n := s.taken
	s.mu.Unlock()

	if step.Want != nil && !sameItems(step.Want, r.Input) {
		return step, s.mismatch("request %d, step %d: unexpected input\nwant:\n%s\ngot:\n%s",
			r.Number, n, lines(step.Want), lines(r.Input))
	}
	if step.Check != nil {
		if err := step.Check(r); err != nil {
			return step, s.mismatch("request %d, step %d: %v", r.Number, n, err)
		}
	}
	return step, nil
}

// done reports whether the steps are used up.
func (s *responsesScript) done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken == len(s.steps)
}

// report tells tb what went wrong, and if complete is set also which steps are left.
func (s *responsesScript) report(tb testing.TB, complete bool) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, problem := range s.problems {
		tb.Errorf("pawltest: %s", problem)
	}
	if left := len(s.steps) - s.taken; complete && left > 0 {
		tb.Errorf("pawltest: %d of %d steps were not asked for", left, len(s.steps))
	}
}

// sameItems compares items as JSON values: the order of members doesn't count, the spelling of numbers does.
func sameItems(a, b []item.Item) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameItem(a[i], b[i]) {
			return false
		}
	}
	return true
}

func sameItem(a, b item.Item) bool { return a.Equal(b) || sameJSON(a.Raw(), b.Raw()) }

func sameJSON(a, b string) bool {
	x, errA := decode(a)
	y, errB := decode(b)
	return errA == nil && errB == nil && reflect.DeepEqual(x, y)
}

func decode(raw string) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(raw)))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

func lines(items []item.Item) string {
	if len(items) == 0 {
		return "  (nothing)"
	}
	var b bytes.Buffer
	for i, it := range items {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("  " + it.Raw())
	}
	return b.String()
}
