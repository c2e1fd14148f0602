package installation

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
)

// process is one program that is restarted whenever it ends.
type process struct {
	Name    string
	Log     string // path
	command func() *exec.Cmd
	onDeath syscall.Signal // sent to it when the harness dies
	diary   *diary

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended <-chan struct{}
	asked bool // it was asked to end
}

// diary records freezes and unexpected ends of processes.
type diary struct {
	mu     sync.Mutex
	exits  []Exit
	frozen []Interval
}

// Exit is the end of a process without a fault.
type Exit struct {
	Process string
	At      time.Time
	State   string
}

// Interval is a time in which a process or a fault was in some state.
type Interval struct {
	What     string
	From, To time.Time
}

// Freezes returns the times in which processes were frozen.
func (d *diary) Freezes() []Interval {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Interval(nil), d.frozen...)
}

// Ends returns the ends without a fault.
func (d *diary) Ends() []Exit {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Exit(nil), d.exits...)
}

// Start starts the program, unless it runs. It is restarted when it ends by itself, as in a cluster.
func (p *process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.startLocked()
}

func (p *process) startLocked() error {
	if p.running() {
		return nil
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	p.cmd, p.asked = p.command(), false
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if p.ended, err = childproc.Start(p.cmd, p.onDeath); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	go p.watch(p.cmd, p.ended)
	return nil
}

// watch records an unexpected end, and restarts the program.
func (p *process) watch(cmd *exec.Cmd, ended <-chan struct{}) {
	<-ended
	p.mu.Lock()
	asked := p.asked || p.cmd != cmd
	p.mu.Unlock()
	if asked {
		return
	}
	p.diary.mu.Lock()
	p.diary.exits = append(p.diary.exits, Exit{p.Name, time.Now(), cmd.ProcessState.String()})
	p.diary.mu.Unlock()
	time.Sleep(time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked && p.cmd == cmd {
		_ = p.startLocked() // the run fails anyway if it does not start
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

// end sends a signal that ends the process and its children, and waits for the end. A process that does not end in
// time is killed, which is an error.
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
	return fmt.Errorf("%s did not end within %s of %s", p.Name, within, sig)
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

// Kill kills the process.
func (p *process) Kill() error { return p.end(syscall.SIGKILL, time.Minute) }

// stopWithin is the default grace period of a function, and a margin.
const stopWithin = 35 * time.Second

// Stop stops the process as a cluster does.
func (p *process) Stop() error { return p.end(syscall.SIGTERM, stopWithin) }

// Freeze stops the process and its children until wake is called.
func (p *process) Freeze() (wake func() error, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil, fmt.Errorf("freeze %s: it does not run", p.Name)
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
		p.diary.frozen = append(p.diary.frozen, Interval{p.Name, from, time.Now()})
		return nil
	}, nil
}

// children lists the child processes of pid.
func children(pid int) (found []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has just ended
		}
		// "pid (command) state ppid …": the command may contain anything, also parentheses.
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

// killCaller kills the worker that sent a request, and restarts it.
func (h *Installation) killCaller(remote string) error {
	_, port, err := net.SplitHostPort(remote)
	if err != nil {
		return err
	}
	inode, err := SocketAt(port)
	if err != nil {
		return err
	}
	for _, f := range h.Workers() {
		if pid := f.pid(); pid != 0 && Holds(pid, inode) {
			if err := f.Kill(); err != nil {
				return err
			}
			return f.Start()
		}
	}
	return fmt.Errorf("no worker has the socket %s", inode)
}

// SocketAt returns the inode of the connected socket of 127.0.0.1 with a local port.
func SocketAt(port string) (inode string, err error) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", err
	}
	table, err := os.Open("/proc/net/tcp")
	if err != nil {
		return "", err
	}
	defer func() { _ = table.Close() }()
	for lines := bufio.NewScanner(table); lines.Scan(); {
		// "sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode …", numbers in hexadecimal.
		fields := strings.Fields(lines.Text())
		const local, inodeField = 1, 9
		if len(fields) > inodeField && strings.HasSuffix(fields[local], fmt.Sprintf(":%04X", number)) &&
			fields[inodeField] != "0" { // an earlier connection of the port, which is closed
			return fields[inodeField], nil
		}
	}
	return "", fmt.Errorf("no socket has port %s", port)
}

// Holds reports whether a process has a socket open.
func Holds(pid int, inode string) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return slices.ContainsFunc(files, func(name string) bool {
		to, err := os.Readlink(name)
		return err == nil && to == "socket:["+inode+"]"
	})
}
