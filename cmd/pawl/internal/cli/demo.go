package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-agents/pawl/cmd/pawl/internal/demo"
	"github.com/pawl-agents/pawl/journal"
	"github.com/spf13/cobra"
)

const demoLong = `Runs an agent in the terminal: a support desk that looks up a customer in a small shop, reads the shop's
policies, and refunds an order. A refund of $50.00 and more waits until you approve it.

Everything is real but the model: the shop and the run store are SQLite databases in ./pawl-demo, and the agent talks
HTTP to a server in this process that speaks OpenAI's Responses API. With OPENAI_API_KEY set the model is real, too.

Stop it when you like, with Ctrl-C or kill -9, and go on with the "resume" command it names. At the end it counts, for each
tool call, the effects in the shop and the outputs in the session, in the model's input and in the replay.

Things to try:
  --crash                  kill a process in the middle of a refund, and go on: one refund
  --fault session-append   the session refuses the refund's output, once
  --fault lost-ack         the session stores it and says it did not
  --fault unknown-tool     the model calls a tool that does not exist, while a refund waits for approval`

// demoOptions are the flags of the demo.
type demoOptions struct {
	driveOptions
	crash  bool
	fault  string
	model  string
	hang   bool
	ticket string
}

// bundledModel is the name that the bundled server's model goes by.
const bundledModel = "pawl-demo"

// defaultModel is asked of a real API.
const defaultModel = "gpt-5-mini"

func (a *app) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch an agent work, pause, be approved and go on",
		Long:  demoLong,
		Args:  cobra.NoArgs,
		RunE: a.do(func(cmd *cobra.Command, _ []string) (any, error) {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return nil, err
			}
			return orNil(a.demo(cmd.Context(), o))
		}),
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.crash, "crash", false, "kill a process in the middle of a refund, then go on (implies --yes)")
	f.StringVar(&o.fault, "fault", "", "let something go wrong: session-append, lost-ack or unknown-tool (`WHAT`)")
	f.StringVar(&o.model, "model", defaultModel, "the real API's model")
	f.BoolVar(&o.hang, "hang-in-refund", false, "for --crash: stop answering in the middle of the approved refund")
	f.StringVar(&o.ticket, "ticket", "", "for --crash: work on the ticket of this run")
	f.Lookup("hang-in-refund").Hidden = true
	f.Lookup("ticket").Hidden = true
	return cmd
}

// check refuses flags that do not go together.
func (o *demoOptions) check(given func(name string) bool) error {
	if o.fault != "" && !slices.Contains(demo.Faults(), demo.Fault(o.fault)) {
		return &usageError{fmt.Errorf("--fault %q: it is one of %v", o.fault, demo.Faults())}
	}
	url, real := api(o.baseURL)
	switch {
	case o.crash && o.fault != "":
		return &usageError{errors.New("--crash and --fault exclude each other")}
	case o.fault != "" && (given("model") || given("base-url")):
		return &usageError{errors.New("--fault always uses the bundled server, so --model and --base-url do not go with it")}
	case o.fault == "" && real:
		if err := checkURL(url); err != nil {
			return err
		}
		if o.model == "" {
			return &usageError{errors.New("--model is empty")}
		}
	case given("model"):
		return &usageError{errors.New("--model is a model of a real API: set OPENAI_API_KEY, or give --base-url, too")}
	}
	return nil
}

func (a *app) demo(ctx context.Context, o demoOptions) (*runReport, error) {
	if err := a.checkDemoStore(); err != nil {
		return nil, err
	}
	w, err := demo.Open(ctx, a.store, o.killAt.kill())
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if o.ticket == "" {
		a.welcome(ctx, w)
	}
	ticket, err := a.ticket(ctx, w, o)
	if err != nil {
		return nil, err
	}
	if o.crash {
		return a.crash(ctx, w, ticket, o)
	}
	var opts demo.DeskOptions
	if o.hang {
		opts.Booked = a.hangInRefund
	}
	d, err := a.desk(w, ticket, o.driveOptions, opts)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	a.introduce(d)
	res, err := a.drive(ctx, d, d.Start(ctx), o.yes)
	if errors.Is(err, demo.ErrInjected) {
		return a.recover(ctx, d, o.yes, err)
	}
	return a.conclude(ctx, d, res, err)
}

