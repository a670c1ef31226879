package model_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

func numbered(n int) item.Item { return item.FromTrusted(fmt.Sprintf(`{"n":%d}`, n)) }

func TestInputAppendLeavesTheOriginalAlone(t *testing.T) {
	one := model.NewInput(numbered(1))
	two := one.Append(numbered(2))
	three := one.Append(numbered(3))
	body := two.Body([]byte("["), []byte("]"))
	four := two.Append(numbered(4))
	got := []string{string(one.JSON()), string(two.JSON()), string(three.JSON()), string(four.JSON()), string(body.Text)}
	want := []string{`{"n":1}`, `{"n":1},{"n":2}`, `{"n":1},{"n":3}`, `{"n":1},{"n":2},{"n":4}`, `[{"n":1},{"n":2}]`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]item.Item{numbered(1), numbered(3)}, three.Items()); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestInputBody(t *testing.T) {
	in := model.NewInput(numbered(1))
	tests := []struct{ head, tail, want string }{
		{`{"input":[`, `]}`, `{"input":[{"n":1}]}`},
		{`{"input":[`, `],"stream":true}`, `{"input":[{"n":1}],"stream":true}`},
		{`{"model":"m","input":[`, `]}`, `{"model":"m","input":[{"n":1}]}`},
		{``, ``, `{"n":1}`},
	}
	for _, tt := range tests {
		body := in.Body([]byte(tt.head), []byte(tt.tail))
		if string(body.Text) != tt.want {
			t.Errorf("Body(%q, %q) = %s, want %s", tt.head, tt.tail, body.Text, tt.want)
		}
		body.Done()
	}
	if got := string(model.Input{}.Body([]byte("["), []byte("]")).Text); got != "[]" {
		t.Errorf("body of no items: %s", got)
	}
}

// A body that is not done with keeps its bytes whatever is appended or sent meanwhile.
func TestInputBodyStays(t *testing.T) {
	in := model.NewInput(numbered(1))
	first := in.Body([]byte("["), []byte("]"))
	second := in.Body([]byte("<"), []byte(">"))
	in = in.Append(numbered(2))
	third := in.Body([]byte("["), []byte("]"))
	in = in.Append(numbered(3))
	got := []string{string(first.Text), string(second.Text), string(third.Text), string(in.JSON())}
	want := []string{`[{"n":1}]`, `<{"n":1}>`, `[{"n":1},{"n":2}]`, `{"n":1},{"n":2},{"n":3}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A run that sends its history again each turn allocates for the growth of it, not for each body.
func TestInputBodyIsBuiltInPlace(t *testing.T) {
	head, tail := []byte(`{"input":[`), []byte(`]}`)
	it := item.UserText(strings.Repeat("x", 1000))
	allocated := testing.AllocsPerRun(10, func() {
		var in model.Input
		for range 500 {
			in = in.Append(it)
			in.Body(head, tail).Done()
		}
	})
	if allocated > 60 {
		t.Errorf("500 turns allocated %.0f times", allocated)
	}
}

// Whatever the order of operations, every value keeps its bytes.
func TestInputProperty(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		type value struct {
			in   model.Input
			want string
		}
		values := []value{{}}
		type body struct {
			model.Body
			want string
			done bool
		}
		var bodies []body
		for n := range 30 {
			v := values[r.IntN(len(values))]
			switch r.IntN(3) {
			case 0:
				want := strings.TrimPrefix(v.want+","+numbered(n).Raw(), ",")
				values = append(values, value{v.in.Append(numbered(n)), want})
			case 1:
				head, tail := strings.Repeat("h", r.IntN(3)), strings.Repeat("t", r.IntN(3))
				bodies = append(bodies, body{Body: v.in.Body([]byte(head), []byte(tail)), want: head + v.want + tail})
			case 2:
				if len(bodies) > 0 {
					if b := &bodies[r.IntN(len(bodies))]; !b.done {
						b.done = true
						b.Done()
					}
				}
			}
			for _, v := range values {
				if string(v.in.JSON()) != v.want {
					t.Fatalf("an input became %s, want %s", v.in.JSON(), v.want)
				}
			}
			for _, b := range bodies {
				if !b.done && string(b.Text) != b.want {
					t.Fatalf("a body became %s, want %s", b.Text, b.want)
				}
			}
		}
	}
}

func TestInputConcurrentUse(t *testing.T) {
	in := model.NewInput(numbered(1))
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			mine := in
			want := `{"n":1}`
			for i := range 20 {
				it := numbered(100*n + i)
				mine, want = mine.Append(it), want+","+it.Raw()
				head := fmt.Sprint(n)
				body := mine.Body([]byte(head), nil)
				if string(body.Text) != head+want {
					t.Errorf("body %s, want %s%s", body.Text, head, want)
				}
				body.Done()
			}
		})
	}
	wg.Wait()
}
