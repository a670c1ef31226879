package pawltest_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

func TestScript(t *testing.T) {
	hello := []item.Item{item.UserText("hello")}
	rows := []struct {
		name   string
		steps  []pawltest.ResponsesStep
		inputs []string
		want   []string // what AssertComplete says
	}{
		{name: "as expected", steps: []pawltest.ResponsesStep{{Want: hello}}, inputs: []string{`"hello"`}},
		{name: "members in another order", steps: []pawltest.ResponsesStep{{Want: hello}},
			inputs: []string{`[{"content":"hello", "role":"user"}]`}},
		{name: "any input", steps: []pawltest.ResponsesStep{{}}, inputs: []string{`"anything"`}},
		{name: "no input", steps: []pawltest.ResponsesStep{{Want: []item.Item{}}}, inputs: []string{`[]`}},
		{name: "other text", steps: []pawltest.ResponsesStep{{Want: hello}}, inputs: []string{`"bye"`}, want: []string{
			"pawltest: request 1, step 1: unexpected input\nwant:\n  {\"role\":\"user\",\"content\":\"hello\"}\n" +
				"got:\n  {\"role\":\"user\",\"content\":\"bye\"}"}},
		{name: "numbers spelled differently",
			steps:  []pawltest.ResponsesStep{{Want: []item.Item{item.FromTrusted(`{"type":"hologram","size":1.0}`)}}},
			inputs: []string{`[{"type":"hologram","size":1}]`}, want: []string{
				"pawltest: request 1, step 1: unexpected input\nwant:\n  {\"type\":\"hologram\",\"size\":1.0}\n" +
					"got:\n  {\"type\":\"hologram\",\"size\":1}"}},
		{name: "an item too many", steps: []pawltest.ResponsesStep{{Want: []item.Item{}}}, inputs: []string{`"hello"`}, want: []string{
			"pawltest: request 1, step 1: unexpected input\nwant:\n  (nothing)\n" +
				"got:\n  {\"role\":\"user\",\"content\":\"hello\"}"}},
		{name: "check", steps: []pawltest.ResponsesStep{{Check: func(*pawltest.ResponsesRequest) error {
			return errors.New("no tools offered")
		}}}, inputs: []string{`"hello"`}, want: []string{"pawltest: request 1, step 1: no tools offered"}},
		{name: "beyond the script", steps: []pawltest.ResponsesStep{{}}, inputs: []string{`"a"`, `"b"`}, want: []string{
			"pawltest: request 2 is beyond the script of 1 steps; its input:\n  {\"role\":\"user\",\"content\":\"b\"}"}},
		{name: "steps left", steps: []pawltest.ResponsesStep{{}, {}, {}}, inputs: []string{`"a"`},
			want: []string{"pawltest: 2 of 3 steps were not asked for"}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s, err := pawltest.StartResponses(&pawltest.ResponsesOptions{Steps: r.steps})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			a := api{t, s}
			for _, input := range r.inputs {
				a.send(http.MethodPost, "/responses", `{"model":"m","input":`+input+`}`)
			}
			rec := &recorder{TB: t}
			s.AssertComplete(rec)
			if diff := cmp.Diff(r.want, rec.errors); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestScriptMismatchAnswer: the agent under test sees what was wrong, as a refusal that no client sends again.
func TestScriptMismatchAnswer(t *testing.T) {
	s, err := pawltest.StartResponses(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := api{t, s}.want(400, http.MethodPost, "/responses", blocking)
	if !strings.Contains(got, `"message":"request 1 is beyond the script of 0 steps;`) || !strings.Contains(got, `"code":"script_mismatch"`) {
		t.Errorf("answer = %s", got)
	}
}

func TestStepsAreTakenByAcceptedRequestsOnly(t *testing.T) {
	opts := script(pawltest.ReplyText("one"), pawltest.ReplyText("two"))
	opts.Fault = pawltest.FaultsAt(map[int]*pawltest.ResponsesFault{2: {Error: pawltest.ServerError()}})
	opts.Respond = func(r *pawltest.ResponsesRequest) pawltest.ResponsesReply { return pawltest.ReplyText("then") }
	a := newAPI(t, opts)
	a.want(400, http.MethodPost, "/responses", `{"model":"m","input":[`+callA+`]}`) // refused
	a.want(500, http.MethodPost, "/responses", blocking)                            // fails before
	for _, want := range []string{"one", "two", "three", "then"} {
		if want == "three" {
			a.s.AddSteps(pawltest.ResponsesStep{Derive: func(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
				return pawltest.ReplyText(string(r.Param("user")))
			}})
			want = `\"three\"`
		}
		if got := a.create(`"input":"x","user":"three"`); !strings.Contains(got, `"text":"`+want+`"`) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	a.s.AssertComplete(t)
}

func TestCleanupReportsProblems(t *testing.T) {
	rec := &recorder{}
	t.Run("inner", func(t *testing.T) {
		rec.TB = t
		s := pawltest.NewResponsesServer(rec, script(pawltest.ReplyText("never asked for")))
		s.AddSteps(pawltest.ResponsesStep{Want: []item.Item{}})
		a := api{t, s}
		a.create(`"input":"x"`)
		a.send(http.MethodPost, "/responses", blocking)
		if len(rec.errors) != 0 {
			t.Errorf("reported before the end: %v", rec.errors)
		}
	})
	if len(rec.errors) != 1 || !strings.HasPrefix(rec.errors[0], "pawltest: request 2, step 2: unexpected input") {
		t.Errorf("reported %q", rec.errors)
	}
}
