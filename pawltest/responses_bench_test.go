package pawltest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/item"
)

// longBody is a stateless request whose history holds the given number of turns, each a call and its output.
func longBody(turns int) string {
	items := []item.Item{item.UserText("go on")}
	for i := range turns {
		id := fmt.Sprint(i)
		args := `{"text":"` + strings.Repeat("a", 200) + `"}`
		items = append(items,
			item.FunctionCallItem("fc_"+id, "call_"+id, "work", args),
			item.FunctionOutput("call_"+id, strings.Repeat("b", 200)))
	}
	return object(nil).str("model", "gpt-test").bool("store", false).raw("input", array(items, item.Item.Raw)).end()
}

// BenchmarkResponsesServer is the server's own time for one request, without a network.
func BenchmarkResponsesServer(b *testing.B) {
	for _, turns := range []int{1, 1000} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			s, err := OpenResponses(&ResponsesOptions{Retain: 1, Respond: func(*ResponsesRequest) ResponsesReply {
				return ReplyText("done")
			}})
			if err != nil {
				b.Fatal(err)
			}
			body := longBody(turns)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/responses", strings.NewReader(body)))
				if w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
