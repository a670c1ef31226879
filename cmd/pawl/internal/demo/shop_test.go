package demo

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

func openShop(t *testing.T) *Shop {
	t.Helper()
	s, err := OpenShop(t.Context(), filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func requestOf(items []item.Item) *model.Request {
	return &model.Request{Static: &model.Static{}, Input: model.NewInput(items...)}
}

// Two shops are equal, and what is in them makes sense.
func TestSeed(t *testing.T) {
	dump := func(s *Shop) (list []Order) {
		for customer := range int64(seededCustomers) {
			orders, err := s.Orders(t.Context(), customer+1)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, orders...)
		}
		return list
	}
	a, b := openShop(t), openShop(t)
	if diff := cmp.Diff(dump(a), dump(b)); diff != "" {
		t.Errorf("two shops differ:\n%s", diff)
	}
	customers, orders, err := a.Totals(t.Context())
	if err != nil || customers != 80 || orders != 320 {
		t.Errorf("%d customers and %d orders, %v", customers, orders, err)
	}
	c, err := a.FindCustomer(t.Context(), " Ada.Lindqvist@Example.com ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Customer{1, "Ada Lindqvist", "ada.lindqvist@example.com"}, c); diff != "" {
		t.Errorf("customer (-want +got):\n%s", diff)
	}
	if c, err := a.FindCustomer(t.Context(), "nobody@example.com"); c != nil || err != nil {
		t.Errorf("nobody is %v, %v", c, err)
	}
}

// A refund is booked once a key, and never more than was paid.
func TestRefund(t *testing.T) {
	s := openShop(t)
	var paid int64
	if err := s.db.QueryRow(`SELECT cents + express FROM orders WHERE id = 5001`).Scan(&paid); err != nil {
		t.Fatal(err)
	}
	r := Refund{Key: "k1", Run: "r", Call: "c1", Order: 5001, Cents: 100, Reason: "x"}
	want := Receipt{Refund: 1, Order: 5001, Amount: "$1.00"}
	for range 2 {
		if got, err := s.Refund(t.Context(), r); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	if effects, requests, err := s.Effects(t.Context(), "r", "c1"); err != nil || effects != 1 || requests != 2 {
		t.Errorf("%d effects of %d requests, %v; want 1 of 2", effects, requests, err)
	}
	for name, bad := range map[string]Refund{
		"more than is left": {Key: "k2", Run: "r", Call: "c2", Order: 5001, Cents: paid - 99},
		"unknown order":     {Key: "k3", Run: "r", Call: "c3", Order: 1, Cents: 1},
	} {
		if got, err := s.Refund(t.Context(), bad); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if n, err := s.Refunds(t.Context(), "r"); err != nil || n != 1 {
		t.Errorf("%d refunds, %v; want 1", n, err)
	}
	if got, err := s.Refund(t.Context(), Refund{Key: "k4", Run: "r", Call: "c4", Order: 5001, Cents: paid - 100}); err != nil || got.Refund != 2 {
		t.Errorf("the rest: %+v, %v", got, err)
	}
}

// A file that is not the shop is left as it is.
func TestForeignShop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	const words = "a text that is longer than the header of a database file, which has one hundred bytes, as everybody knows"
	if err := os.WriteFile(path, []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := OpenShop(t.Context(), path); !errors.Is(err, ErrForeignShop) {
		t.Errorf("got %v, %v; want ErrForeignShop", s, err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != words {
		t.Errorf("the file is %q now, %v", got, err)
	}
}
