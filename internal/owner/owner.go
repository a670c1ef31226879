// Package owner names the process that drives a run, and says whether a named
// process is known to be gone.
package owner

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-agents/pawl/journal"
)

// Self returns the running process. Host and boot id come from the operating
// system; where it has no boot id, Boot is empty and no process of another boot can be
// told apart. The start time is read from /proc (proc_pid_stat(5), field 22).
var Self = sync.OnceValue(func() journal.Owner {
	host, _ := os.Hostname()
	pid := os.Getpid()
	return journal.Owner{Host: host, Boot: bootID(), PID: pid, Start: startTime(pid)}
})

// Gone reports whether the owner is known to be gone: on this host, after a
// reboot, or without a process of its id and start time. An owner on another host is
// never known to be gone.
func Gone(o journal.Owner) bool {
	self := Self()
	if o.Host == "" || o.Host != self.Host {
		return false
	}
	if o.Boot != self.Boot {
		return true
	}
	if o.PID == self.PID && o.Start == self.Start {
		return false
	}
	if o.Start == "" {
		return !exists(o.PID)
	}
	return startTime(o.PID) != o.Start
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// startTime returns when a process started, in clock ticks since boot; empty if
// there is no such process or no /proc, or if the process is a zombie, which can do
// nothing any more.
func startTime(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, rest, ok := strings.Cut(string(b), ") ")
	for ok && strings.Contains(rest, ") ") {
		_, rest, ok = strings.Cut(rest, ") ")
	}
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}
