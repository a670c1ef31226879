package pawltest_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-agents/pawl/pawltest"
)

// startAgain starts a server on a directory, as a new process would.
func startAgain(t *testing.T, dir string) (api, *[]string) {
	t.Helper()
	opts, seen := historian()
	opts.Dir = dir
	return newAPI(t, opts), seen
}

func TestRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	a, _ := startAgain(t, dir)
	a.create(`"input":[{"role":"user","content":"a","x-note":"<&>"}]`)
	kept := a.create(`"input":"b","previous_response_id":"resp_1"`)
	a.create(`"input":"c","previous_response_id":"resp_2","store":false`)
	a.want(200, http.MethodDelete, "/responses/resp_1", "")
	a.want(200, http.MethodPost, "/conversations", `{"metadata":{"k":"v"}}`)
	a.create(`"input":"d","conversation":"conv_1"`)
	a.want(200, http.MethodPost, "/conversations", "")
	a.want(200, http.MethodDelete, "/conversations/conv_2", "")
	listed := a.want(200, http.MethodGet, "/responses/resp_2/input_items", "")
	items := a.want(200, http.MethodGet, "/conversations/conv_1/items", "")
	conversation := a.want(200, http.MethodGet, "/conversations/conv_1", "")
	if err := a.s.Close(); err != nil {
		t.Fatal(err)
	}
	// What a process leaves that died while it wrote.
	if err := os.WriteFile(filepath.Join(dir, "responses", "resp_2.json.new"), []byte(`{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}

	b, seen := startAgain(t, dir)
	for path, want := range map[string]string{
		"/responses/resp_2":             kept,
		"/responses/resp_2/input_items": listed,
		"/conversations/conv_1":         conversation,
		"/conversations/conv_1/items":   items,
	} {
		if got := b.want(200, http.MethodGet, path, ""); got != want {
			t.Errorf("%s after the restart (-want +got):\n%s", path, cmp.Diff(want, got))
		}
	}
	for _, path := range []string{"/responses/resp_1", "/responses/resp_3", "/conversations/conv_2"} {
		b.want(404, http.MethodGet, path, "")
	}
	created := b.create(`"input":"e","previous_response_id":"resp_2"`)
	if got := len(*seen); got != 5 || (*seen)[0] != `{"role":"user","content":"a","x-note":"<&>"}` {
		t.Errorf("the chain over the restart is %v", *seen)
	}
	if !strings.HasPrefix(created, `{"id":"resp_1001",`) {
		t.Errorf("a new id could be one that was given out: %.40s", created)
	}
	b.create(`"input":"f","conversation":"conv_1"`)
	if got := len(*seen); got != 3 {
		t.Errorf("the conversation over the restart is %v", *seen)
	}
}

// TestRestartKeepsRules: open calls and reasoning are known after a restart.
func TestRestartKeepsRules(t *testing.T) {
	dir := t.TempDir()
	opts := &pawltest.ResponsesOptions{Respond: byWord, Dir: dir}
	a := newAPI(t, opts)
	a.create(`"input":"calls"`)
	a.create(`"input":"thinks"`)
	a.want(200, http.MethodPost, "/conversations", `{"items":[`+user+`,`+callA+`]}`)
	if err := a.s.Close(); err != nil {
		t.Fatal(err)
	}
	b := newAPI(t, opts)
	for _, r := range []struct{ body, want string }{
		{`{"model":"m","input":"x","previous_response_id":"resp_1"}`, "No tool output found for function call call_1."},
		{`{"model":"m","input":"x","conversation":"conv_1"}`, "No tool output found for function call call_A."},
		{`{"model":"m","input":[{"id":"rs_1","type":"reasoning","summary":[]}]}`,
			"Item 'rs_1' of type 'reasoning' was provided without its required following item."},
		{`{"model":"m","input":[{"id":"msg_1","role":"assistant","content":"hm"}]}`,
			"Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'."},
	} {
		if got := b.want(400, http.MethodPost, "/responses", r.body); got != refusalBody(r.want, "input", "") {
			t.Errorf("%s: got %s, want %s", r.body, got, r.want)
		}
	}
}

func TestDirProblems(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := pawltest.StartResponses(&pawltest.ResponsesOptions{Dir: file})
	if err == nil || !strings.HasPrefix(err.Error(), "pawl: open the Responses server's directory: ") {
		t.Errorf("a file for a directory: %v", err)
	}

	dir := t.TempDir()
	a, _ := startAgain(t, dir)
	a.create(`"input":"x"`)
	if err := os.WriteFile(filepath.Join(dir, "responses", "resp_1.json"), []byte(`{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = pawltest.StartResponses(&pawltest.ResponsesOptions{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "resp_1.json") {
		t.Errorf("a damaged file: %v", err)
	}
}

// TestDirFails: a response that can't be kept is not acknowledged.
func TestDirFails(t *testing.T) {
	dir := t.TempDir()
	s, err := pawltest.StartResponses(&pawltest.ResponsesOptions{Dir: dir, Respond: byWord})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := api{t, s}
	if err := os.RemoveAll(filepath.Join(dir, "responses")); err != nil {
		t.Fatal(err)
	}
	a.want(500, http.MethodPost, "/responses", blocking)
	if got := kinds(a.send(http.MethodPost, "/responses", streamed).body); got[len(got)-1] != "error" {
		t.Errorf("the stream ends with %v", got)
	}
	rec := &recorder{TB: t}
	s.AssertComplete(rec)
	if len(rec.errors) != 2 || !strings.Contains(rec.errors[0], "no such file or directory") {
		t.Errorf("reported %q", rec.errors)
	}
}
