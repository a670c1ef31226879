package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// answer plays the model. It knows nothing but the request, so it may die with the process and another one
// goes on.
func answer(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
	c := readConversation(r.History())
	switch {
	case !c.called("find_customer"):
		return say("I will look up the customer and our policies.",
			call("find_customer", findArgs{Email: c.email}),
			call("read_policy", policyArgs{Topic: "refunds"}), call("read_policy", policyArgs{Topic: "delivery"}))
	case !c.called("list_orders"):
		var customer Customer
		if json.Unmarshal([]byte(c.outputOf("find_customer")), &customer) != nil || customer.ID == 0 {
			return pawltest.ReplyText("I could not find the customer, so I did nothing.")
		}
		return say("Now the customer's orders.", call("list_orders", ordersArgs{Customer: customer.ID}))
	case !c.called("refund") && len(c.cents) == 2:
		return say("Both complaints are covered: the article and the express fee are to be refunded.", c.refunds()...)
	case !c.called("send_mail"):
		return say("I will tell the customer.", call("send_mail", mailArgs{To: c.email, Subject: "Your order " + c.order, Body: c.summary()}))
	}
	return pawltest.ReplyText(c.summary() + " The customer has been told.")
}

// say is a reply of a message and calls. The server makes up their ids.
func say(text string, calls ...item.Item) pawltest.ResponsesReply {
	return pawltest.ReplyItems(append([]item.Item{item.MessageItem("", text)}, calls...)...)
}

func call(tool string, args any) item.Item {
	text, _ := json.Marshal(args) // plain structs of strings and numbers
	return item.FunctionCallItem("", "", tool, string(text))
}

// conversation is what the model makes of its input.
type conversation struct {
	email, order string
	cents        []int64 // the article, the express fee
	coupon       bool
	calls        []madeCall
}

type madeCall struct{ tool, id, output string }

var (
	emailIn  = regexp.MustCompile(`\(([^()\s]+@[^()\s]+)\)`)
	orderIn  = regexp.MustCompile(`order (\d+)`)
	amountIn = regexp.MustCompile(`\$(\d+)\.(\d\d)`)
)

func readConversation(items []item.Item) *conversation {
	c := &conversation{}
	for _, it := range items {
		if m, err := it.Message(); err == nil && m.Role == "user" {
			c.readTicket(m.Text())
		}
		if fc, err := it.FunctionCall(); err == nil {
			c.calls = append(c.calls, madeCall{tool: fc.Name, id: fc.CallID})
		}
		if out, err := it.FunctionCallOutput(); err == nil {
			for i := range c.calls {
				if c.calls[i].id == out.CallID {
					c.calls[i].output = out.Text
				}
			}
		}
	}
	return c
}

func (c *conversation) readTicket(text string) {
	if m := emailIn.FindStringSubmatch(text); m != nil {
		c.email = m[1]
	}
	if m := orderIn.FindStringSubmatch(text); m != nil {
		c.order = m[1]
	}
	for _, m := range amountIn.FindAllStringSubmatch(text, 2) {
		var whole, part int64
		fmt.Sscan(m[1], &whole)
		fmt.Sscan(m[2], &part)
		c.cents = append(c.cents, whole*100+part)
	}
	c.coupon = strings.Contains(text, "coupon")
}

func (c *conversation) called(tool string) bool { return c.find(tool) != nil }

func (c *conversation) find(tool string) *madeCall {
	for i := range c.calls {
		if c.calls[i].tool == tool {
			return &c.calls[i]
		}
	}
	return nil
}

func (c *conversation) outputOf(tool string) string {
	if m := c.find(tool); m != nil {
		return m.output
	}
	return ""
}

// refunds are the calls that pay. A customer who asks for a coupon makes the model call a tool that nobody
// gave it.
func (c *conversation) refunds() []item.Item {
	var order int64
	fmt.Sscan(c.order, &order)
	calls := []item.Item{
		call("refund", refundArgs{Order: order, Cents: c.cents[1], Reason: "express delivery was late"}),
		call("refund", refundArgs{Order: order, Cents: c.cents[0], Reason: "article arrived broken"}),
	}
	if c.coupon {
		calls = append(calls, call("issue_coupon", struct {
			Customer string `json:"customer"`
			Percent  int    `json:"percent"`
		}{c.email, 10}))
	}
	return calls
}

// summary tells from the outputs of the refunds what was paid.
func (c *conversation) summary() string {
	var paid []string
	refused := 0
	for _, m := range c.calls {
		if m.tool != "refund" {
			continue
		}
		var r Receipt
		// A receipt whose arguments a reviewer changed has a line about that before it.
		_, receipt, found := strings.Cut(m.output, "\n")
		if !found {
			receipt = m.output
		}
		if json.Unmarshal([]byte(receipt), &r) == nil && r.Refund != 0 {
			paid = append(paid, r.Amount)
		} else {
			refused++
		}
	}
	text := "Nothing was refunded for order " + c.order + "."
	if len(paid) > 0 {
		text = fmt.Sprintf("Refunded %s for order %s.", strings.Join(paid, " and "), c.order)
	}
	if refused > 0 && len(paid) > 0 {
		text += " The rest was not approved."
	}
	return text
}
