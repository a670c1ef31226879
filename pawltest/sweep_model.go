package pawltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

// sweptModel is the model as a process of a scenario sees it. It answers by what a request holds, so a repeated request gets
// the answer again, under another id.
type sweptModel struct {
	world  *World
	script string // the name of its script, empty for Scenario.Script
}

var (
	_ model.Model              = sweptModel{}
	_ model.ConversationReader = sweptModel{}
)

func (m sweptModel) Info() model.Info {
	return model.Info{Provider: "pawltest", Name: "swept", UniqueCallIDs: m.world.stage.scenario.UniqueCallIDs, ServerState: true}
}

func (m sweptModel) ConversationTail(_ context.Context, id string, limit int) ([]item.Item, error) {
	if err := m.world.alive(); err != nil {
		return nil, err
	}
	f := m.world.stage.far
	f.mu.Lock()
	defer f.mu.Unlock()
	items := f.conversations[id]
	return slices.Clone(items[max(0, len(items)-limit):]), nil
}

func (m sweptModel) Call(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
	w, f := m.world, m.world.stage.far
	if m.script != "" {
		time.Sleep(pace(m.script)) // agents may be asked side by side
		if err := ctx.Err(); err != nil {
			return nil, &model.Error{Delivery: model.DeliveryRefused, Err: err}
		}
	}
	taken := 0
	number := f.request()
	err := w.at(ModelRequest, fmt.Sprintf("request %d", number), func() error {
		taken++
		if taken == 1 && req.ConversationID == "" {
			f.act(req.Input.Items(), m.mayForget())
		}
		return nil
	})
	switch {
	case errors.Is(err, errAckLost):
		return nil, &model.Error{Retryable: true, Err: fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)}
	case err != nil:
		return nil, &model.Error{Status: http.StatusServiceUnavailable, Retryable: true, Delivery: model.DeliveryRefused, Err: err}
	}
	s, whole, err := f.step(m.script, req)
	if err != nil {
		f.problem("%v", err)
		return nil, &model.Error{Delivery: model.DeliveryRefused, Err: err}
	}
	one := &ScriptedModel{Name: "swept", ServerState: true, Usage: &model.Usage{InputTokens: 100, OutputTokens: 10, TotalTokens: 110}}
	if s.ResponseID == "" && !s.NoResponseID {
		s.ResponseID = fmt.Sprintf("resp_%d", number)
	}
	one.Enqueue(s)
	var cut error
	res, err := one.Call(ctx, req, m.emitter(emit, number, &cut))
	accept := func() error {
		if req.ConversationID != "" { // what it takes into a conversation and what it does are one
			f.act(req.Input.Items(), m.mayForget())
		}
		for range taken {
			f.accept(m.script, req, whole, res)
		}
		return nil
	}
	switch {
	case cut != nil:
		if errors.Is(cut, errAckLost) { // the server went on to the end
			res = &model.Response{ID: s.ResponseID, Items: s.Output}
			_ = accept()
		}
		return nil, &model.Error{Retryable: true, Err: fmt.Errorf("%w: %w", model.ErrStreamCut, cut)}
	case err != nil:
		return nil, err
	}
	if err := w.at(ModelAcceptance, fmt.Sprintf("answer to request %d", number), accept); err != nil {
		return nil, &model.Error{Retryable: true, Err: fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)}
	}
	return res, nil
}

// emitter shows each event at a boundary of its own. What cuts the stream is in *cut.
func (m sweptModel) emitter(emit func(*model.Event) bool, number int, cut *error) func(*model.Event) bool {
	if emit == nil {
		return nil
	}
	n := 0
	return func(ev *model.Event) bool {
		n++
		more := true
		*cut = m.world.at(ModelEvent, fmt.Sprintf("request %d, event %d, %s", number, n, ev.Type), func() error {
			more = more && emit(ev)
			return nil
		})
		return more && *cut == nil
	}
}

// request counts a request.
func (f *far) request() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	return f.requests
}

// step finds the step of the script that answers a request, by the steps whose output it holds already. It returns the whole
// conversation too. A request that no model server would take is an error.
func (f *far) step(name string, req *model.Request) (step ScriptedStep, whole []item.Item, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	script, n := f.scripts[name], 0
	whole, err = f.before(req)
	if err != nil {
		return step, nil, err
	}
	whole = append(whole, req.Input.Items()...)
	if problems := Unpaired(whole); len(problems) > 0 {
		return step, nil, fmt.Errorf("G2: the model was sent: %s", problems[0])
	}
	for _, it := range whole {
		if n < len(script) && len(script[n].Output) > 0 && sameItem(it, script[n].Output[0]) {
			n++
		}
	}
	if n == len(script) {
		return step, nil, fmt.Errorf("the model was asked beyond its script of %d steps, with:\n%s", n, lines(whole))
	}
	return script[n], whole, nil
}

// before returns what the server holds of the conversation that a request goes on with.
func (f *far) before(req *model.Request) ([]item.Item, error) {
	switch {
	case req.ConversationID != "":
		return slices.Clone(f.conversations[req.ConversationID]), nil
	case req.PreviousResponseID != "":
		items, ok := f.responses[req.PreviousResponseID]
		if !ok {
			return nil, fmt.Errorf("the model was sent the unknown response id %q", req.PreviousResponseID)
		}
		return slices.Clone(items), nil
	}
	return nil, nil
}

// mayForget says that the process knows nothing of what another one did since the last document was saved.
func (m sweptModel) mayForget() bool {
	p := m.world.stage.point
	return p.carrier == byJSON && p.fault.crashes()
}

// act notes what the server does because a request approves it: the call of a hosted tool, if the approval stands behind
// all that a model said. Whoever knows of the request sends no approval a second time.
func (f *far) act(input []item.Item, forgiven bool) {
	for _, it := range slices.Backward(input) {
		if h := it.Head(); !item.IsOutput(h.Type) && h.Role != "user" {
			return
		}
		if a, err := it.ApprovalResponse(); err == nil && a.Approve {
			f.mu.Lock()
			f.acted[a.RequestID]++
			twice := f.acted[a.RequestID] > 1 && !forgiven
			f.mu.Unlock()
			if twice {
				f.problem("G1: the server has acted twice on the approval of %s", a.RequestID)
			}
		}
	}
}

// accept keeps a response.
func (f *far) accept(script string, req *model.Request, whole []item.Item, res *model.Response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	whole = append(slices.Clip(whole), res.Items...)
	for _, it := range res.Items {
		if id := it.Head().CallID; id != "" && f.ranks[id] == 0 {
			f.ranks[id] = len(f.ranks) + 1
		}
	}
	f.accepted++
	f.wires[script] = whole
	if f.conversing[script] {
		f.wire = whole
	}
	if res.ID != "" {
		f.responses[res.ID] = whole
	}
	if req.ConversationID != "" {
		f.conversations[req.ConversationID] = whole
	}
}
