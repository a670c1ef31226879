package item_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
)

var seeds = []string{
	`{}`, ` {"role":"user","content":"hi"} `, `{"type":"of tomorrow","n":1.0e+00,"s":"\u0041\/<&>","z":{"b": [ ]}}`,
	`{"type":"function_call","id":"fc_1","call_id":"c1","name":"n","arguments":"{\"a\":1}","status":"completed"}`,
	`{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"new"},7]}`, `{"type":"a","type":null,"role":1}`,
	`{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"x"}`,
	`{"type":"function_call_output","output":[{"type":"input_image"}]}`, `{"type":"shell_call","environment":{"type":"local"}}`,
	`{"type":"mcp_approval_response","approve":true}`, `{"type":"local_shell_call_output","id":"c"}`, `[]`, "{\"a\":\"\xff\"}", `{`,
	`{"Type":"message","type":"function_call","TYPE":7,"Call_ID":"c9","call_id":"c1","name":"n","Arguments":"{}","arguments":"{\"a\":1}"}`,
	`{"\u0074ype":"x","id":"\ud800","n":[[[[]]]]}`,
}

// FuzzParse: what is one JSON object in UTF-8 is an item with exactly those bytes, whatever its type and members are; all else is
// ErrInvalid. The head is what encoding/json finds; no view panics, and views agree with the type.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		trimmed := bytes.Trim(raw, " \t\r\n")
		want := utf8.Valid(raw) && json.Valid(raw) && trimmed[0] == '{' && depth(raw) <= 512
		it, err := item.Parse(raw)
		if (err == nil) != want || (err != nil) != errors.Is(err, item.ErrInvalid) {
			t.Fatalf("Parse: %v, want an item: %v", err, want)
		}
		if err != nil {
			// Untrustworthy bytes must not panic either.
			untrusted := item.FromTrusted(string(raw))
			_, _ = untrusted.Head(), viewErrors(untrusted)
			return
		}
		if it.Raw() != string(trimmed) || string(it.AppendRaw(nil)) != string(trimmed) {
			t.Errorf("bytes changed: %q, want %q", it.Raw(), trimmed)
		}
		wantHead := modelHead(t, trimmed)
		if diff := cmp.Diff(wantHead, it.Head()); diff != "" || it.Type() != wantHead.Type {
			t.Errorf("Type %q, Head (-encoding/json +Head):\n%s", it.Type(), diff)
		}
		for view, err := range viewErrors(it) {
			if err == nil && !slices.Contains(typesOf(view), it.Type()) {
				t.Errorf("%s accepts an item of type %q", view, it.Type())
			}
		}
		checkEncodingJSON(t, it)
	})
}

// depth returns how deep valid JSON nests.
func depth(raw []byte) int {
	dec := json.NewDecoder(bytes.NewReader(raw))
	open, deepest := 0, 0
	for {
		token, err := dec.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
		deepest = max(deepest, open)
	}
}

func modelHead(t *testing.T, raw []byte) item.Head {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	text := func(name string) string {
		var s string
		if json.Unmarshal(members[name], &s) != nil {
			return ""
		}
		return s
	}
	h := item.Head{
		Type: item.Type(text("type")), ID: text("id"), CallID: text("call_id"), Role: text("role"),
		Name: text("name"), Namespace: text("namespace"), Status: text("status"),
	}
	if _, ok := members["role"]; ok && (members["type"] == nil || string(members["type"]) == "null") {
		h.Type = "message"
	}
	switch {
	case h.Type == "local_shell_call_output" && h.CallID == "", h.Type == "mcp_approval_request":
		h.CallID = h.ID
	case h.Type == "mcp_approval_response":
		h.CallID = text("approval_request_id")
	}
	return h
}

// typesOf returns the item types that a view accepts.
func typesOf(view string) []item.Type {
	return map[string][]item.Type{
		"Message":              {"message"},
		"Reasoning":            {"reasoning"},
		"FunctionCall":         {"function_call"},
		"FunctionCallOutput":   {"function_call_output"},
		"CustomToolCall":       {"custom_tool_call"},
		"CustomToolCallOutput": {"custom_tool_call_output"},
		"HostedCall": {
			"file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "program",
			"shell_call", "tool_search_call",
		},
		"ApprovalRequest":  {"mcp_approval_request"},
		"ApprovalResponse": {"mcp_approval_response"},
	}[view]
}

// checkEncodingJSON checks that encoding/json carries an item along without changing what it means.
func checkEncodingJSON(t *testing.T, it item.Item) {
	t.Helper()
	encoded, err := json.Marshal([]item.Item{it})
	if err != nil {
		t.Fatal(err)
	}
	var back []item.Item
	if err := json.Unmarshal(encoded, &back); err != nil {
		t.Fatal(err)
	}
	var want, got bytes.Buffer
	if err := json.Compact(&want, []byte(it.Raw())); err != nil {
		t.Fatal(err)
	}
	json.HTMLEscape(&got, want.Bytes())
	if back[0].Raw() != got.String() {
		t.Errorf("encoding/json made %s of it, want %s", back[0], got.String())
	}
}

