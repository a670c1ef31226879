package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-agents/pawl"
)

// KeyMeta is the member of a call's _meta that holds its idempotency key, pawl.Call.Key: equal
// when the same call is sent again, different for every call.
const KeyMeta = "io.github.pawl-agents/idempotency-key"

// tool is a tool and what it was made of.
type tool struct {
	of   *sdk.Tool
	tool pawl.Tool
}

// make makes the tools of a list.
func (s *Server) make(defs []*sdk.Tool) []tool {
	tools := make([]tool, len(defs))
	for i, def := range defs {
		tools[i] = tool{def, s.tool(def)}
	}
	return tools
}

// tool makes one. What is wrong with it is its Err.
func (s *Server) tool(def *sdk.Tool) pawl.Tool {
	doc := schemaOf(def)
	schema, err := text(doc)
	if err != nil {
		schema = err.Error() // which is none: the tool says what is wrong
	}
	f := pawl.RawFunc{Name: s.name(def.Name), Description: describe(def), Schema: schema, Loose: true, Effect: s.effect(def), Timeout: s.opts.Timeout,
		RunAny: func(ctx context.Context, c *pawl.Call) (any, error) { return s.call(ctx, c, def.Name) }}
	if s.opts.Approve != nil {
		f.Approve = func(ctx context.Context, c *pawl.Call) (pawl.Gate, error) { return s.opts.Approve(ctx, c, def) }
	}
	if s.opts.Adjust != nil {
		s.opts.Adjust(def, &f)
	}
	if s.opts.Strict && f.Schema == schema && closed(doc) {
		strict := f
		strict.Loose = false
		if t := pawl.NewRawTool(strict); t.Err() == nil {
			return t
		}
	}
	return pawl.NewRawTool(f)
}

func describe(def *sdk.Tool) string {
	text := def.Description
	if text == "" {
		text = def.Title
	}
	if text == "" && def.Annotations != nil {
		text = def.Annotations.Title
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

func (s *Server) effect(def *sdk.Tool) pawl.Effect {
	switch hints := def.Annotations; {
	case !s.opts.TrustHints || hints == nil:
		return pawl.AtMostOnce
	case hints.ReadOnlyHint:
		return pawl.ReadOnly
	case hints.IdempotentHint:
		return pawl.Idempotent
	}
	return pawl.AtMostOnce
}

// call is the body of a tool. It is sent once: whether it may be sent again is for the run to say.
func (s *Server) call(ctx context.Context, c *pawl.Call, name string) (any, error) {
	session := s.session.Load()
	if session == nil {
		return nil, s.failed("calling "+name, ErrNotConnected)
	}
	meta := sdk.Meta{}
	if s.opts.Meta != nil {
		more, err := s.opts.Meta(ctx, c)
		if err != nil {
			return nil, s.failed("the _meta of a call of "+name, err)
		}
		maps.Copy(meta, more)
	}
	meta[KeyMeta] = c.Key
	res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(c.Arguments), Meta: meta})
	switch {
	case err != nil:
		return nil, s.callFailed("calling "+name, err)
	case res.NeedsInput():
		return nil, s.failed("calling "+name, errors.New("it asks for more input, which the session does not give"))
	}
	return output(res, s.opts.Structured)
}
