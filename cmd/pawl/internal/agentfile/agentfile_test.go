package agentfile

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-agents/pawl"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func environment(name string) (string, bool) { return "secret", name == "SHOP_TOKEN" }

// The file in the documentation is one.
func TestDocumentedFile(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/workers.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/workers.md has no file")
	}
	a, f, err := Agent(write(t, string(block[1])), environment)
	if err != nil {
		t.Fatal(err)
	}
	if a.Name != "Support" || len(a.Tools) != 2 || *a.Settings.Temperature != 0.2 || time.Duration(f.Tools[1].Expires) != 48*time.Hour {
		t.Errorf("%+v", f)
	}
}

// run runs an agent with one tool on an input.
func run(t *testing.T, tool, input string) string {
	t.Helper()
	a, _, err := Agent(write(t, "name: A\nmodel: demo\ntools:\n  - name: x\n"+tool), environment)
	if err != nil {
		t.Fatal(err)
	}
	var r pawl.Runner
	res, err := r.Run(t.Context(), a, pawl.UserText(input), nil)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(res.FinalOutput)
}

// A program has the arguments, the key and the file's directory; an error is what it says.
func TestCommand(t *testing.T) {
	for name, tt := range map[string]struct{ command, input, want string }{
		"arguments":       {`[cat]`, `x {"b": 1, "a": "ü"}`, `{"b": 1, "a": "ü"}`},
		"directory":       {`[sh, -c, 'ls']`, `x`, "agent.yaml"},
		"key":             {`[sh, -c, 'echo ${#PAWL_KEY} $PAWL_TOOL $PAWL_ATTEMPT']`, `x`, "37 x 1"},
		"several lines":   {`[printf, 'a\nb\n\n']`, `x`, "a\nb\n"},
		"an error":        {`[sh, -c, 'echo out; echo no luck >&2; exit 3']`, `x`, "The tool failed: sh: exit status 3: no luck"},
		"background":      {`[sh, -c, 'echo begun; sleep 20 &']`, `x`, "begun"},
		"no such program": {`[./absent]`, `x`, "The tool failed: ./absent: fork/exec ./absent: no such file or directory: "},
		"much":            {`[head, -c, '1048577', /dev/zero]`, `x`, "The tool failed: it answered with more than 1048576 bytes"},
		"not a call":      {`[cat]`, `hello`, ""},
	} {
		want := "It says: " + tt.want
		if tt.want == "" {
			want = "You said: hello"
		}
		schema := "    parameters: {type: object, properties: {a: {type: string}, b: {type: integer}}, required: [a, b], additionalProperties: false}\n"
		if name != "arguments" {
			schema = ""
		}
		if got := run(t, schema+"    command: "+tt.command+"\n", tt.input); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A program that was killed, and an answer of somebody on the way, say nothing of what was done.
func TestNobodyKnows(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(code)
	}))
	defer s.Close()
	for tool, unknown := range map[string]bool{
		"command: [sh, -c, 'kill -9 $$']": true,
		"command: [sh, -c, 'exit 1']":     false,
		"url: " + s.URL + "/502":          true,
		"url: " + s.URL + "/504":          true,
		"url: " + s.URL + "/500":          false,
	} {
		if got := run(t, "    "+tool+"\n", "x"); strings.Contains(got, "is unknown") != unknown {
			t.Errorf("%s: %q, want unknown %t", tool, got, unknown)
		}
	}
}

// A program is told to end with its call.
func TestCommandEnds(t *testing.T) {
	begun := time.Now()
	got := run(t, "    timeout: 50ms\n    command: [sleep, '60']\n", "x")
	if !strings.Contains(got, "is unknown") || time.Since(begun) > 20*time.Second {
		t.Errorf("after %v: %q", time.Since(begun), got)
	}
}

