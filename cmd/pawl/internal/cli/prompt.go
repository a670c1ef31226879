package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/pawl-agents/pawl"
)

// prompter asks the person at the terminal.
type prompter struct {
	screen *screen
	in     io.Reader
	lines  chan string // closed at the end of the input
}

func newPrompter(in io.Reader, s *screen) *prompter { return &prompter{in: in, screen: s} }

// read starts reading lines, once: what was typed ahead is not lost between questions.
func (p *prompter) read() {
	if p.lines != nil {
		return
	}
	p.lines = make(chan string)
	go func() {
		defer close(p.lines)
		sc := bufio.NewScanner(p.in)
		for sc.Scan() {
			p.lines <- strings.TrimSpace(sc.Text())
		}
	}()
}

// ask prints a question and returns the answer, io.EOF at the end of the input.
func (p *prompter) ask(ctx context.Context, question string) (string, error) {
	p.read()
	p.screen.endLine()
	fmt.Fprint(p.screen.w, "  "+p.screen.styled(bold, question)+" ")
	select {
	case <-ctx.Done():
		fmt.Fprintln(p.screen.w)
		return "", ctx.Err()
	case answer, ok := <-p.lines:
		if !ok {
			fmt.Fprintln(p.screen.w)
			return "", io.EOF
		}
		return answer, nil
	}
}

// decide asks what is to become of a call.
func (p *prompter) decide(ctx context.Context, in pawl.Interruption) (pawl.Decision, error) {
	p.screen.line("")
	p.screen.interruption(in)
	switch in.Kind {
	case pawl.External:
		output, err := p.ask(ctx, "What is the result? The model reads it:")
		return pawl.Settle(in.ID, me(), output), err
	case pawl.InDoubt:
		return p.settle(ctx, in)
	}
	for {
		answer, err := p.ask(ctx, "Approve it? [y]es, [n]o, [e]dit:")
		if err != nil {
			return pawl.Decision{}, err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			return pawl.Approve(in.ID, me()), nil
		case "n", "no":
			why, err := p.ask(ctx, "Why not? The model reads it (empty: no reason):")
			return pawl.Reject(in.ID, me(), why), err
		case "e", "edit":
			args, err := p.edit(ctx, in.Arguments)
			return pawl.Edit(in.ID, me(), args), err
		}
	}
}

// settle asks what became of a call in doubt.
func (p *prompter) settle(ctx context.Context, in pawl.Interruption) (pawl.Decision, error) {
	for {
		answer, err := p.ask(ctx, "Did it happen? [y]es, [n]o: run it again, [u]nknown: tell the model:")
		if err != nil {
			return pawl.Decision{}, err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			output, err := p.ask(ctx, "What did it return? The model reads it:")
			return pawl.Settle(in.ID, me(), output), err
		case "n", "no":
			return pawl.Retry(in.ID, me()), nil
		case "u", "unknown":
			return pawl.GiveUp(in.ID, me()), nil
		}
	}
}

// edit asks for each argument; an empty answer keeps it. Arguments that are no object are asked for as a whole.
func (p *prompter) edit(ctx context.Context, arguments string) (string, error) {
	fields, ok := fieldsOf(arguments)
	if !ok {
		return p.ask(ctx, "The arguments, as a JSON object:")
	}
	members := make([]string, len(fields))
	for i, f := range fields {
		value, err := p.editField(ctx, f)
		if err != nil {
			return "", err
		}
		name, _ := json.Marshal(f.name) // a string
		members[i] = string(name) + ":" + value
	}
	return "{" + strings.Join(members, ",") + "}", nil
}

func (p *prompter) editField(ctx context.Context, f field) (string, error) {
	for {
		answer, err := p.ask(ctx, fmt.Sprintf("%s [%s]:", printable(f.name), oneLine(f.value, 60)))
		if err != nil || answer == "" {
			return f.value, err
		}
		if value, ok := valueLike(f.value, answer); ok {
			return value, nil
		}
		p.screen.line("  That is not the kind of value that stands there.")
	}
}

// valueLike reads an answer as JSON of the same kind as the old value. A text needs no quotes.
func valueLike(old, answer string) (string, bool) {
	if strings.HasPrefix(old, `"`) {
		if strings.HasPrefix(answer, `"`) && json.Valid([]byte(answer)) {
			return answer, true
		}
		text, err := json.Marshal(answer)
		return string(text), err == nil
	}
	var was, is any
	if json.Unmarshal([]byte(old), &was) != nil || json.Unmarshal([]byte(answer), &is) != nil {
		return "", false
	}
	return answer, was == nil || reflect.TypeOf(was) == reflect.TypeOf(is)
}

// interruption shows a call that waits.
func (s *screen) interruption(in pawl.Interruption) {
	what := "wants your approval"
	switch in.Kind {
	case pawl.External:
		what = "waits for its result"
	case pawl.InDoubt:
		what = "may have taken effect"
		if in.Note == "" {
			what += ": the process died in the middle of it"
		}
	}
	s.line("  %s %s", s.styled(yellow, printable(in.Tool)), what)
	if in.Note != "" {
		s.line("    %s", oneLine(in.Note, 200))
	}
	fields, ok := fieldsOf(in.Arguments)
	if !ok {
		s.line("    %s", oneLine(in.Arguments, 200))
	}
	width := 0
	for _, f := range fields {
		width = max(width, len(f.name))
	}
	for _, f := range fields {
		s.line("    %-*s  %s", width, printable(f.name), oneLine(f.value, 200))
	}
	if in.Unreadable {
		s.line("    (the tool cannot read these arguments: edit them, or approve to give the model an error)")
	}
}
