package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/openai/openai-go/v3/option"
)

// sameRequest is the request for a response: URL, headers and credentials. The library makes it anew for every call, which
// takes longer than all else that the client's side of a call does. Where nobody but the client's options has a say in it, it
// is made once and sent with one body after the other.
type sameRequest struct {
	client option.HTTPClient // does not change the request

	once    sync.Once
	request *http.Request // without a body
	err     error
}

// errMade ends the call in which the request was made.
var errMade = errors.New("the request was made")

// send sends the request with a body.
func (s *sameRequest) send(ctx context.Context, execute execute, body []byte) (*http.Response, error) {
	s.once.Do(func() {
		keep := func(req *http.Request, _ option.MiddlewareNext) (*http.Response, error) {
			s.request = req
			return nil, errMade
		}
		err := execute(context.Background(), http.MethodPost, responsesPath, []byte{}, nil, option.WithMiddleware(keep))
		if s.request == nil {
			s.err = err
		}
	})
	if s.err != nil {
		return nil, s.err
	}
	req := s.request.WithContext(ctx)
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return prepare(req, s.client.Do)
}
