package item

// A FunctionCall is the view of an item of [TypeFunctionCall].
type FunctionCall struct {
	ID        string // of the item
	CallID    string // chosen by the model or its server; repeats across turns are known, so it is no identity
	Name      string
	Namespace string // of the tool, "" if it has none
	Arguments string // as the model wrote them: usually JSON, never checked here ([Canonical] does)
	Status    string
	Caller    string // raw JSON object that says which program made the call, "" for the model itself
}

// FunctionCall returns the view of a function call. Members that the call lacks are "", required ones too. The error wraps
// [ErrWrongType] or [ErrMalformed].
func (it Item) FunctionCall() (FunctionCall, error) {
	var c FunctionCall
	err := it.view(TypeFunctionCall, func(key, value string) (err error) {
		switch key {
		case "id":
			c.ID, err = text(value)
		case "call_id":
			c.CallID, err = text(value)
		case "name":
			c.Name, err = text(value)
		case "namespace":
			c.Namespace, err = text(value)
		case "arguments":
			c.Arguments, err = text(value)
		case "status":
			c.Status, err = text(value)
		case "caller":
			c.Caller = nonNull(value)
		}
		return err
	})
	if err != nil {
		return FunctionCall{}, err
	}
	return c, nil
}

// A CustomToolCall is the view of an item of [TypeCustomToolCall], a call whose input is free text.
type CustomToolCall struct {
	ID        string // of the item
	CallID    string
	Name      string
	Namespace string // of the tool, "" if it has none
	Input     string
	Status    string
	Caller    string // as in [FunctionCall]
}

// CustomToolCall returns the view of a custom tool call. The error wraps [ErrWrongType] or [ErrMalformed].
func (it Item) CustomToolCall() (CustomToolCall, error) {
	var c CustomToolCall
	err := it.view(TypeCustomToolCall, func(key, value string) (err error) {
		switch key {
		case "id":
			c.ID, err = text(value)
		case "call_id":
			c.CallID, err = text(value)
		case "name":
			c.Name, err = text(value)
		case "namespace":
			c.Namespace, err = text(value)
		case "input":
			c.Input, err = text(value)
		case "status":
			c.Status, err = text(value)
		case "caller":
			c.Caller = nonNull(value)
		}
		return err
	})
	if err != nil {
		return CustomToolCall{}, err
	}
	return c, nil
}

// A ToolOutput is what a call was answered with: plain text, or a list of parts.
type ToolOutput struct {
	ID     string // of the item, given by the server
	CallID string
	Status string
	Text   string // the output; of a list, the concatenation of its text parts
	Parts  []Part // nil if the output is plain text
}

// FunctionCallOutput returns the view of the output of a function call. The error wraps [ErrWrongType] or [ErrMalformed].
func (it Item) FunctionCallOutput() (ToolOutput, error) {
	return it.toolOutput(TypeFunctionCallOutput)
}

// CustomToolCallOutput returns the view of the output of a custom tool call. The error wraps [ErrWrongType] or [ErrMalformed].
func (it Item) CustomToolCallOutput() (ToolOutput, error) {
	return it.toolOutput(TypeCustomToolCallOutput)
}

func (it Item) toolOutput(want Type) (ToolOutput, error) {
	var out ToolOutput
	err := it.view(want, func(key, value string) (err error) {
		switch key {
		case "id":
			out.ID, err = text(value)
		case "call_id":
			out.CallID, err = text(value)
		case "status":
			out.Status, err = text(value)
		case "output":
			out.Text, out.Parts, err = textOrParts(value)
		}
		return err
	})
	if err != nil {
		return ToolOutput{}, err
	}
	return out, nil
}

func textOrParts(value string) (string, []Part, error) {
	if value[0] != '[' {
		s, err := text(value)
		return s, nil, err
	}
	list, err := parts(value)
	if err != nil {
		return "", nil, err
	}
	return joinText(list), list, nil
}
