package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
)

// process is one program that is started again and again.
type process struct {
	name    string
	log     string // its file
	command func() *exec.Cmd
	onDeath syscall.Signal // that it is sent when the harness dies
	diary   *diary

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended <-chan struct{}
	asked bool // to end
}

// diary is what became of processes.
type diary struct {
	mu     sync.Mutex
	exits  []exit
	frozen []span
}

// exit is an end that nobody asked for.
type exit struct {
	process string
	at      time.Time
	state   string
}

// span is a time in which something was the case, of a process or of a fault.
type span struct {
	what     string
	from, to time.Time
}

func (d *diary) freezes() []span {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]span(nil), d.frozen...)
}

func (d *diary) ends() []exit {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]exit(nil), d.exits...)
}

// start starts the program, unless it runs. It is started anew when it ends by itself, as a cluster would do.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.startLocked()
}

func (p *process) startLocked() error {
	if p.running() {
		return nil
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", p.name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	p.cmd, p.asked = p.command(), false
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if p.ended, err = childproc.Start(p.cmd, p.onDeath); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	go p.watch(p.cmd, p.ended)
	return nil
}

// watch notes an end that nobody asked for, and starts the program anew.
func (p *process) watch(cmd *exec.Cmd, ended <-chan struct{}) {
	<-ended
	p.mu.Lock()
	asked := p.asked || p.cmd != cmd
	p.mu.Unlock()
	if asked {
		return
	}
	p.diary.mu.Lock()
	p.diary.exits = append(p.diary.exits, exit{p.name, time.Now(), cmd.ProcessState.String()})
	p.diary.mu.Unlock()
	time.Sleep(time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked && p.cmd == cmd {
		_ = p.startLocked() // the run fails by itself when it does not start
	}
}

func (p *process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// end sends a signal that ends the process and its children, and waits for the end. One that does not end in time is
// killed, which is an error.
func (p *process) end(sig syscall.Signal, within time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = true
	if !p.running() {
		return nil
	}
	pid := p.cmd.Process.Pid
	below := children(pid)
	_ = p.cmd.Process.Signal(sig) // an error means that it has ended
	if sig == syscall.SIGKILL {
		for _, child := range below {
			_ = syscall.Kill(child, sig)
		}
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(within):
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	return fmt.Errorf("%s did not end within %s of %s", p.name, within, sig)
}

// pid is that of the running program; 0: none runs.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return 0
	}
	return p.cmd.Process.Pid
}

func (p *process) kill() error { return p.end(syscall.SIGKILL, time.Minute) }

// stopWithin is the grace that a function has by default, and a little.
const stopWithin = 35 * time.Second

func (p *process) stop() error { return p.end(syscall.SIGTERM, stopWithin) }

// freeze stops the process and its children until the returned function wakes them.
func (p *process) freeze() (wake func() error, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil, fmt.Errorf("freeze %s: it does not run", p.name)
	}
	pid, from := p.cmd.Process.Pid, time.Now()
	all := append([]int{pid}, children(pid)...)
	for _, one := range all {
		_ = syscall.Kill(one, syscall.SIGSTOP)
	}
	return func() error {
		for _, one := range all {
			_ = syscall.Kill(one, syscall.SIGCONT)
		}
		p.diary.mu.Lock()
		defer p.diary.mu.Unlock()
		p.diary.frozen = append(p.diary.frozen, span{p.name, from, time.Now()})
		return nil
	}, nil
}

// children lists the processes that pid has started.
func children(pid int) (found []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has just ended
		}
		// "pid (command) state ppid …": the command may hold anything, parentheses too.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			found = append(found, child)
		}
	}
	return found
}
