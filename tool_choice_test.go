package pawl_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

// choice is a tool choice as it was asked: the word and the raw one.
func choices(s *script) (list []string) {
	for _, a := range s.calls() {
		text := "-"
		if a.Settings != nil {
			text = a.Settings.ToolChoice + a.Settings.ToolChoiceRaw
		}
		list = append(list, text)
	}
	return list
}

// A choice that forces a call is the model's again after the agent used a tool [S14.3].
func TestToolChoiceIsReset(t *testing.T) {
	word := func(s string) *pawl.ModelSettings { return &pawl.ModelSettings{ToolChoice: s} }
	raw := func(s string) *pawl.ModelSettings { return &pawl.ModelSettings{ToolChoiceRaw: s} }
	for name, tt := range map[string]struct {
		agent, run *pawl.ModelSettings
		keep       bool
		want       []string
	}{
		"required":            {agent: word("required"), want: []string{"required", "", ""}},
		"a tool":              {agent: word("pay"), want: []string{"pay", "", ""}},
		"kept":                {agent: word("pay"), keep: true, want: []string{"pay", "pay", "pay"}},
		"of the run":          {run: word("required"), want: []string{"required", "", ""}},
		"of the run, kept":    {run: word("required"), keep: true, want: []string{"required", "required", "required"}},
		"over the agent's":    {agent: word("required"), run: word("pay"), want: []string{"pay", "", ""}},
		"auto over required":  {agent: word("required"), run: word("auto"), want: []string{"auto", "auto", "auto"}},
		"auto":                {agent: word("auto"), want: []string{"auto", "auto", "auto"}},
		"none":                {agent: word("none"), want: []string{"none", "none", "none"}},
		"raw":                 {agent: raw(`{"type":"function","name":"pay"}`), want: []string{`{"type":"function","name":"pay"}`, "", ""}},
		"raw word":            {agent: raw(`"required"`), want: []string{`"required"`, "", ""}},
		"raw auto":            {agent: raw(`"auto"`), want: []string{`"auto"`, `"auto"`, `"auto"`}},
		"raw list, optional":  {agent: raw(`{"type":"allowed_tools","mode":"auto"}`), want: []string{`{"type":"allowed_tools","mode":"auto"}`, `{"type":"allowed_tools","mode":"auto"}`, `{"type":"allowed_tools","mode":"auto"}`}},
		"raw list, required":  {agent: raw(`{"type":"allowed_tools","mode":"required"}`), want: []string{`{"type":"allowed_tools","mode":"required"}`, "", ""}},
		"no choice":           {agent: &pawl.ModelSettings{}, want: []string{"", "", ""}},
		"no settings":         {want: []string{"-", "-", "-"}},
		"other settings stay": {agent: &pawl.ModelSettings{ToolChoice: "pay", Verbosity: "low"}, want: []string{"pay", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				var e effects
				s := newScript(calling(fc("c1", "pay", `{"cents":1}`)), calling(fc("c2", "pay", `{"cents":2}`)), says("done"))
				agent := agentWith(s, charging("pay", &e, nil))
				agent.Settings, agent.KeepToolChoice = tt.agent, tt.keep
				must(t)(m.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Settings: tt.run}))
				if diff := cmp.Diff(tt.want, choices(s)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				if a := tt.agent; a != nil && s.calls()[2].Settings.Verbosity != a.Verbosity {
					t.Errorf("verbosity %q", s.calls()[2].Settings.Verbosity)
				}
			})
		})
	}
}

// That a tool was used is in the ledger: a run that is resumed elsewhere does not force one
// again, and a request that is repeated is the same.
func TestToolChoiceIsResetAfterAResume(t *testing.T) {
	var e effects
	lost := &model.Error{Err: model.ErrStreamCut}
	s := newScript(failing(lost), calling(fc("c1", "pay", `{"cents":1}`)), failing(lost), says("done"))
	agent := agentWith(s, charging("pay", &e, asking))
	agent.Settings = &pawl.ModelSettings{ToolChoice: "required"}
	_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil)
	if !errors.Is(err, model.ErrStreamCut) {
		t.Fatal(err)
	}
	res := must(t)(new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil))
	state := viaJSON(t, res.State())
	if err := state.Approve(state.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	_, err = new(pawl.Runner).Resume(t.Context(), agent, state, nil)
	if !errors.Is(err, model.ErrStreamCut) {
		t.Fatal(err)
	}
	must(t)(new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil))
	if diff := cmp.Diff([]string{"required", "required", "", ""}, choices(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A tool that the model's server ran counts, a search for tools does not.
func TestToolChoiceAndHostedTools(t *testing.T) {
	for raw, want := range map[string][]string{
		`{"type":"web_search_call","id":"ws_1","status":"completed"}`:  {"required", ""},
		`{"type":"tool_search_call","id":"ts_1","status":"completed"}`: {"required", "required"},
	} {
		it, err := item.ParseString(raw)
		if err != nil {
			t.Fatal(err)
		}
		s := newScript(items(it), says("done"))
		agent := agentWith(s)
		agent.Settings = &pawl.ModelSettings{ToolChoice: "required"}
		must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
		if diff := cmp.Diff(want, choices(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}
