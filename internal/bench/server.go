package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// The server answers from the request alone and does next to nothing for it: it counts the outputs in the body to know
// which turn it is. The shape of the run is in the path: /TURNS/CALLS/v1/responses.

// serve is the server's process. It prints its address and ends with its standard input.
func serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		os.Exit(0)
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{turns}/{calls}/v1/responses", respond)
	return http.Serve(l, mux)
}

func respond(w http.ResponseWriter, r *http.Request) {
	turns, err1 := strconv.Atoi(r.PathValue("turns"))
	calls, err2 := strconv.Atoi(r.PathValue("calls"))
	body, err3 := io.ReadAll(r.Body)
	if err1 != nil || err2 != nil || err3 != nil || calls < 1 {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	n := turnOf(body, calls)
	items := outputItems(n, turns, calls)
	if bytes.Contains(tail(body), []byte(`"stream":true`)) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = w.Write(stream(n, items)) // a client that left shows as a run that fails
		return
	}
	res := response(n, "completed", items)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(res)))
	_, _ = w.Write(res)
}

// tail is the end of a body, where what is not input stands.
func tail(body []byte) []byte { return body[max(0, len(body)-100):] }

// turnOf tells the turn by the pointer of a chain or else by the outputs in the input.
func turnOf(body []byte, calls int) int {
	const pointer = `"previous_response_id":"resp_`
	end := tail(body)
	if i := bytes.Index(end, []byte(pointer)); i >= 0 {
		digits, _, _ := bytes.Cut(end[i+len(pointer):], []byte(`"`))
		n, _ := strconv.Atoi(string(digits)) // 0 shows as a run of the wrong length
		return n + 1
	}
	return bytes.Count(body, []byte(`"function_call_output"`))/calls + 1
}

// response is the API's response object.
func response(n int, status string, items []string) []byte {
	usage := "null"
	if status == "completed" {
		usage = `{"input_tokens":1200,"input_tokens_details":{"cached_tokens":1024},"output_tokens":60,` +
			`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":1260}`
	}
	return fmt.Appendf(nil, `{"id":"resp_%d","object":"response","created_at":1764400000,"status":"%s","background":false,"error":null,`+
		`"incomplete_details":null,"instructions":%s,"max_output_tokens":null,"max_tool_calls":null,"model":"gpt-bench","output":[%s],`+
		`"parallel_tool_calls":true,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},`+
		`"safety_identifier":null,"service_tier":"default","store":true,"temperature":1.0,"text":{"format":{"type":"text"}},`+
		`"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1.0,"truncation":"disabled","usage":%s,"user":null,"metadata":{}}`,
		n, status, quoted(instructions), strings.Join(items, ","), usage)
}

// deltaSize is the number of bytes of arguments or text in one event.
const deltaSize = 16

// stream is the response as server-sent events in the API's order.
func stream(n int, items []string) []byte {
	var b bytes.Buffer
	sequence := 0
	event := func(kind, members string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d,%s}\n\n", kind, kind, sequence, members)
		sequence++
	}
	begun := `"response":` + string(response(n, "in_progress", nil))
	event("response.created", begun)
	event("response.in_progress", begun)
	for i, it := range items {
		kind, name, text, id := "response.function_call_arguments", "arguments", arguments, "fc_"+strconv.Itoa(n)+"_"+strconv.Itoa(i)
		if strings.Contains(it, `"type":"message"`) {
			kind, name, text, id = "response.output_text", "text", answer, "msg_"+strconv.Itoa(n)
		}
		at := fmt.Sprintf(`"item_id":"%s","output_index":%d`, id, i)
		event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, i, it))
		for rest := text; rest != ""; {
			piece := rest[:min(deltaSize, len(rest))]
			rest = rest[len(piece):]
			event(kind+".delta", at+`,"delta":`+quoted(piece)+`,"obfuscation":"a8Xk2"`)
		}
		event(kind+".done", at+`,"`+name+`":`+quoted(text))
		event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i, it))
	}
	event("response.completed", `"response":`+string(response(n, "completed", items)))
	return b.Bytes()
}

// server is the server's process, seen from the parent.
type server struct{ addr string }

// startServer starts this program again as the server; stop ends it.
func startServer() (s *server, stop func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(program, "-serve")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() {
		stdin.Close()
		_ = cmd.Wait() // it is told to end, and how it does is of no interest
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("the server did not start: %w", err)
	}
	return &server{strings.TrimSpace(line)}, stop, nil
}

// url is the base URL for runs of that shape.
func (s *server) url(turns, calls int) string {
	return fmt.Sprintf("http://%s/%d/%d/v1", s.addr, turns, calls)
}
