package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/openai/openai-go/v3/option"

	"github.com/pawl-agents/pawl/model"
)

// responses is one model over the Responses API.
type responses struct {
	client *Client
	name   string
}

var (
	_ model.Model              = (*responses)(nil)
	_ model.ConversationReader = (*responses)(nil)
)

// Responses returns the model of that name. It streams when asked to, continues stored responses and conversations, and is a
// [model.ConversationReader]. An empty name means that none is chosen: requests name the model of their stored prompt.
func (c *Client) Responses(name string) model.Model { return &responses{client: c, name: name} }

// Info implements model.Model.
func (m *responses) Info() model.Info {
	return model.Info{Provider: "openai", Name: m.name, UniqueCallIDs: true, ServerState: true, ServerPrompts: true}
}

// Call implements model.Model.
func (m *responses) Call(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
	if req == nil || req.Static == nil {
		return nil, refused(errors.New("a request needs its static part"))
	}
	body, err := m.body(req, emit != nil)
	if err != nil {
		return nil, refused(err)
	}
	settings := req.Static.Settings
	if settings == nil {
		settings = &model.Settings{}
	}
	a := &attempt{
		body:      body.Text,
		opts:      append(headerOptions(settings.ExtraHeaders), optionsOf(settings.ExtraQuery, option.WithQuery)...),
		keepUsage: settings.PreserveRawUsage,
	}
	var res *model.Response
	if emit != nil {
		res, err = m.client.stream(ctx, a, emit)
	} else {
		res, err = m.client.block(ctx, a)
	}
	// After an error somebody may still hold the request, for example to print it.
	if err == nil && a.sent.written.Load() {
		body.Done()
	}
	return res, err
}

// attempt is one request for a response.
type attempt struct {
	body      []byte
	opts      []option.RequestOption
	keepUsage bool
	sent      transmission
}

func (c *Client) send(ctx context.Context, a *attempt) (*http.Response, error) {
	return c.do(ctx, &a.sent, http.MethodPost, responsesPath, a.body, a.opts...)
}

const responsesPath = "responses"

// block makes one call that answers with the whole response.
func (c *Client) block(ctx context.Context, a *attempt) (*model.Response, error) {
	res, err := c.send(ctx, a)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := readBody(res)
	if err != nil {
		return nil, answerCut(ctx, res, err)
	}
	if len(data) > MaxResponseSize {
		return nil, malformed(res, errTooLarge)
	}
	response, err := parseResponse(data, a.keepUsage)
	switch {
	case err != nil:
		return nil, malformed(res, err)
	case !response.hasOutput && (response.status == "" || response.status == "completed"):
		return nil, malformed(res, errors.New("no output in it"))
	}
	return response.result(res)
}

var errTooLarge = fmt.Errorf("more than %d bytes", MaxResponseSize)

// answerCut is the error of an answer whose body broke off.
func answerCut(ctx context.Context, res *http.Response, cause error) *model.Error {
	e := transportError(ctx, cause, false)
	e.Status = res.StatusCode
	e.RequestID = res.Header.Get(requestIDHeader)
	return e
}
