package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-agents/pawl/item"
)

// output is what the model reads of a result, of an error too: a text, or parts. Structured content
// is it if that is wanted, or if there is nothing else.
func output(res *sdk.CallToolResult, structured bool) (any, error) {
	if (structured && !res.IsError || len(res.Content) == 0) && !empty(res.StructuredContent) {
		return text(res.StructuredContent)
	}
	parts := make([]item.Part, len(res.Content))
	for i, c := range res.Content {
		var err error
		if parts[i], err = part(c); err != nil {
			return nil, err
		}
	}
	switch {
	case len(parts) == 0:
		return "", nil
	case len(parts) == 1 && parts[0].Type() == item.PartInputText:
		return parts[0].Text(), nil
	}
	return parts, nil
}

func empty(structured any) bool {
	if object, ok := structured.(map[string]any); ok {
		return len(object) == 0
	}
	return structured == nil
}

// part is a block of a result. What models cannot be shown they read as JSON.
func part(c sdk.Content) (item.Part, error) {
	switch c := c.(type) {
	case *sdk.TextContent:
		return item.InputText(strings.ToValidUTF8(c.Text, "\uFFFD")), nil
	case *sdk.ImageContent:
		mime := strings.ToValidUTF8(c.MIMEType, "\uFFFD")
		return item.InputImage(item.Image{URL: "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(c.Data)}), nil
	}
	s, err := text(c)
	return item.InputText(s), err
}

// text is a value as JSON, without the escapes that are for HTML.
func text(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.ToValidUTF8(strings.TrimSuffix(b.String(), "\n"), "\uFFFD"), err
}
