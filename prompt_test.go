package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/pawl-agents/pawl/pawltest"
)

func prompts(s *script) (list []string) {
	for _, a := range s.calls() {
		list = append(list, a.Prompt)
	}
	return list
}

// The prompt of each turn is what the function says, and a turn whose request is repeated
// elsewhere has the one that it recorded.
func TestPrompt(t *testing.T) {
	var e effects
	lost := &model.Error{Err: model.ErrStreamCut}
	s := newScript(calling(fc("c1", "pay", `{"cents":1}`)), failing(lost), says("done"))
	s.info.ServerPrompts = true
	agent := agentWith(s, charging("pay", &e, nil))
	asked := 0
	agent.Prompt = func(_ context.Context, rc *pawl.RunContext) (*pawl.PromptRef, error) {
		asked++
		return &pawl.PromptRef{ID: "pmpt_1", Variables: map[string]string{"turn": string(rune('0' + rc.Turn)), "asked": string(rune('0' + asked))}}, nil
	}
	_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil)
	if !errors.Is(err, model.ErrStreamCut) {
		t.Fatal(err)
	}
	must(t)(new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil))
	first, second := `{"id":"pmpt_1","variables":{"asked":"1","turn":"1"}}`, `{"id":"pmpt_1","variables":{"asked":"2","turn":"2"}}`
	if diff := cmp.Diff([]string{first, second, second}, prompts(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPromptRef(t *testing.T) {
	image := item.InputImage(item.Image{URL: "https://example.org/a.png"})
	for name, tt := range map[string]struct {
		ref       *pawl.PromptRef
		want, err string
	}{
		"id":         {ref: &pawl.PromptRef{ID: "p"}, want: `{"id":"p"}`},
		"version":    {ref: &pawl.PromptRef{ID: "p", Version: "3"}, want: `{"id":"p","version":"3"}`},
		"variables":  {ref: &pawl.PromptRef{ID: "p", Variables: map[string]string{"b": "2", "a": "1"}}, want: `{"id":"p","variables":{"a":"1","b":"2"}}`},
		"part":       {ref: &pawl.PromptRef{ID: "p", Parts: map[string]item.Part{"a": image}}, want: `{"id":"p","variables":{"a":` + image.Raw() + `}}`},
		"none":       {err: `pawl: agent "support": Prompt: it returned none`},
		"no id":      {ref: &pawl.PromptRef{Version: "3"}, err: `pawl: agent "support": Prompt: it returned one without an id`},
		"twice":      {ref: &pawl.PromptRef{ID: "p", Variables: map[string]string{"a": "1"}, Parts: map[string]item.Part{"a": image}}, err: `pawl: agent "support": Prompt: the variable "a" is a text and a part`},
		"empty part": {ref: &pawl.PromptRef{ID: "p", Parts: map[string]item.Part{"a": {}}}, err: `pawl: agent "support": Prompt: json: error calling MarshalJSON for type json.RawMessage: unexpected end of JSON input`},
		"bad name":   {ref: &pawl.PromptRef{ID: "p", Variables: map[string]string{"\xff": "1"}}, err: `pawl: agent "support": Prompt: the name of the variable "\xff" is not valid UTF-8`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(says("done"))
			s.info.ServerPrompts = true
			agent := agentWith(s)
			agent.Prompt = func(context.Context, *pawl.RunContext) (*pawl.PromptRef, error) { return tt.ref, nil }
			_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil)
			var got string
			if calls := s.calls(); len(calls) > 0 {
				got = calls[0].Prompt
			}
			text := ""
			if re, ok := errors.AsType[*pawl.RunError](err); ok {
				text = re.Err.Error()
			}
			if got != tt.want || text != tt.err {
				t.Errorf("sent %s, want %s; error %s, want %s", got, tt.want, text, tt.err)
			}
		})
	}
}

// A model whose server keeps none is refused before anything happens
// [S14.4].
func TestPromptNeedsAModel(t *testing.T) {
	s := newScript()
	store := journal.NewMemory()
	agent := agentWith(s)
	agent.Prompt = pawl.StaticPrompt(pawl.PromptRef{ID: "pmpt_1"})
	_, err := (&pawl.Runner{Store: store}).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"})
	var config *pawl.ConfigError
	if !errors.As(err, &config) || config.Field != "Agent.Prompt" {
		t.Errorf("error %v", err)
	}
	if recs, err := store.Read(t.Context(), "r", 0); err != nil || len(recs) > 0 {
		t.Errorf("%d facts, %v", len(recs), err)
	}
}

// The strict server takes a prompt for a model.
func TestPromptOverTheWire(t *testing.T) {
	srv := pawltest.NewResponsesServer(t, &pawltest.ResponsesOptions{Respond: func(*pawltest.ResponsesRequest) pawltest.ResponsesReply {
		return pawltest.ReplyText("hello")
	}})
	client := openai.New(openai.Options{BaseURL: srv.URL(), HTTPClient: srv.Client()})
	agent := &pawl.Agent{Name: "Guide", Model: client.Responses(""), Prompt: pawl.StaticPrompt(pawl.PromptRef{ID: "pmpt_1"})}
	must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
	var body map[string]json.RawMessage
	if err := json.Unmarshal(srv.Requests()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	if _, named := body["model"]; named || string(body["prompt"]) != `{"id":"pmpt_1"}` {
		t.Errorf("body %s", srv.Requests()[0].Body)
	}
}
