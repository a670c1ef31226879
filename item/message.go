package item

import "github.com/pawl-agents/pawl/internal/jsonscan"

// A Message is the view of an item of [TypeMessage], in any of the API's forms.
type Message struct {
	ID     string
	Role   string // "user", "assistant", "system" or "developer"
	Status string
	Phase  string // "commentary" or "final_answer" where the model says so
	// Content holds the parts in order. Content that is a plain string is one part: output_text in a message of the assistant,
	// input_text in any other.
	Content []Part
}

// Message returns the view of a message. The error wraps [ErrWrongType] or [ErrMalformed].
func (it Item) Message() (Message, error) {
	var (
		m       Message
		content string
	)
	err := it.view(TypeMessage, func(key, value string) (err error) {
		switch key {
		case "id":
			m.ID, err = text(value)
		case "role":
			m.Role, err = text(value)
		case "status":
			m.Status, err = text(value)
		case "phase":
			m.Phase, err = text(value)
		case "content":
			content = nonNull(value)
		}
		return err
	})
	if err != nil {
		return Message{}, err
	}
	if m.Content, err = messageParts(m.Role, content); err != nil {
		return Message{}, malformedMember("content", err)
	}
	return m, nil
}

// messageParts returns the parts of a message's content, raw and "" if there is none.
func messageParts(role, content string) ([]Part, error) {
	switch {
	case content == "":
		return nil, nil
	case content[0] != '"':
		return parts(content)
	}
	s := textOrEmpty(content)
	if role == "assistant" {
		return []Part{OutputText(s)}, nil
	}
	return []Part{InputText(s)}, nil
}

// Text returns the concatenation of the texts of all text parts.
func (m Message) Text() string { return joinText(m.Content) }

// Refusal returns the concatenation of the words of all refusal parts, "" if the model did not refuse.
func (m Message) Refusal() string { return join(m.Content, Part.Refusal) }

// Reasoning is the view of an item of [TypeReasoning].
type Reasoning struct {
	ID               string
	Status           string
	Summary          []string // the text of each summary part
	Content          []string // the text of each content part, where the provider shows the reasoning itself
	EncryptedContent string   // opaque; what makes the item of use without the server's store
}

// Reasoning returns the view of a reasoning item. The error wraps [ErrWrongType] or [ErrMalformed].
func (it Item) Reasoning() (Reasoning, error) {
	var r Reasoning
	err := it.view(TypeReasoning, func(key, value string) (err error) {
		switch key {
		case "id":
			r.ID, err = text(value)
		case "status":
			r.Status, err = text(value)
		case "summary":
			r.Summary, err = texts(value)
		case "content":
			r.Content, err = texts(value)
		case "encrypted_content":
			r.EncryptedContent, err = text(value)
		}
		return err
	})
	if err != nil {
		return Reasoning{}, err
	}
	return r, nil
}

// texts returns the text of each part of an array of parts.
func texts(value string) ([]string, error) {
	if jsonscan.IsNull(value) {
		return nil, nil
	}
	list, err := parts(value)
	if err != nil || list == nil {
		return nil, err
	}
	s := make([]string, len(list))
	for i, p := range list {
		s[i] = p.Text()
	}
	return s, nil
}
