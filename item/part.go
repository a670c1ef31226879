package item

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// A PartType says what a content part is.
type PartType string

// The types of content parts in messages, tool outputs and reasoning. PartText is what the Conversations API may store.
const (
	PartInputText     PartType = "input_text"
	PartInputImage    PartType = "input_image"
	PartInputFile     PartType = "input_file"
	PartOutputText    PartType = "output_text"
	PartText          PartType = "text"
	PartRefusal       PartType = "refusal"
	PartSummaryText   PartType = "summary_text"
	PartReasoningText PartType = "reasoning_text"
)

// A Part is one content part of a message or of a tool output, kept as its bytes like an [Item]: parts of unknown type and
// unknown members survive. It is immutable and comparable. The zero Part is no part: constructors leave it out.
type Part struct{ raw string }

// ParsePart returns the content part in raw, under the rules of [Parse]. The error wraps [ErrInvalid].
func ParsePart(raw []byte) (Part, error) {
	it, err := Parse(raw)
	return Part(it), err
}

// Raw returns the bytes of the part.
func (p Part) Raw() string { return p.raw }

// String returns the bytes of the part, for printing.
func (p Part) String() string { return p.raw }

// Equal reports whether the parts are the same bytes. It is what == says, under the name that go-cmp looks for.
func (p Part) Equal(other Part) bool { return p == other }

// Type returns the part's type, "" if it has none.
func (p Part) Type() PartType { return PartType(textMember(p.raw, "type")) }

// Text returns the text of a text part (input_text, output_text, text, summary_text, reasoning_text), "" for any other part.
func (p Part) Text() string {
	var t, value string
	err := jsonscan.Object(p.raw, func(key, v string) error {
		switch key {
		case "type":
			t = textOrEmpty(v)
		case "text":
			value = v
		}
		return nil
	})
	if err != nil {
		return ""
	}
	switch PartType(t) {
	case PartInputText, PartOutputText, PartText, PartSummaryText, PartReasoningText:
		return textOrEmpty(value)
	}
	return ""
}

// Refusal returns the words of a refusal part, "" for any other part.
func (p Part) Refusal() string {
	if p.Type() != PartRefusal {
		return ""
	}
	return textMember(p.raw, "refusal")
}

// An Image is what an input_image part shows. Give URL or FileID.
type Image struct {
	URL    string // of the image, or the image itself as a data URL
	FileID string // of an uploaded file
	Detail string // "low", "high", "original" or "auto", which "" leaves to the API
}

// Image returns the image of an input_image part; ok is false for any other part.
func (p Part) Image() (img Image, ok bool) {
	var t string
	err := jsonscan.Object(p.raw, func(key, value string) error {
		switch key {
		case "type":
			t = textOrEmpty(value)
		case "image_url":
			img.URL = textOrEmpty(value)
		case "file_id":
			img.FileID = textOrEmpty(value)
		case "detail":
			img.Detail = textOrEmpty(value)
		}
		return nil
	})
	if err != nil || PartType(t) != PartInputImage {
		return Image{}, false
	}
	return img, true
}

// A File is what an input_file part holds. Give ID, URL, or Data with Name.
type File struct {
	ID     string // of an uploaded file
	URL    string
	Data   string // the content as a base64 data URL
	Name   string
	Detail string // "low", "high" or "auto", which "" leaves to the API
}

// File returns the file of an input_file part; ok is false for any other part.
func (p Part) File() (f File, ok bool) {
	var t string
	err := jsonscan.Object(p.raw, func(key, value string) error {
		switch key {
		case "type":
			t = textOrEmpty(value)
		case "file_id":
			f.ID = textOrEmpty(value)
		case "file_url":
			f.URL = textOrEmpty(value)
		case "file_data":
			f.Data = textOrEmpty(value)
		case "filename":
			f.Name = textOrEmpty(value)
		case "detail":
			f.Detail = textOrEmpty(value)
		}
		return nil
	})
	if err != nil || PartType(t) != PartInputFile {
		return File{}, false
	}
	return f, true
}

// InputText returns {"type":"input_text","text":s}.
func InputText(s string) Part {
	return textPart(PartInputText, s)
}

// OutputText returns {"type":"output_text","text":s}.
func OutputText(s string) Part {
	return textPart(PartOutputText, s)
}

func textPart(t PartType, s string) Part {
	o := newObject(len(s))
	o.text("type", string(t))
	o.text("text", s)
	return Part{o.close()}
}

// InputImage returns an input_image part with those members of img that are not empty.
func InputImage(img Image) Part {
	o := newObject(len(img.URL))
	o.text("type", string(PartInputImage))
	o.optionalText("image_url", img.URL)
	o.optionalText("file_id", img.FileID)
	o.optionalText("detail", img.Detail)
	return Part{o.close()}
}

// InputFile returns an input_file part with those members of f that are not empty.
func InputFile(f File) Part {
	o := newObject(len(f.Data))
	o.text("type", string(PartInputFile))
	o.optionalText("file_id", f.ID)
	o.optionalText("file_url", f.URL)
	o.optionalText("filename", f.Name)
	o.optionalText("file_data", f.Data)
	o.optionalText("detail", f.Detail)
	return Part{o.close()}
}

var errNotObject = errors.New("want an object")

// parts returns the elements of an array of parts.
func parts(value string) ([]Part, error) {
	var list []Part
	err := jsonscan.Array(value, func(element string) error {
		if element[0] != '{' {
			return fmt.Errorf("element %d: %w", len(list), errNotObject)
		}
		list = append(list, Part{element})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// joinText concatenates the texts of all text parts.
func joinText(list []Part) string {
	return join(list, Part.Text)
}

func join(list []Part, text func(Part) string) string {
	if len(list) == 1 {
		return text(list[0])
	}
	var b strings.Builder
	for _, p := range list {
		b.WriteString(text(p))
	}
	return b.String()
}
