package knative

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/shared/retry"
)

const (
	readyWithin = 30 * time.Second
	readyEvery  = 20 * time.Millisecond
)

// process is one container: a running function.
type process struct {
	name  string // the function's name and a number
	url   string
	log   string
	cmd   *exec.Cmd
	ended <-chan struct{}
}

// program is what a container runs, with all of its environment except the port.
type program struct {
	function string
	env      []string
	ready    string // the path of its readiness probe
	grace    time.Duration
}

// start runs a program until it is ready.
func (p program) start(ctx context.Context, dir string, number int) (*process, error) {
	port, err := freeport.Pick()
	if err != nil {
		return nil, err
	}
	one := &process{
		name: fmt.Sprintf("%s-%d", p.function, number), url: fmt.Sprintf("http://127.0.0.1:%d", port),
		log: filepath.Join(dir, p.function+".log"),
	}
	if one.cmd, err = commandOf(p.function); err != nil {
		return nil, err
	}
	one.cmd.Env = append(one.cmd.Env, p.env...)
	one.cmd.Env = append(one.cmd.Env, "HOST=127.0.0.1", fmt.Sprintf("PORT=%d", port), "METRICS_PORT=0", "TMPDIR="+dir)
	log, err := os.OpenFile(one.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own
	one.cmd.Stdout, one.cmd.Stderr = log, log
	if one.ended, err = childproc.Start(one.cmd, syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("start %s: %w", one.name, err)
	}
	if err := one.awaitReady(ctx, p.ready); err != nil {
		_ = one.cmd.Process.Kill()
		return nil, fmt.Errorf("%s is not ready: %w\n%s", one.name, err, tail(one.log))
	}
	return one, nil
}

// awaitReady probes as the kubelet would.
func (p *process) awaitReady(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := ask(ctx, p.url+path)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return errors.New("it has ended: " + p.cmd.ProcessState.String())
		default:
		}
		if !retry.Pause(ctx, readyEvery) {
			return err
		}
	}
}

func ask(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}

// stop asks it to end, which it must within its grace period and with exit code 0.
func (p *process) stop(grace time.Duration) error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s had ended by itself: %s\n%s", p.name, p.cmd.ProcessState, tail(p.log))
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.ended:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end within %s\n%s", p.name, grace, tail(p.log))
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with %d\n%s", p.name, code, tail(p.log))
	}
	return nil
}

// tail returns the end of a log.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}
