package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/session/sessiontest"
)

func openWorld(t *testing.T, dir string) *World {
	t.Helper()
	w, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func openDesk(t *testing.T, w *World, n NewTicket, opts DeskOptions) *Desk {
	t.Helper()
	ticket, err := w.OpenTicket(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	d, err := w.Desk(ticket, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// counts is a row without what differs from run to run.
type counts struct {
	Tool                                      string
	Effects, Requests, Session, Input, Replay int
}

func table(t *testing.T, d *Desk, res *pawl.Result) []counts {
	t.Helper()
	rows, err := d.Table(t.Context(), res)
	if err != nil {
		t.Fatal(err)
	}
	var list []counts
	for _, r := range rows {
		if !r.Whole() {
			t.Errorf("not whole: %+v", r)
		}
		list = append(list, counts{r.Tool, r.Effects, r.Requests, r.Session, r.Input, r.Replay})
	}
	return list
}

func approveAll(t *testing.T, d *Desk, res *pawl.Result) *pawl.Result {
	t.Helper()
	if !res.Waiting() || len(res.Interruptions) != 1 {
		t.Fatalf("the run is %s with %d interruptions, want one", res.Status, len(res.Interruptions))
	}
	state := res.State()
	if err := state.Approve(res.Interruptions[0], "ada"); err != nil {
		t.Fatal(err)
	}
	res, err := pawl.Collect(d.Resume(t.Context(), state, 0))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// Every call has one output in each place that holds outputs, wherever the conversation is kept.
func TestDesk(t *testing.T) {
	for mode, session := range map[Mode]int{ModeStore: 1, ModePlain: 1, ModeChain: -1} {
		t.Run(string(mode), func(t *testing.T) {
			d := openDesk(t, openWorld(t, t.TempDir()), NewTicket{Mode: mode, Model: "m", Coupon: mode == ModeChain}, DeskOptions{})
			res, err := pawl.Collect(d.Start(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			res = approveAll(t, d, res)
			want := []counts{
				{"find_customer", 0, 0, session, 1, 1},
				{"read_policy", 0, 0, session, 1, 1},
				{"read_policy", 0, 0, session, 1, 1},
				{"list_orders", 0, 0, session, 1, 1},
				{"refund", 1, 1, session, 1, 1},
				{"refund", 1, 1, session, 1, 1},
				{"send_mail", 1, 1, session, 1, 1},
			}
			if mode == ModeChain {
				want = append(want[:6:6], counts{"issue_coupon", 0, 0, session, 1, 1}, want[6])
			}
			if diff := cmp.Diff(want, table(t, d, res)); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
			if want := "Refunded $6.90 and $62.50 for order 5321. The customer has been told."; res.FinalOutput != want {
				t.Errorf("final output %q, want %q", res.FinalOutput, want)
			}
		})
	}
}

// A failed append is the caller's to see; what was owed is appended by the resume, once.
func TestFaults(t *testing.T) {
	for fault, stored := range map[Fault]int{FaultSessionAppend: 0, FaultLostAck: 2} {
		t.Run(string(fault), func(t *testing.T) {
			d := openDesk(t, openWorld(t, t.TempDir()), NewTicket{Mode: fault.Mode(), Model: "m", Fault: fault}, DeskOptions{})
			res, err := pawl.Collect(d.Start(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			state := res.State()
			if err := state.Approve(res.Interruptions[0], "ada"); err != nil {
				t.Fatal(err)
			}
			if _, err := pawl.Collect(d.Resume(t.Context(), state, 0)); !errors.Is(err, ErrInjected) {
				t.Fatalf("error %v, want the injected one", err)
			}
			refunds, outputs, err := d.Left(t.Context())
			if err != nil || refunds != 2 || outputs != stored {
				t.Errorf("left: %d refunds, %d outputs, %v; want 2 and %d", refunds, outputs, err, stored)
			}
			res, err = pawl.Collect(d.Resume(t.Context(), pawl.RunID(d.Ticket.Run()), 0))
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range table(t, d, res) {
				if row.Requests > 1 {
					t.Errorf("the shop was asked again: %+v", row)
				}
			}
		})
	}
}

// The server's captured requests say what it was sent, and continue each other.
func TestDeliveries(t *testing.T) {
	d := openDesk(t, openWorld(t, t.TempDir()), NewTicket{Mode: ModeChain, Model: "m", Coupon: true}, DeskOptions{})
	res, err := pawl.Collect(d.Start(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	approveAll(t, d, res)
	got, err := d.Deliveries()
	if err != nil {
		t.Fatal(err)
	}
	want := []Delivery{
		{2, "resp_1", []string{"find_customer", "read_policy", "read_policy"}},
		{3, "resp_2", []string{"list_orders"}},
		{4, "resp_3", []string{"refund", "refund", "issue_coupon"}},
		{5, "resp_4", []string{"send_mail"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

// A real API's requests are captured where they are sent.
func TestTransport(t *testing.T) {
	server := pawltest.NewResponsesServer(t, &pawltest.ResponsesOptions{Respond: answer})
	d := openDesk(t, openWorld(t, t.TempDir()), NewTicket{Mode: ModeStore, Model: "m", BaseURL: server.URL()}, DeskOptions{Client: openai.Options{APIKey: "k"}})
	res, err := pawl.Collect(d.Start(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if rows := table(t, d, approveAll(t, d, res)); len(rows) != 7 {
		t.Errorf("%d rows, want 7", len(rows))
	}
}

func TestPlainSession(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T) sessiontest.Open {
		shop := openShop(t)
		return func(id string) session.Session { return &plainSession{shop: shop, id: id} }
	})
}

// A model that cannot find the customer stops, and one that was refused says so.
func TestAnswer(t *testing.T) {
	user := item.UserText("Hello, this is X (x@example.com). The lamp of order 7 ($60.00) broke, and $5.00 for express delivery.")
	call := func(id, tool, args, output string) []item.Item {
		fc := item.FunctionCallItem("", id, tool, args)
		return []item.Item{fc, item.FunctionOutput(id, output)}
	}
	found := append([]item.Item{user}, call("c1", "find_customer", `{}`, `{"customer":3,"name":"X","email":"x@example.com"}`)...)
	listed := append(found[:3:3], call("c2", "list_orders", `{"customer":3}`, `[]`)...)
	refund := func(id, output string) []item.Item { return call(id, "refund", `{}`, output) }
	for name, tt := range map[string]struct {
		history []item.Item
		want    string
	}{
		"unknown customer": {append([]item.Item{user}, call("c1", "find_customer", `{}`, "The tool failed: nobody")...), "I could not find the customer, so I did nothing."},
		"orders":           {found, `list_orders {"customer":3}`},
		"refunds":          {listed, `refund {"order":7,"cents":500,"reason":"express delivery was late"}`},
		"edited": {append(listed[:5:5], refund("c3", "The reviewer changed the arguments.\n"+`{"refund":1,"order":7,"amount":"$4.00"}`)...),
			`send_mail {"to":"x@example.com","subject":"Your order 7","body":"Refunded $4.00 for order 7."}`},
		"all refused": {append(listed[:5:5], refund("c3", "no")...), `send_mail {"to":"x@example.com","subject":"Your order 7","body":"Nothing was refunded for order 7."}`},
		"told": {append(append(listed[:5:5], refund("c3", "no")...), call("c4", "send_mail", `{}`, "sent")...),
			"Nothing was refunded for order 7. The customer has been told."},
	} {
		t.Run(name, func(t *testing.T) {
			server := pawltest.NewResponsesServer(t, &pawltest.ResponsesOptions{Respond: answer})
			agent := openai.New(openai.Options{BaseURL: server.URL()}).Responses("m")
			res, err := agent.Call(t.Context(), requestOf(tt.history), nil)
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, it := range res.Items {
				if m, err := it.Message(); err == nil {
					said = append(said, m.Text())
				}
				if fc, err := it.FunctionCall(); err == nil {
					said = append(said, fc.Name+" "+fc.Arguments)
				}
			}
			if got := strings.Join(said, "\n"); !strings.Contains(got, tt.want) {
				t.Errorf("it said %q, want %q", got, tt.want)
			}
		})
	}
}

// A world that is opened again goes on with its numbers.
func TestWorldAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "dir")
	first := openDesk(t, openWorld(t, dir), NewTicket{Mode: ModeStore, Model: "m"}, DeskOptions{}).Ticket
	w := openWorld(t, dir)
	second, err := w.OpenTicket(context.Background(), NewTicket{Mode: ModeStore, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if first.Run() != "ticket-1001" || second.Run() != "ticket-1002" || second.Order != first.Order+1 {
		t.Errorf("tickets %s of order %d, %s of order %d", first.Run(), first.Order, second.Run(), second.Order)
	}
	again, err := w.Shop.Ticket(t.Context(), "ticket-1002")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(second, again); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	for _, run := range []string{"ticket-9", "ticket-x", "other", ""} {
		if _, err := w.Shop.Ticket(t.Context(), run); !errors.Is(err, ErrUnknownTicket) {
			t.Errorf("ticket of run %q: %v", run, err)
		}
	}
}

func TestOpenFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if w, err := Open(t.Context(), file, nil); err == nil {
		w.Close()
		t.Error("a file was opened as a directory")
	}
}
