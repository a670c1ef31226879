package openai_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/option"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
)

// received is a request as it came in.
type received struct {
	URI, Host, Body string
	Length          int64
	Header          http.Header
}

func recording(t *testing.T) (base string, list func() []received) {
	var mu sync.Mutex
	var all []received
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		all = append(all, received{r.RequestURI, r.Host, string(body), r.ContentLength, r.Header})
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"resp_1","status":"completed","output":[]}`)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1", func() []received {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// The request that is made once is the one that the library makes for every call.
func TestSameRequest(t *testing.T) {
	base, list := recording(t)
	options := openai.Options{BaseURL: base, APIKey: "sk-1", Organization: "org", Project: "proj", Headers: map[string]string{"X-Team": "a"}}
	once := openai.New(options)
	options.RequestOptions = []option.RequestOption{option.WithMaxRetries(0)}
	anew := openai.New(options)
	for _, c := range []*openai.Client{once, once, anew} {
		req := &model.Request{Static: &model.Static{}, Input: model.NewInput(item.UserText("hello"))}
		if _, err := c.Responses("gpt-5.2").Call(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
	}
	got := list()
	for i, first := range got[:2] {
		if diff := cmp.Diff(got[2], first); diff != "" {
			t.Errorf("request %d (-by the library +sent):\n%s", i, diff)
		}
	}
	if got[0].Header.Get("Authorization") != "Bearer sk-1" || got[0].URI != "/v1/responses" {
		t.Errorf("%+v", got[0])
	}
}

func TestSameRequestFromManyGoroutines(t *testing.T) {
	base, list := recording(t)
	m := openai.New(openai.Options{BaseURL: base}).Responses("gpt-5.2")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 5 {
				req := &model.Request{Static: &model.Static{}, Input: model.NewInput(item.UserText("hello"))}
				if _, err := m.Call(t.Context(), req, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, r := range list() {
		if r.Body != `{"model":"gpt-5.2","input":[{"role":"user","content":"hello"}]}` {
			t.Fatalf("body %s", r.Body)
		}
	}
}
