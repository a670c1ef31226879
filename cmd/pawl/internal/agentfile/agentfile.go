// Package agentfile reads agents from YAML files: what an agent is told, which model it has, and tools that are
// programs or HTTP endpoints.
package agentfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/pawl-agents/pawl"
	"go.yaml.in/yaml/v4"
)

// File is the content of an agent file. docs/workers.md explains it.
type File struct {
	Name         string   `yaml:"name"`
	Instructions string   `yaml:"instructions"`
	Model        string   `yaml:"model"`
	MaxTurns     int      `yaml:"max_turns"`
	Settings     Settings `yaml:"settings"`
	Tools        []Tool   `yaml:"tools"`
}

// Settings are what the model is asked with.
type Settings struct {
	Temperature       *float64 `yaml:"temperature"`
	TopP              *float64 `yaml:"top_p"`
	MaxTokens         *int64   `yaml:"max_tokens"`
	ToolChoice        string   `yaml:"tool_choice"`
	ParallelToolCalls *bool    `yaml:"parallel_tool_calls"`
	ReasoningEffort   string   `yaml:"reasoning_effort"`
	Verbosity         string   `yaml:"verbosity"`
	Timeout           Duration `yaml:"timeout"`
}

// Tool is a program or an endpoint that the model may call.
type Tool struct {
	Name        string            `yaml:"name"`
	Description string            `yaml:"description"`
	Parameters  map[string]any    `yaml:"parameters"`
	Effect      string            `yaml:"effect"`
	Approve     string            `yaml:"approve"`
	Expires     Duration          `yaml:"expires"`
	Timeout     Duration          `yaml:"timeout"`
	Command     []string          `yaml:"command"`
	URL         string            `yaml:"url"`
	Headers     map[string]string `yaml:"headers"`
}

// Duration is a time like 1m30s.
type Duration time.Duration

// UnmarshalText reads what time.ParseDuration does.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil && v <= 0 {
		err = fmt.Errorf("%s is not positive", text)
	}
	*d = Duration(v)
	return err
}

// Error is a mistake in an agent file.
type Error struct {
	File string
	Line int // 0 if it is of no line
	Text string
}

// Error names the file and the line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Text)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
}

// Agent reads the agent of a file, with a lookup of environment variables. Errors about the content are *Error.
func Agent(path string, env func(string) (string, bool)) (*pawl.Agent, *File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	f, err := parse(path, data)
	if err != nil {
		return nil, nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, nil, err
	}
	a, err := f.agent(source{path: path, dir: dir, env: env, lines: linesOf(data)})
	return a, f, err
}

// typeName is how the YAML package names our types in its errors.
var typeName = regexp.MustCompile(` in type [\w.]+`)

