package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/mcp"
)

// The names that tools are offered under.
func TestNames(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, tt := range []struct {
		label, tool   string
		plain, prefix string
	}{
		{"files", "read", "read", "mcp_files__read"},
		{"my files", "read", "read", "mcp_my_files__read"},
		{"files", "read.all", "read_all_6e11c2c4", "mcp_files__read_all_6e11c2c4"},
		{"files", "read/all", "read_all_6b977d97", "mcp_files__read_all_6b977d97"},
		{"files", long, long, "mcp_files__" + long[:44] + "_"},
	} {
		s := newShop()
		s.add(tt.tool, nil)
		session := s.connect(t, nil)
		got := append(names(t, mcp.NewServer(tt.label, session, nil)), names(t, mcp.NewServer(tt.label, session, &mcp.Options{Prefix: true}))...)
		if len(got) == 2 && tt.tool == long && len(got[1]) == 64 {
			got[1] = got[1][:56]
		}
		if diff := cmp.Diff([]string{tt.plain, tt.prefix}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// The schemas of arguments: the server's as far as they can be used, or strict ones.
func TestSchemas(t *testing.T) {
	for _, tt := range []struct{ schema, loose, strict string }{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, ``,
			`{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object","additionalProperties":false}`},
		{`{"type":"object"}`, `{"properties":{},"type":"object"}`, ``},
		{`{"type":"object","properties":{},"additionalProperties":false}`, ``, `{"additionalProperties":false,"properties":{},"type":"object","required":[]}`},
		{`{"type":"object","properties":{"any":{"type":["object","null"]}}}`, ``, ``},
		{`{"type":"object","properties":{"default":{"type":"object"}}}`, ``, ``},
		{`{"type":"object","properties":{"m":{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":{"type":"string"}}}}`, ``, ``},
		{`{"type":"object","properties":{"pattern":{"type":"string","pattern":"^(?=a)b","default":{"pattern":"(?=a)"}},"b":{"anyOf":[{"type":"string","pattern":"^b"},{"patternProperties":{"(?=a)":{},"b":{}}}]}}}`,
			`{"properties":{"b":{"anyOf":[{"pattern":"^b","type":"string"},{"patternProperties":{"b":{}}}]},"pattern":{"default":{"pattern":"(?=a)"},"type":"string"}},"type":"object"}`, ``},
	} {
		s := newShop()
		s.addTool(&sdk.Tool{Name: "x", InputSchema: json.RawMessage(tt.schema)}, nil)
		session := s.connect(t, nil)
		loose := offered(t, mcp.NewServer("shop", session, nil))["x"].Schema()
		var sorted any
		if err := json.Unmarshal([]byte(tt.schema), &sorted); err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(sorted)
		if err != nil {
			t.Fatal(err)
		}
		if tt.loose == "" {
			tt.loose = string(want)
		}
		if tt.strict == "" {
			tt.strict = tt.loose
		}
		if diff := cmp.Diff([]string{tt.loose, tt.strict}, []string{loose, offered(t, mcp.NewServer("shop", session, &mcp.Options{Strict: true}))["x"].Schema()}); diff != "" {
			t.Error(diff)
		}
	}
}

// A tool says what it is by its description, or its title.
func TestDescriptions(t *testing.T) {
	s := newShop()
	for name, def := range map[string]*sdk.Tool{
		"a": {Description: "text", Title: "title"}, "b": {Title: "title"}, "c": {Annotations: &sdk.ToolAnnotations{Title: "hint"}}, "d": {},
	} {
		def.Name, def.InputSchema = name, json.RawMessage(centsSchema)
		s.addTool(def, nil)
	}
	m := calling()
	must(t)(new(pawl.Runner).Run(t.Context(), agentOf(m, mcp.NewServer("shop", s.connect(t, nil), nil)), pawl.UserText("go"), nil))
	got := map[string]string{}
	for _, tool := range m.Calls()[0].Tools {
		got[tool.Name] = tool.Description
	}
	if diff := cmp.Diff(map[string]string{"a": "text", "b": "title", "c": "hint", "d": ""}, got); diff != "" {
		t.Error(diff)
	}
}
