package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The first process is left at its second question, the next one asks both again.
func TestApprovals(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	file := filepath.Join(t.TempDir(), "approvals.db")
	for _, process := range []struct{ typed, want string }{
		{"y\n", `call_2: paid 2000 cents for order 10
refund {"order":9,"cents":8000}? [y/n] refund {"order":11,"cents":9500}? [y/n] 
The run waits. Start the program again to decide.
`},
		{"y\nn\n", `refund {"order":9,"cents":8000}? [y/n] refund {"order":11,"cents":9500}? [y/n] call_3: The reviewer said no.
call_1: paid 8000 cents for order 9
That is all there was to refund.
`},
		{"", "That is all there was to refund.\n"},
	} {
		var out strings.Builder
		if err := run(t.Context(), file, strings.NewReader(process.typed), &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != process.want {
			t.Errorf("printed\n%s\nwant\n%s", out.String(), process.want)
		}
	}
}
