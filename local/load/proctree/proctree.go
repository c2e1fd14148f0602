// Package proctree measures how much of the machine processes and their children use. It reads /proc; on a system
// without it every figure is zero.
package proctree

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of processor time in /proc: USER_HZ is 100 on Linux.
const tick = 10 * time.Millisecond

// process is one line of /proc/<pid>/stat.
type process struct {
	pid, parent int
	own         time.Duration
	reaped      time.Duration // the time of children that have ended and were waited for
}

// CPU returns the processor time of the process and its descendants, including those that have ended.
func CPU(pid int) time.Duration {
	var sum time.Duration
	for _, p := range tree(pid) {
		sum += p.own + p.reaped
	}
	return sum
}

// Memory returns the bytes of memory of the process and its descendants. Pages that several of them share count once.
func Memory(pid int) int64 {
	var sum int64
	for _, p := range tree(pid) {
		sum += memory(p.pid)
	}
	return sum
}

// Switches returns how often the living threads of the process and its descendants were switched away from, because
// they waited or because another thread took their core.
func Switches(pid int) int64 {
	var sum int64
	for _, p := range tree(pid) {
		threads, _ := filepath.Glob("/proc/" + strconv.Itoa(p.pid) + "/task/[0-9]*/status")
		for _, name := range threads {
			text, _ := os.ReadFile(name)
			waited, _ := field(string(text), "voluntary_ctxt_switches:")
			displaced, _ := field(string(text), "nonvoluntary_ctxt_switches:")
			sum += waited + displaced
		}
	}
	return sum
}

// tree returns the process and its living descendants.
func tree(pid int) []process {
	children := map[int][]process{}
	found := []process{}
	for _, p := range all() {
		if p.pid == pid {
			found = append(found, p)
		}
		children[p.parent] = append(children[p.parent], p)
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found
}

func all() []process {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var found []process
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has just ended
		}
		if p, ok := parse(string(text)); ok {
			found = append(found, p)
		}
	}
	return found
}

// parse reads "pid (command) state ppid …": the command may contain anything, even parentheses.
func parse(stat string) (process, bool) {
	before, _, _ := strings.Cut(stat, " ")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return process{}, false
	}
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	ticks := func(from int) time.Duration {
		return time.Duration(number(fields[from])+number(fields[from+1])) * tick
	}
	return process{pid: number(before), parent: number(fields[1]), own: ticks(11), reaped: ticks(13)}, true
}

// memory returns the proportional set size if the kernel reports it, and the resident size otherwise.
func memory(pid int) int64 {
	if text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup"); err == nil {
		if kib, ok := field(string(text), "Pss:"); ok {
			return kib << 10
		}
	}
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	kib, _ := field(string(text), "VmRSS:")
	return kib << 10
}

func field(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, name); found {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// Machine returns the processor time that this machine has used since it started, including the kernel's.
func Machine() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(text), "\n")
	var sum time.Duration
	for i, value := range strings.Fields(first) { // cpu user nice system idle iowait irq softirq …
		if i == 0 || i == 4 || i == 5 || i > 7 {
			continue
		}
		ticks, _ := strconv.Atoi(value)
		sum += time.Duration(ticks) * tick
	}
	return sum
}

// OwnCPU returns the processor time that this process has used, without its children.
func OwnCPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
