package openai_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
)

// benchServerEnv makes the test binary the server of its own benchmarks, so that their CPU time is the client's alone.
const benchServerEnv = "PAWL_OPENAI_BENCH_SERVER"

const benchResponse = `{"id":"resp_1","object":"response","created_at":1700000000,"status":"completed","error":null,` +
	`"incomplete_details":null,"instructions":"Settle refunds.","model":"gpt-5.2","output":[{"id":"fc_1","type":"function_call",` +
	`"status":"completed","arguments":"{\"order\":\"A-1\",\"cents\":1999}","call_id":"call_1","name":"refund"}],` +
	`"parallel_tool_calls":true,"previous_response_id":null,"store":true,"temperature":1.0,"tool_choice":"auto","tools":[],` +
	`"usage":{"input_tokens":120,"input_tokens_details":{"cached_tokens":0},"output_tokens":18,` +
	`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":138},"metadata":{}}`

// benchStream is a short answer in 20 deltas.
var benchStream = func() string {
	var b strings.Builder
	event := func(kind, members string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, members)
	}
	event("response.created", `"sequence_number":0,"response":`+benchResponse)
	for i := range 20 {
		event("response.output_text.delta", `"sequence_number":`+strconv.Itoa(i+1)+
			`,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" refund","logprobs":[],"obfuscation":"a8Xk2"`)
	}
	event("response.completed", `"sequence_number":21,"response":`+benchResponse)
	return b.String()
}()

func serveBench() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	go func() { // ends with the benchmark
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	panic(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.HasSuffix(body, []byte(`"stream":true}`)) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, benchStream)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, benchResponse)
	})))
}

func startBenchServer(b *testing.B) (base string) {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), benchServerEnv+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + strings.TrimSpace(addr) + "/v1"
}

func benchRequest() *model.Request {
	static := &model.Static{Instructions: "Settle refunds.", Tools: []model.Tool{{
		Name: "refund", Description: "Refund an order.", Strict: true,
		Parameters: `{"type":"object","properties":{"order":{"type":"string"},"cents":{"type":"integer"}},"required":["order","cents"],"additionalProperties":false}`,
	}}}
	items := []item.Item{item.UserText("Refund order A-1, $19.99")}
	for i := range 10 {
		id := strconv.Itoa(i)
		items = append(items,
			item.FunctionCallItem("fc_"+id, "call_"+id, "refund", `{"order":"A-`+id+`","cents":1999}`),
			item.FunctionOutput("call_"+id, `{"ok":true}`))
	}
	return &model.Request{Static: static, Input: model.NewInput(items...)}
}

func cpuTime(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// measure runs fn and reports its process's CPU time.
func measure(b *testing.B, fn func()) {
	b.ReportAllocs()
	fn() // connects
	start := cpuTime(b)
	n := 0
	for b.Loop() {
		fn()
		n++
	}
	b.ReportMetric(float64(cpuTime(b)-start)/float64(n), "cpu-ns/op")
}

func BenchmarkBlocking(b *testing.B) {
	b.Run("pawl", func(b *testing.B) { benchPawl(b, nil) })
	b.Run("floor", func(b *testing.B) { benchFloor(b, false) })
}

func BenchmarkStream(b *testing.B) {
	b.Run("pawl", func(b *testing.B) {
		benchPawl(b, func(ev *model.Event) bool { return true })
	})
	b.Run("floor", func(b *testing.B) { benchFloor(b, true) })
}

func benchPawl(b *testing.B, emit func(*model.Event) bool) {
	m := openai.New(openai.Options{APIKey: "sk", BaseURL: startBenchServer(b)}).Responses("gpt-5.2")
	req := benchRequest()
	measure(b, func() {
		res, err := m.Call(b.Context(), req, emit)
		if err != nil || res.ID != "resp_1" {
			b.Fatal(res, err)
		}
	})
}

// floorResponse is what the smallest honest client decodes.
type floorResponse struct {
	ID     string            `json:"id"`
	Status string            `json:"status"`
	Output []json.RawMessage `json:"output"`
	Usage  struct {
		InputTokens  int64 `json:"input_tokens"`
		OutputTokens int64 `json:"output_tokens"`
	} `json:"usage"`
}

func benchFloor(b *testing.B, stream bool) {
	url := startBenchServer(b) + "/responses"
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	req := benchRequest()
	head := `{"model":"gpt-5.2","instructions":"Settle refunds.","tools":[{"type":"function","name":"refund","parameters":` +
		req.Static.Tools[0].Parameters + `}],"input":[`
	tail := `]}`
	if stream {
		tail = `],"stream":true}`
	}
	measure(b, func() {
		body := make([]byte, 0, len(head)+len(req.Input.JSON())+len(tail))
		body = append(append(append(body, head...), req.Input.JSON()...), tail...)
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer sk")
		res, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		defer res.Body.Close()
		if !stream {
			data, err := io.ReadAll(res.Body)
			var out floorResponse
			if err := json.Unmarshal(data, &out); err != nil || out.ID != "resp_1" {
				b.Fatal(out, err)
			}
			_ = err
			return
		}
		floorStream(b, res.Body)
	})
}

func floorStream(b *testing.B, body io.Reader) {
	completed := false
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var ev struct {
			Type     string          `json:"type"`
			Delta    string          `json:"delta"`
			Response json.RawMessage `json:"response"`
		}
		if err := json.Unmarshal(data, &ev); err != nil {
			b.Fatal(err)
		}
		if ev.Type == "response.completed" {
			var out floorResponse
			if err := json.Unmarshal(ev.Response, &out); err != nil || out.ID != "resp_1" {
				b.Fatal(out, err)
			}
			completed = true
		}
	}
	if !completed {
		b.Fatal("not completed")
	}
}
