package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/model"
)

// AgentKey names the desk in ledgers.
const AgentKey = "pawl-demo/desk"

// ApprovalLimit is the refund, in cents, from which somebody has to approve it.
const ApprovalLimit = 5000

const instructions = `You work at the support desk of a small shop. Settle the customer's ticket:
find the customer, read the policy on refunds, look at the customer's orders.
Refund what the policy allows: one refund call for the article and one for the express fee.
When the refunds are settled, send the customer one mail that says what was refunded and what was not.
Then answer with one short sentence about what you did. Amounts are in cents.`

type findArgs struct {
	Email string `json:"email" jsonschema:"the customer's address" format:"email"`
}

type ordersArgs struct {
	Customer int64 `json:"customer" jsonschema:"the customer's number, from find_customer"`
}

type policyArgs struct {
	Topic string `json:"topic" enum:"refunds,delivery"`
}

type refundArgs struct {
	Order  int64  `json:"order" jsonschema:"the order's number"`
	Cents  int64  `json:"cents" jsonschema:"the amount in cents" minimum:"1"`
	Reason string `json:"reason" jsonschema:"why, in a few words"`
}

type mailArgs struct {
	To      string `json:"to" jsonschema:"the customer's address" format:"email"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

var policies = map[string]string{
	"refunds":  "An article that arrived broken is refunded in full within 60 days. Refunds of $50.00 and more are approved by a person.",
	"delivery": "Express delivery takes two days. If it took longer the express fee is refunded.",
}

// newAgent returns the support desk: three tools that only read, and two that cannot be undone. booked is called
// when a refund is in the shop and nobody knows yet.
func newAgent(shop *Shop, m model.Model, booked func(context.Context, *pawl.Call) error) *pawl.Agent {
	return &pawl.Agent{
		Name:         "Support desk",
		Key:          AgentKey,
		Instructions: pawl.Text(instructions),
		Model:        m,
		Tools:        append(readers(shop), refundTool(shop, booked), mailTool(shop)),
	}
}

// Agent returns the support desk as it is described: nothing behind it, to compare a decision with. It cannot run.
func Agent() *pawl.Agent { return newAgent(nil, nil, nil) }

func readers(shop *Shop) []pawl.Tool {
	return []pawl.Tool{
		pawl.NewTool(pawl.Func[findArgs, *Customer]{
			Name: "find_customer", Description: "Find a customer by address.", Effect: pawl.ReadOnly,
			Run: func(ctx context.Context, _ *pawl.Call, in findArgs) (*Customer, error) {
				c, err := shop.FindCustomer(ctx, in.Email)
				if err == nil && c == nil {
					err = fmt.Errorf("no customer has the address %q", in.Email)
				}
				return c, err
			},
		}),
		pawl.NewTool(pawl.Func[ordersArgs, []Order]{
			Name: "list_orders", Description: "List a customer's newest orders.", Effect: pawl.ReadOnly,
			Run: func(ctx context.Context, _ *pawl.Call, in ordersArgs) ([]Order, error) {
				return shop.Orders(ctx, in.Customer)
			},
		}),
		pawl.NewTool(pawl.Func[policyArgs, string]{
			Name: "read_policy", Description: "Read the shop's policy on a topic.", Effect: pawl.ReadOnly,
			Run: func(_ context.Context, _ *pawl.Call, in policyArgs) (string, error) { return policies[in.Topic], nil },
		}),
	}
}

// refundTool moves money. The shop knows a repeat by the call's key, so the call is Idempotent: after a crash it
// runs again and takes effect once.
func refundTool(shop *Shop, booked func(context.Context, *pawl.Call) error) pawl.Tool {
	return pawl.NewTool(pawl.Func[refundArgs, Receipt]{
		Name: "refund", Description: "Give money back for an order. This cannot be undone.",
		Effect: pawl.Idempotent, Timeout: time.Minute,
		Approve: func(_ context.Context, _ *pawl.Call, in refundArgs) (pawl.Gate, error) {
			if in.Cents < ApprovalLimit {
				return pawl.Allow, nil
			}
			return pawl.Ask, nil
		},
		Run: func(ctx context.Context, c *pawl.Call, in refundArgs) (Receipt, error) {
			receipt, err := shop.Refund(ctx, Refund{Key: c.Key, Run: c.Run, Call: c.ID, Order: in.Order, Cents: in.Cents, Reason: in.Reason})
			if err == nil && booked != nil {
				err = booked(ctx, c)
			}
			return receipt, err
		},
	})
}

// mailTool sends mail, which knows no repeats, so the call is AtMostOnce, the default: after a crash in the middle of it
// somebody has to look whether the mail went out.
func mailTool(shop *Shop) pawl.Tool {
	return pawl.NewTool(pawl.Func[mailArgs, string]{
		Name: "send_mail", Description: "Send a mail to the customer. This cannot be undone.", Timeout: time.Minute,
		Run: func(ctx context.Context, c *pawl.Call, in mailArgs) (string, error) {
			return mailSent, shop.Send(ctx, Mail{Run: c.Run, Call: c.ID, To: in.To, Subject: in.Subject, Body: in.Body})
		},
	})
}

const mailSent = "sent"
