package owner

import (
	"os"
	"os/exec"
	"testing"

	"github.com/pawl-agents/pawl/journal"
)

func TestGone(t *testing.T) {
	self := Self()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := journal.Owner{Host: self.Host, Boot: self.Boot, PID: cmd.Process.Pid, Start: startTime(cmd.Process.Pid)}
	if child.Start == "" {
		t.Fatal("a running child has no start time")
	}
	reused := child
	reused.Start = "1"
	rebooted := self
	rebooted.Boot = "another"
	elsewhere := child
	elsewhere.Host = "another"
	name, _ := os.Hostname()
	otherMachine := journal.Owner{Host: name + "/00000000", Boot: "another", PID: 1, Start: "1"}
	contained := self
	contained.Host += "/pid:[4026532000]"
	contained.Start = "1"
	for name, tt := range map[string]struct {
		owner journal.Owner
		gone  bool
	}{
		"this process":                           {self, false},
		"a running process":                      {child, false},
		"its id, another process":                {reused, true},
		"before a reboot":                        {rebooted, true},
		"another host":                           {elsewhere, false},
		"another machine of that name, rebooted": {otherMachine, false},
		"a container on this host":               {contained, false},
		"nobody":                                 {journal.Owner{}, false},
	} {
		if got := Gone(tt.owner); got != tt.gone {
			t.Errorf("%s: gone = %v, want %v", name, got, tt.gone)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if !Gone(child) {
		t.Error("a process that ended is not gone")
	}
}
