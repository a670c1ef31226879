package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/pawl-agents/pawl/model"
)

// Options configure a [Client].
type Options struct {
	// APIKey is sent as a bearer token. It may be empty for a server at BaseURL that wants none.
	APIKey string
	// BaseURL is where the API's paths start, by default "https://api.openai.com/v1".
	BaseURL string
	// Organization and Project are sent as the headers OpenAI-Organization and OpenAI-Project if not empty.
	Organization string
	Project      string
	// Headers are sent with every request. Settings.ExtraHeaders win over them.
	Headers map[string]string
	// HTTPClient sends the requests. By default the client has one of its own, with the settings of
	// http.DefaultTransport, a larger buffer for what it writes, and as many idle connections to the server as there were
	// requests at once, up to 256; it follows no redirects.
	HTTPClient *http.Client
	// RequestOptions are options of the official client library, applied after all of the above: middleware,
	// workload identity, Azure endpoints. Its retries stay off whatever they say.
	RequestOptions []option.RequestOption
}

// Client holds what requests to one server have in common. Any number of goroutines may use it.
type Client struct {
	execute execute
	// same is set if every request of the client is the same but for its body.
	same *sameRequest
	// invalid is why the options cannot be used; every call returns it.
	invalid error
}

// execute is the one method of the official client that is used. The client itself stays out of our types: its services and
// their pages would be compiled again in every package that names one of ours.
type execute func(ctx context.Context, method, path string, params, res any, opts ...option.RequestOption) error

// New returns a client. Options that cannot be used are reported by the first call, before anything is sent.
func New(opts Options) *Client {
	sender, own := httpClient(opts.HTTPClient)
	requestOptions := []option.RequestOption{
		option.WithEnvironmentProduction(),
		option.WithHTTPClient(sender),
		option.WithMiddleware(prepare),
	}
	add := func(value string, build func(string) option.RequestOption) {
		if value != "" {
			requestOptions = append(requestOptions, build(value))
		}
	}
	add(opts.BaseURL, option.WithBaseURL)
	add(opts.APIKey, option.WithAPIKey)
	add(opts.Organization, option.WithOrganization)
	add(opts.Project, option.WithProject)
	requestOptions = append(requestOptions, headerOptions(opts.Headers)...)
	requestOptions = append(requestOptions, opts.RequestOptions...)
	requestOptions = append(requestOptions, option.WithMaxRetries(0))
	// A literal, because the library's constructor reads the environment.
	api := &openaigo.Client{Options: requestOptions}
	c := &Client{execute: api.Execute, invalid: opts.problem()}
	if own && len(opts.RequestOptions) == 0 {
		c.same = &sameRequest{client: sender}
	}
	return c
}

// FromEnv returns the options that the environment holds: OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_ORG_ID and
// OPENAI_PROJECT_ID, the names the official libraries use.
func FromEnv() Options {
	return Options{
		APIKey:       os.Getenv("OPENAI_API_KEY"),
		BaseURL:      os.Getenv("OPENAI_BASE_URL"),
		Organization: os.Getenv("OPENAI_ORG_ID"),
		Project:      os.Getenv("OPENAI_PROJECT_ID"),
	}
}

// Responses returns the model of that name with a client of its own that is configured from the environment: it is short for
// New(FromEnv()).Responses(name). Models that should share connections share a [Client] instead.
func Responses(name string) model.Model { return New(FromEnv()).Responses(name) }

// Check returns why the options cannot be used, nil if they can: no key for OpenAI's own server, a BaseURL that is no
// address, a header that HTTP does not allow. Nothing is sent. A program that calls it at its start need not wait for the
// first model call, which returns the same.
func (o Options) Check() error {
	if err := o.problem(); err != nil {
		return fmt.Errorf("pawl: openai: %w", err)
	}
	return nil
}

func (o *Options) problem() error {
	if o.BaseURL != "" {
		base, err := url.Parse(o.BaseURL)
		if err != nil {
			return fmt.Errorf("base URL: %w", err)
		}
		if base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
			return fmt.Errorf("base URL %q is not an http or https URL", o.BaseURL)
		}
	}
	if err := checkHeaders(o.Headers); err != nil {
		return err
	}
	authorized := o.APIKey != "" || hasHeader(o.Headers, "Authorization") || len(o.RequestOptions) > 0
	if o.BaseURL == "" && !authorized {
		return errors.New("no API key: set Options.APIKey, or OPENAI_API_KEY for a client made from the environment")
	}
	return nil
}

// httpClient returns what sends the requests, and whether that is a transport of net/http that nobody else has.
func httpClient(given *http.Client) (client option.HTTPClient, own bool) {
	if given != nil {
		return given, false
	}
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // replaced by the application, which then knows what it wants
		return oneRequest{http.DefaultTransport}, false
	}
	transport := standard.Clone()
	transport.MaxIdleConnsPerHost = 256 // not 2: runs are many and go to one host
	transport.MaxIdleConns = 0
	transport.WriteBufferSize = 32 << 10 // a request has a history in it; net/http copies what does not fit through another 32 kB
	return oneRequest{transport}, true
}

// oneRequest sends a request once and as it is. An http.Client would follow a redirect, and turn the request into a GET on the
// way or send it twice.
type oneRequest struct{ http.RoundTripper }

func (t oneRequest) Do(req *http.Request) (*http.Response, error) { return t.RoundTrip(req) }

// prepare is the outermost middleware of every request.
func prepare(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	if req.GetBody != nil {
		// The library wraps the body, which hides from net/http that it is in memory and costs a packet of its own for
		// the headers (https://github.com/golang/go/issues/22088).
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		req.Body = body
	}
	if hasKey(req.Header, "Idempotency-Key") || hasKey(req.Header, "X-Idempotency-Key") {
		req.GetBody = nil // net/http would take the header as leave to send a second time
	}
	res, err := next(req)
	if err == nil && res.StatusCode >= http.StatusBadRequest {
		res.Body = &boundedBody{ReadCloser: res.Body, left: maxErrorSize} // the library reads all of it
	}
	return res, err
}

func hasKey(h http.Header, canonical string) bool { _, ok := h[canonical]; return ok }

// maxErrorSize is how much of an error's body is read, in bytes.
const maxErrorSize = 1 << 20

// boundedBody is a body that ends after left bytes.
type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// do sends one request and returns the answer if its status is 2xx; the caller closes its body. Every error is a
// *model.Error. A nil body is none. Of the library's ways in, Execute with bytes for the request and the HTTP response for the
// result costs least and changes nothing; its services encode their own parameters even when the body is given.
func (c *Client) do(
	ctx context.Context, sent *transmission, method, path string, body []byte, opts ...option.RequestOption,
) (*http.Response, error) {
	if c.invalid != nil {
		return nil, refused(c.invalid)
	}
	var params any
	if body != nil {
		params = body
	}
	var res *http.Response
	var err error
	if c.same != nil && path == responsesPath && len(opts) == 0 {
		res, err = c.same.send(sent.watch(ctx), c.execute, body)
	} else {
		err = c.execute(sent.watch(ctx), method, path, params, &res, opts...)
	}
	if res != nil && (res.StatusCode < 200 || res.StatusCode > 299) {
		return nil, httpError(res)
	}
	if err != nil {
		return nil, transportError(ctx, err, sent.neverLeft())
	}
	return res, nil
}
