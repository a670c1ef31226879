package agentfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-agents/pawl"
)

func alwaysAsk(context.Context, *pawl.Call) (pawl.Gate, error) { return pawl.Ask, nil }

// maxOutput bounds what a tool may answer.
const maxOutput = 1 << 20

var errTooLong = fmt.Errorf("it answered with more than %d bytes", maxOutput)

// command is a tool that is a program: it reads the arguments from its input and answers with its output.
type command struct {
	argv []string
	dir  string
}

// patience is how long a program may take to end once it is told to.
const patience = 3 * time.Second

func (c command) run(ctx context.Context, call *pawl.Call) (string, error) {
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "PAWL_KEY="+call.Key, "PAWL_RUN="+call.Run, "PAWL_TOOL="+call.Tool, "PAWL_ATTEMPT="+strconv.Itoa(call.Attempt))
	cmd.Stdin = strings.NewReader(call.Arguments)
	stdout, stderr := &limited{max: maxOutput}, &limited{max: 2000, cut: true}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	apart(cmd)
	cmd.WaitDelay = patience
	err := cmd.Run()
	if ctx.Err() != nil {
		endAll(cmd)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it has ended well, and what it left running keeps its output open
	}
	switch {
	case stdout.full:
		return "", errTooLong
	case err != nil && ctx.Err() != nil:
		return "", errors.Join(ctx.Err(), err)
	case cmd.ProcessState != nil && !cmd.ProcessState.Exited(): // killed in the middle of it
		return "", fmt.Errorf("%s: %w: %w: %s", c.argv[0], pawl.ErrOutcomeUnknown, err, strings.TrimSpace(stderr.buf.String()))
	case err != nil:
		return "", fmt.Errorf("%s: %w: %s", c.argv[0], err, strings.TrimSpace(stderr.buf.String()))
	}
	return strings.TrimSuffix(stdout.buf.String(), "\n"), nil
}

// limited keeps so many bytes. More are an error, or cut off.
type limited struct {
	buf  bytes.Buffer
	max  int
	cut  bool
	full bool
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.max - l.buf.Len(); len(p) > room {
		l.buf.Write(p[:room])
		if l.full = true; !l.cut {
			return room, errTooLong
		}
		return len(p), nil
	}
	return l.buf.Write(p)
}

// endpoint is a tool that is an HTTP endpoint: it is sent the arguments and answers with its body.
type endpoint struct {
	url     string
	headers http.Header
}

// variable is an environment variable in a header.
var variable = regexp.MustCompile(`\$\{(\w+)\}`)

func (t *Tool) endpoint(env func(string) (string, bool)) (*endpoint, error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("url %q is no http or https URL", t.URL)
	}
	e := &endpoint{t.URL, http.Header{"Content-Type": {"application/json"}}}
	for name, value := range t.Headers {
		var missing string
		e.headers.Set(name, variable.ReplaceAllStringFunc(value, func(v string) string {
			text, ok := env(v[2 : len(v)-1])
			if !ok {
				missing = v
			}
			return text
		}))
		if missing != "" {
			return nil, fmt.Errorf("the environment has no %s, which the header %s has", missing, name)
		}
	}
	return e, nil
}

// client follows no redirects: whoever answers with one has not done what was asked.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func (e *endpoint) run(ctx context.Context, call *pawl.Call) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, strings.NewReader(call.Arguments))
	if err != nil {
		return "", err
	}
	req.Header = e.headers.Clone()
	req.Header.Set("Idempotency-Key", call.Key)
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput+1))
	switch {
	case err != nil:
		return "", err
	case len(body) > maxOutput:
		return "", errTooLong
	case resp.StatusCode == http.StatusBadGateway, resp.StatusCode == http.StatusGatewayTimeout: // said by one on the way, who had no answer
		return "", fmt.Errorf("%w: %s answered %s: %.500s", pawl.ErrOutcomeUnknown, e.url, resp.Status, body)
	case resp.StatusCode/100 != 2:
		return "", fmt.Errorf("%s answered %s: %.500s", e.url, resp.Status, body)
	}
	return string(body), nil
}
