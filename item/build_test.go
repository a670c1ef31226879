package item_test

import (
	"testing"

	"github.com/pawl-agents/pawl/item"
)

func TestConstructors(t *testing.T) {
	program := item.FunctionCall{CallID: "c1", Caller: `{"type":"program","caller_id":"p1"}`}
	tests := []struct {
		got  item.Item
		want string
	}{
		{item.UserText("hi"), `{"role":"user","content":"hi"}`},
		{item.UserText(""), `{"role":"user","content":""}`},
		{item.UserText("<b>\"q\"\\\n\x00é\u2028\xff"), `{"role":"user","content":"<b>\"q\"\\\n\u0000é` + "\u2028\uFFFD" + `"}`},
		{item.SystemText("s"), `{"role":"system","content":"s"}`},
		{item.DeveloperText("d"), `{"role":"developer","content":"d"}`},
		{item.AssistantText("a"), `{"role":"assistant","content":"a"}`},
		{item.UserMessage(), `{"role":"user","content":[]}`},
		{
			item.UserMessage(item.Part{}, item.InputText("what is this?"), item.Part{}, item.InputImage(item.Image{URL: "https://example.org/a.png"})),
			`{"role":"user","content":[{"type":"input_text","text":"what is this?"},{"type":"input_image","image_url":"https://example.org/a.png"}]}`,
		},
		{item.FunctionOutput("c1", "sunny"), `{"type":"function_call_output","call_id":"c1","output":"sunny"}`},
		{item.FunctionOutput("", ""), `{"type":"function_call_output","call_id":"","output":""}`},
		{item.FunctionOutputParts("c1", item.InputText("a")),
			`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a"}]}`},
		{item.FunctionOutputParts("c1"), `{"type":"function_call_output","call_id":"c1","output":[]}`},
		{program.Output("o"),
			`{"type":"function_call_output","call_id":"c1","output":"o","caller":{"type":"program","caller_id":"p1"}}`},
		{program.OutputParts(item.InputText("o")),
			`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"o"}],"caller":{"type":"program","caller_id":"p1"}}`},
		{item.FunctionCall{CallID: "c1", Caller: `"},"evil":{"`}.Output("o"), `{"type":"function_call_output","call_id":"c1","output":"o"}`},
		{item.FunctionCall{CallID: "c1", Caller: `[]`}.Output("o"), `{"type":"function_call_output","call_id":"c1","output":"o"}`},
		{item.CustomOutput("c1", "o"), `{"type":"custom_tool_call_output","call_id":"c1","output":"o"}`},
		{item.CustomToolCall{CallID: "c1", Caller: `{"type":"direct"}`}.OutputParts(item.InputText("o")),
			`{"type":"custom_tool_call_output","call_id":"c1","output":[{"type":"input_text","text":"o"}],"caller":{"type":"direct"}}`},
		{item.ApprovalReply("mcpr_1", true, ""), `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`},
		{item.ApprovalReply("mcpr_1", false, "too dear"),
			`{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false,"reason":"too dear"}`},
		{item.FunctionCallItem("fc_1", "c1", "refund", `{"order":9}`),
			`{"type":"function_call","id":"fc_1","call_id":"c1","name":"refund","arguments":"{\"order\":9}","status":"completed"}`},
		{item.FunctionCallItem("", "c1", "refund", ""),
			`{"type":"function_call","call_id":"c1","name":"refund","arguments":"","status":"completed"}`},
		{item.MessageItem("msg_1", "hi"),
			`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}]}`},
		{item.ReasoningItem("rs_1", "because"),
			`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"because"}]}`},
		{item.ReasoningItem("rs_1", ""), `{"type":"reasoning","id":"rs_1","summary":[]}`},
	}
	for _, tt := range tests {
		if tt.got.Raw() != tt.want {
			t.Errorf("got  %s\nwant %s", tt.got, tt.want)
		}
		if parsed := mustParse(t, tt.got.Raw()); parsed != tt.got {
			t.Errorf("%s parses as %s", tt.got, parsed)
		}
	}
}

func TestParts(t *testing.T) {
	image := item.Image{URL: "data:image/png;base64,AA==", FileID: "file-1", Detail: "high"}
	file := item.File{ID: "file-1", URL: "https://example.org/a.pdf", Data: "data:application/pdf;base64,AA==", Name: "a.pdf", Detail: "low"}
	tests := []struct {
		part          item.Part
		raw           string
		typ           item.PartType
		text, refusal string
		image         item.Image
		file          item.File
	}{
		{part: item.InputText("a\"b"), raw: `{"type":"input_text","text":"a\"b"}`, typ: item.PartInputText, text: "a\"b"},
		{part: item.OutputText("x"), raw: `{"type":"output_text","text":"x"}`, typ: item.PartOutputText, text: "x"},
		{part: item.InputImage(image), typ: item.PartInputImage, image: image,
			raw: `{"type":"input_image","image_url":"data:image/png;base64,AA==","file_id":"file-1","detail":"high"}`},
		{part: item.InputImage(item.Image{}), raw: `{"type":"input_image"}`, typ: item.PartInputImage},
		{part: item.InputFile(file), typ: item.PartInputFile, file: file,
			raw: `{"type":"input_file","file_id":"file-1","file_url":"https://example.org/a.pdf","filename":"a.pdf",` +
				`"file_data":"data:application/pdf;base64,AA==","detail":"low"}`},
		{part: mustPart(t, ` {"refusal":"no","type":"refusal","text":"not this"} `), typ: item.PartRefusal, refusal: "no",
			raw: `{"refusal":"no","type":"refusal","text":"not this"}`},
		{part: mustPart(t, `{"type":"text","text":"t"}`), typ: item.PartText, text: "t", raw: `{"type":"text","text":"t"}`},
		{part: mustPart(t, `{"type":"summary_text","text":"t"}`), typ: item.PartSummaryText, text: "t", raw: `{"type":"summary_text","text":"t"}`},
		{part: mustPart(t, `{"type":"reasoning_text","text":"t"}`), typ: item.PartReasoningText, text: "t", raw: `{"type":"reasoning_text","text":"t"}`},
		{part: mustPart(t, `{"type":"input_audio", "text":"t","image_url":"i"}`), typ: "input_audio", raw: `{"type":"input_audio", "text":"t","image_url":"i"}`},
		{part: mustPart(t, `{"type":"input_image","image_url":null,"file_id":5}`), typ: item.PartInputImage, raw: `{"type":"input_image","image_url":null,"file_id":5}`},
		{part: mustPart(t, `{}`), raw: `{}`},
		{part: item.Part{}},
	}
	for _, tt := range tests {
		p := tt.part
		if p.Raw() != tt.raw || p.String() != tt.raw || p.Type() != tt.typ || p.Text() != tt.text || p.Refusal() != tt.refusal {
			t.Errorf("%s: Type %q, Text %q, Refusal %q, want %s: %q, %q, %q", p, p.Type(), p.Text(), p.Refusal(), tt.raw, tt.typ, tt.text, tt.refusal)
		}
		if img, ok := p.Image(); img != tt.image || ok != (tt.typ == item.PartInputImage) {
			t.Errorf("%s: Image() = %+v, %v, want %+v", p, img, ok, tt.image)
		}
		if f, ok := p.File(); f != tt.file || ok != (tt.typ == item.PartInputFile) {
			t.Errorf("%s: File() = %+v, %v, want %+v", p, f, ok, tt.file)
		}
	}
	if _, err := item.ParsePart([]byte(`"text"`)); message(err) != "pawl: not a conversation item: want a JSON object" {
		t.Errorf("ParsePart of a string: %v", err)
	}
}