// FuzzConstructors: whatever text goes in, a constructor writes a valid item, and the view gives the text back, with U+FFFD for
// each invalid byte.
func FuzzConstructors(f *testing.F) {
	f.Add("c1", "text \"<\\\n\x00é😀", `{"type":"program"}`)
	f.Add("\xff", "", `"},{"`)
	f.Fuzz(func(t *testing.T, id, s, caller string) {
		wantID, want := string([]rune(id)), string([]rune(s))
		output := item.FunctionCall{CallID: id, Caller: caller}.Output(s)
		if got, err := mustParse(t, output.Raw()).FunctionCallOutput(); err != nil || got.CallID != wantID || got.Text != want {
			t.Errorf("%s reads as %+v, %v", output, got, err)
		}
		custom := item.CustomToolCall{CallID: id}.OutputParts(item.InputText(s))
		if got, err := mustParse(t, custom.Raw()).CustomToolCallOutput(); err != nil || got.CallID != wantID || got.Text != want {
			t.Errorf("%s reads as %+v, %v", custom, got, err)
		}
		call := item.FunctionCallItem(id, id, s, s)
		if got, err := mustParse(t, call.Raw()).FunctionCall(); err != nil || got.ID != wantID || got.Name != want || got.Arguments != want {
			t.Errorf("%s reads as %+v, %v", call, got, err)
		}
		for _, m := range []item.Item{item.UserText(s), item.AssistantText(s), item.MessageItem(id, s)} {
			if got, err := mustParse(t, m.Raw()).Message(); err != nil || got.Text() != want {
				t.Errorf("%s reads as %+v, %v", m, got, err)
			}
		}
		reply := item.ApprovalReply(id, true, s)
		if got, err := mustParse(t, reply.Raw()).ApprovalResponse(); err != nil || got.RequestID != wantID || !got.Approve || got.Reason != want {
			t.Errorf("%s reads as %+v, %v", reply, got, err)
		}
	})
}

// FuzzCanonical: Canonical is what a model on encoding/json with UseNumber makes of the arguments, and its own canonical form;
// the digest follows the canonical form, or the bytes where there is none.
func FuzzCanonical(f *testing.F) {
	for _, s := range append(slices.Clone(seeds), `{"b":1,"a":{"d":[1.0,1e0,-0],"c":"\u2028<&>\u0000"}}`, `{"a":1,"\u0061":2}`,
		`{"a":"\ud83d\ude00\\ud800"}`, `{"a":"\ud800\ud83d\ude00"}`, "", `{"\ud83d\ude00":1,"\ufb00":2}`) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, args string) {
		got, err := item.Canonical(args)
		want, wantErr := modelCanonical(args)
		if (err == nil) != (wantErr == nil) || string(got) != want {
			t.Fatalf("Canonical = %s, %v; model = %s, %v", got, err, want, wantErr)
		}
		d, canonical, digestErr := item.DigestArguments(args)
		if err != nil {
			if !errors.Is(err, item.ErrUnreadable) || !errors.Is(digestErr, item.ErrUnreadable) || canonical != "" || d != sha256.Sum256([]byte(args)) {
				t.Errorf("unreadable: %v, %v, canonical %q, digest %s", err, digestErr, canonical, d)
			}
			return
		}
		if digestErr != nil || canonical != string(got) || d != sha256.Sum256(got) {
			t.Errorf("DigestArguments = %s, %v, want %s", canonical, digestErr, got)
		}
		if again, err := item.Canonical(canonical); err != nil || string(again) != canonical {
			t.Errorf("Canonical of %s = %s, %v", canonical, again, err)
		}
	})
}

var (
	errModel    = errors.New("unreadable")
	escapes     = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|[^u])`)
	pairs       = regexp.MustCompile(`<[dD][89abAB]..><[dD][c-fC-F]..>`)
	halfOfAPair = regexp.MustCompile(`<[dD][89a-fA-F]..>`)
)

// modelCanonical is Canonical written for plainness on encoding/json.
func modelCanonical(args string) (string, error) {
	if !utf8.ValidString(args) || !json.Valid([]byte(args)) || depth([]byte(args)) > 512 {
		return "", errModel
	}
	// Mark \uXXXX as <XXXX> and any other escape as <>, then look for surrogates that are left without a partner next to them.
	noMarks := strings.NewReplacer("<", "", ">", "").Replace(args)
	marked := escapes.ReplaceAllStringFunc(noMarks, func(e string) string { return "<" + strings.TrimPrefix(e[1:], "u") + ">" })
	if halfOfAPair.MatchString(pairs.ReplaceAllString(marked, "")) {
		return "", errModel
	}
	dec := json.NewDecoder(strings.NewReader(args))
	dec.UseNumber()
	var b strings.Builder
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return "", errModel
	}
	if err := modelObject(&b, dec); err != nil {
		return "", err
	}
	if _, err := dec.Token(); err != io.EOF {
		return "", errModel
	}
	return b.String(), nil
}

func modelValue(b *strings.Builder, dec *json.Decoder) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return modelObject(b, dec)
		}
		b.WriteByte('[')
		for first := true; dec.More(); first = false {
			if !first {
				b.WriteByte(',')
			}
			if err := modelValue(b, dec); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		_, err = dec.Token()
		return err
	case string:
		b.WriteString(modelString(v))
	case nil:
		b.WriteString("null")
	default: // json.Number prints as it was written
		fmt.Fprint(b, v)
	}
	return nil
}

func modelObject(b *strings.Builder, dec *json.Decoder) error {
	members := map[string]string{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value strings.Builder
		if err := modelValue(&value, dec); err != nil {
			return err
		}
		if _, ok := members[key.(string)]; ok {
			return errModel
		}
		members[key.(string)] = value.String()
	}
	b.WriteByte('{')
	for i, key := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(modelString(key) + ":" + members[key])
	}
	b.WriteByte('}')
	_, err := dec.Token()
	return err
}

func modelString(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case strings.ContainsRune("\b\f\n\r\t\"\\", r):
			quoted := strconv.Quote(string(r)) // the same letters as in JSON
			b.WriteString(quoted[1 : len(quoted)-1])
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}
