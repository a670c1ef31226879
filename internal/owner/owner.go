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

// Self returns the running process. Host is where process ids mean the same: the host's
// name, with the beginning of its machine id (machine-id(5)), because names are not
// unique, and with the process's pid namespace (pid_namespaces(7)) unless that is the
// host's own. Boot is the boot id; where the system has none it is empty, and no process
// of another boot can be told apart. The start time is read from /proc
// (proc_pid_stat(5), field 22).
var Self = sync.OnceValue(func() journal.Owner {
	pid := os.Getpid()
	return journal.Owner{Host: host(), Boot: bootID(), PID: pid, Start: startTime(pid)}
})

// initialNamespace is the pid namespace that Linux starts with.
const initialNamespace = "pid:[4026531836]"

func host() string {
	name, _ := os.Hostname()
	if name == "" {
		return ""
	}
	if id, err := os.ReadFile("/etc/machine-id"); err == nil && len(id) >= 8 {
		name += "/" + string(id[:8])
	}
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil && ns != initialNamespace {
		name += "/" + ns
	}
	return name
}

// Gone reports whether the owner is known to be gone: on this host, after a
// reboot, or without a process of its id and start time. An owner on another host, or
// in another pid namespace, is never known to be gone.
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
