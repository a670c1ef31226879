package main

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/internal/pgtest"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/audit"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/sqlstore"
	"github.com/pawl-agents/pawl/sqlstore/pgstore"
	"github.com/rogpeppe/go-internal/testscript"
)

// binary is the command, built as users build it.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pawl-cmd")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "pawl")
	code := 1
	if out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), ".", "../pawl-verify").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// cleanEnv is an environment without the variables that the command reads.
func cleanEnv(extra ...string) []string {
	env := []string{"HOME=" + os.TempDir(), "PATH=" + filepath.Dir(binary) + string(os.PathListSeparator) + os.Getenv("PATH"), "TERM=xterm"}
	return append(env, extra...)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, cleanEnv()...)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "sqlite": sqlite, "query": query, "model": model, "foreign-run": foreignRun,
			"head-of": headOf, "postgres": postgres, "until": until,
		},
	})
}

// exits runs a command and checks its exit code: exits CODE COMMAND ARGS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code, err = exitCode(exit), nil
	}
	ts.Check(err)
	if want, err := strconv.Atoi(args[0]); err != nil || code != want {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// until runs a command until its output matches: until REGEXP COMMAND ARGS...
func until(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile(args[0])
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout")
		if err == nil && want.MatchString(out) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("after a minute %v says\n%s%v", args[1:], out, err)
		}
	}
}

// exitCode is what a shell says of a process: 128 and the signal for one that was killed.
func exitCode(e *exec.ExitError) int {
	if ws, ok := e.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return e.ExitCode()
}

func openDB(ts *testscript.TestScript, file string) *sql.DB {
	db, err := sql.Open("sqlite", ts.MkAbs(file))
	ts.Check(err)
	return db
}

// sqlite executes statements on a database: sqlite FILE SQL
func sqlite(ts *testscript.TestScript, _ bool, args []string) {
	db := openDB(ts, args[0])
	defer db.Close()
	_, err := db.Exec(args[1])
	ts.Check(err)
}

// query compares the first column of a query, joined by spaces: query FILE SQL WANT
func query(ts *testscript.TestScript, _ bool, args []string) {
	db := openDB(ts, args[0])
	defer db.Close()
	got, err := column(db, args[1])
	ts.Check(err)
	if s := strings.Join(got, " "); s != args[2] {
		ts.Fatalf("%s: got %q, want %q", args[1], s, args[2])
	}
}

func column(db *sql.DB, query string, args ...any) ([]string, error) {
	rows, err := db.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// model starts a server that stands for a real API, and sets MODEL_URL. It wants a key and answers with one
// refund, then with a text: model KEY
func model(ts *testscript.TestScript, _ bool, args []string) {
	s, err := pawltest.StartResponses(&pawltest.ResponsesOptions{Key: args[0], Respond: func(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
		for _, it := range r.History() {
			if out, err := it.FunctionCallOutput(); err == nil {
				return pawltest.ReplyText(r.Model + " read: " + out.Text)
			}
		}
		return pawltest.ReplyItems(item.FunctionCallItem("", "", "refund", `{"order":5321,"cents":6000,"reason":"it broke"}`))
	}})
	ts.Check(err)
	ts.Defer(func() { s.Close() })
	ts.Setenv("MODEL_URL", s.URL())
}

// headOf sets a variable to the hash of the head in the last line of a file: head-of VARIABLE FILE
func headOf(ts *testscript.TestScript, _ bool, args []string) {
	anchor, err := audit.ParseAnchor([]byte(ts.ReadFile(args[1])))
	ts.Check(err)
	ts.Setenv(args[0], hex.EncodeToString(anchor.Hash[:]))
}

// postgres starts a server with an empty database, and sets PG_URL and, with a password, PG_SECRET_URL.
func postgres(ts *testscript.TestScript, _ bool, _ []string) {
	s, err := pgtest.New("fsync=off")
	ts.Check(err)
	ts.Defer(func() { s.Close() })
	url, err := s.Create(context.Background(), "pawl")
	ts.Check(err)
	ts.Setenv("PG_URL", url)
	ts.Setenv("PG_SECRET_URL", strings.Replace(url, "postgres@", "postgres:secret@", 1))
}

// foreignRun makes a store, in a file or a database, with a run of another program that waits for two approvals: foreign-run STORE RUN
func foreignRun(ts *testscript.TestScript, _ bool, args []string) {
	s, err := pawltest.StartResponses(&pawltest.ResponsesOptions{Steps: []pawltest.ResponsesStep{{Reply: pawltest.ReplyItems(
		item.FunctionCallItem("", "call_a", "deploy", `{"to":"prod"}`), item.FunctionCallItem("", "call_b", "deploy", `{"to":"test"}`))}}})
	ts.Check(err)
	defer s.Close()
	var st interface {
		journal.Driver
		Close() error
	}
	if strings.HasPrefix(args[0], "postgres://") {
		st, err = pgstore.Open(context.Background(), args[0], nil)
	} else {
		st, err = sqlstore.OpenSQLite(ts.MkAbs(args[0]), nil)
	}
	ts.Check(err)
	defer st.Close()
	type to struct {
		To string `json:"to"`
	}
	agent := &pawl.Agent{Name: "Deployer", Model: openai.New(openai.Options{BaseURL: s.URL()}).Responses("m"), Tools: []pawl.Tool{pawl.NewTool(pawl.Func[to, string]{
		Name: "deploy", Approve: pawl.AlwaysAsk[to], Run: func(context.Context, *pawl.Call, to) (string, error) { return "deployed", nil },
	})}}
	runner := &pawl.Runner{Store: st}
	_, err = runner.Run(context.Background(), agent, pawl.UserText("deploy"), &pawl.RunOptions{ID: args[1]})
	ts.Check(err)
}