// An endpoint is sent the arguments, the headers and the key; what is no success is an error.
func TestEndpoint(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%s %s %s %s %d", r.Method, body, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), len(r.Header.Get("Idempotency-Key"))))
		switch r.URL.Path {
		case "/refuse":
			http.Error(w, "no money", http.StatusConflict)
		case "/elsewhere":
			http.Redirect(w, r, "/", http.StatusFound)
		default:
			fmt.Fprint(w, "refunded")
		}
	}))
	defer s.Close()
	tool := func(path string) string {
		return "    url: " + s.URL + path + "\n    headers: {Authorization: 'Bearer ${SHOP_TOKEN}'}\n"
	}
	for path, want := range map[string]string{
		"":           "It says: refunded",
		"/refuse":    "It says: The tool failed: " + s.URL + "/refuse answered 409 Conflict: no money\n",
		"/elsewhere": "It says: The tool failed: " + s.URL + "/elsewhere answered 302 Found: ",
	} {
		if out := run(t, tool(path), "x"); out != want {
			t.Errorf("%q: %q, want %q", path, out, want)
		}
	}
	sent := "POST {} application/json Bearer secret 37"
	if diff := cmp.Diff([]string{sent, sent, sent}, got); diff != "" {
		t.Error(diff)
	}
}

// What is wrong is said with its line.
func TestMistakes(t *testing.T) {
	head := "name: A\nmodel: demo\n"
	for text, want := range map[string]string{
		"":                                  "no documents",
		"model: demo\n":                     "name is missing",
		"name: A\n":                         "model: it is missing: openai:NAME, or demo",
		"name: A\nmodel: llama:x\n":         `2: model: there is no "llama": it is openai:NAME, or demo`,
		"name: A\nmodel: 'openai:'\n":       `2: model: there is no "openai": it is openai:NAME, or demo`,
		head + "max_turns: -1\n":            "3: max_turns is negative",
		head + "max_turns: many\n":          "3: ",
		head + "color: red\n":               "3: field color not found",
		head + "model: demo\n":              "3: ",
		head + "settings:\n  heat: 3\n":     "4: field heat not found",
		head + "settings: {timeout: -1s}\n": "-1s is not positive",
		head + "---\nname: B\n":             "",
		head + "tools: [{command: [ls]}]":   "3: the tool has no name",
		head + "tools:\n- name: x":          "4: x has neither a command nor a url",
		head + "tools:\n- name: x\n  command: [ls]\n  effect: maybe\n":              "6: effect of x is \"maybe\": it is read-only, idempotent or at-most-once",
		head + "tools:\n- name: x\n  command: [ls]\n  approve: sometimes\n":         "6: approve of x is \"sometimes\": it is always or never",
		head + "tools:\n- name: x\n  command: [ls]\n  expires: 1h\n":                "6: x expires, and nobody is asked to approve it",
		head + "tools:\n- name: x\n  command: [ls]\n  url: http://h\n":              "6: x has a command and a url",
		head + "tools:\n- name: x\n  command: [ls]\n  headers: {A: b}\n":            "6: x has headers, and no url",
		head + "tools:\n- name: x\n  url: ftp://h\n":                                "5: x: url \"ftp://h\" is no http or https URL",
		head + "tools:\n- name: x\n  url: http://h\n  headers: {A: '${NONE}'}\n":    "5: x: the environment has no ${NONE}, which the header A has",
		head + "tools:\n- name: x\n  url: http://h\n  parameters: {type: string}\n": "5: ",
		head + "tools:\n- name: x\n  command: [ls]\n- name: y\n  comand: [ls]\n":    "7: field comand not found",
	} {
		path := write(t, text)
		_, _, err := Agent(path, environment)
		wrong, ok := errors.AsType[*Error](err)
		if !ok || !strings.Contains(wrong.Error(), want) || !strings.HasPrefix(wrong.Error(), path+":") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, _, err := Agent(filepath.Join(t.TempDir(), "absent"), environment); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
