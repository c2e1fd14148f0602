package kill

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
)

// process is one program that is restarted whenever it ends.
type process struct {
	name string // unique; its log is <name>.log
	bin  string
	env  []string
	log  string
	port string // of jobweaver serve

	mu       sync.Mutex
	number   int // of its lives
	cmd      *exec.Cmd
	ended    <-chan struct{}
	expected bool // the test ends it
	revived  bool // it is restarted when it ends by itself
	lives    []life
	bad      func(format string, args ...any)
}

// life is one run of a process.
type life struct {
	name   string // the process's name in the witness file, for example runjob-1#3
	began  time.Time
	ended  time.Time // zero: it lives
	byUs   bool      // the test ended it
	frozen []freeze
}

type freeze struct{ from, to time.Time }

// start begins a new life.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begin()
}

func (p *process) begin() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", p.name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	p.number++
	name := fmt.Sprintf("%s#%d", p.name, p.number)
	p.cmd = exec.Command(p.bin)
	p.cmd.Env = append([]string{"WITNESS_NAME=" + name, "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH")}, p.env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if p.ended, err = childproc.Start(p.cmd, syscall.SIGKILL); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	p.expected = false
	p.lives = append(p.lives, life{name: name, began: time.Now()})
	go p.watch(p.number, p.ended, p.cmd)
	return nil
}

// supervise restarts it whenever it ends by itself.
func (p *process) supervise() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.revived = true
}

// watch complains of an unexpected end, or restarts the process.
func (p *process) watch(number int, ended <-chan struct{}, cmd *exec.Cmd) {
	<-ended
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.number != number || p.expected {
		return
	}
	if !p.revived {
		p.bad("%s ended by itself: %s, see %s", p.name, cmd.ProcessState, p.log)
		return
	}
	p.lives[len(p.lives)-1].ended = time.Now()
	if err := p.begin(); err != nil {
		p.bad("%v", err)
	}
}

// kill ends it by SIGKILL.
func (p *process) kill() error { _, err := p.end(syscall.SIGKILL); return err }

// stop asks it to end, and returns its exit code.
func (p *process) stop() (int, error) { return p.end(syscall.SIGTERM) }

// stopInTime asks it to end, which it must do in time, though perhaps without having published all its events:
// PostgreSQL and the broker may be down.
func (p *process) stopInTime() error {
	began := time.Now()
	_, err := p.stop()
	if took := time.Since(began); took > stopWithin {
		return fmt.Errorf("it took %s to stop", took)
	}
	return err
}

// stopWithin is the default grace period of a function, and a margin.
const stopWithin = 35 * time.Second

func (p *process) end(sig syscall.Signal) (int, error) {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.expected = true
	p.mu.Unlock()
	if err := cmd.Process.Signal(sig); err != nil {
		return 0, fmt.Errorf("signal %s: %w", p.name, err)
	}
	<-ended
	p.mu.Lock()
	defer p.mu.Unlock()
	now := &p.lives[len(p.lives)-1]
	now.ended, now.byUs = time.Now(), true
	return cmd.ProcessState.ExitCode(), nil
}

// freeze stops it until wake is called.
func (p *process) freeze() (wake func() error, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("freeze %s: %w", p.name, err)
	}
	number := len(p.lives) - 1
	p.lives[number].frozen = append(p.lives[number].frozen, freeze{from: time.Now()})
	return func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		frozen := p.lives[number].frozen
		frozen[len(frozen)-1].to = time.Now()
		if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			return fmt.Errorf("wake %s: %w", p.name, err)
		}
		return nil
	}, nil
}

// all returns every life until now.
func (p *process) all() []life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]life(nil), p.lives...)
}

func (p *process) last() life {
	lives := p.all()
	return lives[len(lives)-1]
}