// checkDemoStore refuses a --store that means a file: the demo keeps several, in a directory.
func (a *app) checkDemoStore() error {
	info, err := os.Stat(a.store)
	switch {
	case a.isDatabase():
		return &usageError{errors.New("--store is a database; the demo keeps its shop beside its store, in a directory")}
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return &usageError{fmt.Errorf("--store %s is a file; the demo wants a directory", a.store)}
	case a.store == "":
		return &usageError{errors.New("--store is empty; the demo wants a directory")}
	case slices.Contains([]string{".db", ".db3", ".sqlite", ".sqlite3"}, strings.ToLower(filepath.Ext(a.store))):
		return &usageError{fmt.Errorf("--store %s looks like a file; the demo wants a directory, and makes %s in it", a.store, demo.StoreFile)}
	}
	return nil
}

// ticket opens a ticket, or finds the one that --ticket names.
func (a *app) ticket(ctx context.Context, w *demo.World, o demoOptions) (*demo.Ticket, error) {
	if o.ticket != "" {
		return w.Shop.Ticket(ctx, o.ticket)
	}
	fault := demo.Fault(o.fault)
	n := demo.NewTicket{Mode: fault.Mode(), Fault: fault, Model: bundledModel, Coupon: fault == demo.FaultUnknownTool}
	if url, ok := api(o.baseURL); ok && fault == demo.FaultNone {
		n.Model, n.BaseURL = o.model, url
	}
	return w.OpenTicket(ctx, n)
}

// welcome says what is here, and names runs that were left unfinished.
func (a *app) welcome(ctx context.Context, w *demo.World) {
	s := a.screen
	s.head("Pawl demo: a support desk")
	if customers, orders, err := w.Shop.Totals(ctx); err == nil {
		s.entry(faint, "files", fmt.Sprintf("%s: %s (the runs), %s (a shop with %d customers and %d orders)", w.Dir, demo.StoreFile, demo.ShopFile, customers, orders))
	}
	const most = 3
	n := 0
	_ = eachRun(ctx, w.Store, journal.Query{Open: true}, func(info journal.RunInfo) bool { // only a courtesy
		s.entry(yellow, "left open", info.Run)
		s.command("", a.command("resume", info.Run))
		n++
		return n < most
	})
}

// introduce says who asks whom.
func (a *app) introduce(d *demo.Desk) {
	s := a.screen
	if d.Ticket.Bundled() {
		s.entry(faint, "model", "played by a server in this process, at "+d.BaseURL)
	} else {
		s.entry(faint, "model", printable(d.Ticket.Model)+" at "+printable(d.BaseURL))
	}
	s.entry(faint, "stop it", "with Ctrl-C or kill -9, whenever you like, and go on with:")
	s.command("", a.command("resume", d.Ticket.Run()))
	s.line("")
	s.head("%s", d.Ticket.Run())
	s.entry(plain, "customer", d.Ticket.Text)
}

// recover shows what an injected failure left behind, and goes on.
func (a *app) recover(ctx context.Context, d *demo.Desk, yes bool, failure error) (*runReport, error) {
	s := a.screen
	s.line("")
	s.entry(yellow, "failed", printable(strings.TrimPrefix(failure.Error(), "pawl: ")))
	refunds, outputs, err := d.Left(ctx)
	if err != nil {
		return nil, err
	}
	s.entry(plain, "now", fmt.Sprintf("the shop has booked %d refunds, the session holds the outputs of %d", refunds, outputs))
	s.entry(plain, "resume", "the run knows that it owes the session a batch, and reads the session's end before it appends again")
	s.line("")
	res, err := a.goOn(ctx, d, 0, yes)
	r, err := a.conclude(ctx, d, res, err)
	if r != nil {
		r.Injected = failure.Error()
	}
	return r, err
}

// killFlag is the value of --kill-at: before or after, and the number or the kind of a write.
type killFlag struct {
	text string
	k    *demo.Kill
}

func (f *killFlag) kill() *demo.Kill { return f.k }

// Set implements pflag.Value.
func (f *killFlag) Set(s string) error {
	side, what, _ := strings.Cut(s, ":")
	k := &demo.Kill{After: side == "after"}
	switch w := demo.Write(what); w {
	case demo.WriteStore, demo.WriteRefund, demo.WriteMail, demo.WriteSession:
		k.N, k.Only = 1, w
	default:
		k.N, _ = strconv.ParseInt(what, 10, 64)
	}
	if k.N < 1 || side != "before" && side != "after" {
		return errors.New("want before or after, a colon, and the number or the kind of a write")
	}
	f.text, f.k = s, k
	return nil
}

// String implements pflag.Value.
func (f *killFlag) String() string { return f.text }

// Type implements pflag.Value.
func (f *killFlag) Type() string { return "SIDE:WRITE" }