func parse(path string, data []byte) (*File, error) {
	var f File
	err := yaml.Load(data, &f, yaml.WithKnownFields())
	if several, ok := errors.AsType[*yaml.LoadErrors](err); ok && len(several.Errors) > 0 {
		first := several.Errors[0]
		return nil, &Error{File: path, Line: first.Mark.Line, Text: typeName.ReplaceAllString(first.Message, "")}
	}
	if one, ok := errors.AsType[*yaml.LoadError](err); ok {
		return nil, &Error{File: path, Line: one.Mark.Line, Text: one.Message}
	}
	if err != nil {
		return nil, &Error{File: path, Text: strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	return &f, nil
}

// source is where a file comes from, for its errors and its tools.
type source struct {
	path, dir string
	env       func(string) (string, bool)
	lines     lines
}

func (s *source) errorf(line int, format string, args ...any) error {
	return &Error{File: s.path, Line: line, Text: fmt.Sprintf(format, args...)}
}

// lines are the lines of the fields of the file, and of each of its tools.
type lines struct {
	fields map[string]int
	tools  []map[string]int
}

func linesOf(data []byte) (l lines) {
	var doc yaml.Node
	if yaml.Load(data, &doc) != nil || len(doc.Content) == 0 {
		return l
	}
	l.fields = fieldsOf(doc.Content[0])
	for i, n := range doc.Content[0].Content {
		if i%2 == 1 && doc.Content[0].Content[i-1].Value == "tools" {
			for _, tool := range n.Content {
				l.tools = append(l.tools, fieldsOf(tool))
			}
		}
	}
	return l
}

// fieldsOf returns the lines of the keys of a mapping; that of "" is its first.
func fieldsOf(n *yaml.Node) map[string]int {
	at := map[string]int{"": n.Line}
	for i := 0; i+1 < len(n.Content); i += 2 {
		at[n.Content[i].Value] = n.Content[i].Line
	}
	return at
}

// agent makes the agent of a file.
func (f *File) agent(s source) (*pawl.Agent, error) {
	at := s.lines.fields
	if f.Name == "" {
		return nil, s.errorf(at["name"], "name is missing")
	}
	if f.MaxTurns < 0 {
		return nil, s.errorf(at["max_turns"], "max_turns is negative")
	}
	a := &pawl.Agent{Name: f.Name, Settings: f.Settings.settings()}
	if f.Instructions != "" {
		a.Instructions = pawl.Text(f.Instructions)
	}
	var err error
	if a.Model, err = modelOf(f.Model); err != nil {
		return nil, s.errorf(at["model"], "model: %v", err)
	}
	for i := range f.Tools {
		tool, err := f.Tools[i].tool(s, s.lines.tools[i])
		if err != nil {
			return nil, err
		}
		a.Tools = append(a.Tools, tool)
	}
	return a, nil
}

func (s *Settings) settings() *pawl.ModelSettings {
	set := &pawl.ModelSettings{Temperature: s.Temperature, TopP: s.TopP, MaxTokens: s.MaxTokens, ToolChoice: s.ToolChoice,
		ParallelToolCalls: s.ParallelToolCalls, Verbosity: s.Verbosity, Timeout: time.Duration(s.Timeout)}
	if s.ReasoningEffort != "" {
		set.Reasoning = &reasoning{Effort: s.ReasoningEffort}
	}
	return set
}

// effects are the words for the classes of effects.
var effects = map[string]pawl.Effect{"": pawl.AtMostOnce, "at-most-once": pawl.AtMostOnce, "idempotent": pawl.Idempotent, "read-only": pawl.ReadOnly}

// tool makes a tool; at are the lines of its fields.
func (t *Tool) tool(s source, at map[string]int) (pawl.Tool, error) {
	name := t.Name
	if name == "" {
		return pawl.Tool{}, s.errorf(at[""], "the tool has no name")
	}
	effect, known := effects[t.Effect]
	approve, words := t.Approve, ""
	switch {
	case !known:
		return pawl.Tool{}, s.errorf(at["effect"], "effect of %s is %q: it is read-only, idempotent or at-most-once", name, t.Effect)
	case approve != "" && approve != "always" && approve != "never":
		return pawl.Tool{}, s.errorf(at["approve"], "approve of %s is %q: it is always or never", name, approve)
	case t.Expires != 0 && approve != "always":
		return pawl.Tool{}, s.errorf(at["expires"], "%s expires, and nobody is asked to approve it", name)
	case len(t.Command) > 0 && t.URL != "":
		return pawl.Tool{}, s.errorf(at["url"], "%s has a command and a url", name)
	case len(t.Command) == 0 && t.URL == "":
		return pawl.Tool{}, s.errorf(at[""], "%s has neither a command nor a url", name)
	case len(t.Headers) > 0 && t.URL == "":
		return pawl.Tool{}, s.errorf(at["headers"], "%s has headers, and no url", name)
	}
	schema := []byte(`{"type":"object","properties":{},"additionalProperties":false}`)
	if t.Parameters != nil {
		var err error
		if schema, err = json.Marshal(t.Parameters); err != nil {
			return pawl.Tool{}, s.errorf(at["parameters"], "parameters of %s: %v", name, err)
		}
	}
	f := pawl.RawFunc{Name: name, Description: t.Description, Schema: string(schema), Effect: effect, Timeout: time.Duration(t.Timeout), Expires: time.Duration(t.Expires)}
	if approve == "always" {
		f.Approve = alwaysAsk
	}
	if len(t.Command) > 0 {
		f.Run, words = command{argv: t.Command, dir: s.dir}.run, "command"
	} else {
		e, err := t.endpoint(s.env)
		if err != nil {
			return pawl.Tool{}, s.errorf(at["url"], "%s: %v", name, err)
		}
		f.Run, words = e.run, "url"
	}
	tool := pawl.NewRawTool(f)
	if err := tool.Err(); err != nil {
		return pawl.Tool{}, s.errorf(at[words], "%v", strings.TrimPrefix(err.Error(), "pawl: "))
	}
	return tool, nil
}
