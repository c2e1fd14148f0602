package interplay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/functions"
	"github.com/jobweaver/jobweaver/functions/command"
	"github.com/jobweaver/jobweaver/functions/dispatch"
	"github.com/jobweaver/jobweaver/functions/ingest"
	"github.com/jobweaver/jobweaver/functions/outcome"
	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/functions/retention"
	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// childFunction names the one function that a child runs.
const childFunction = "INTERPLAY_FUNCTION"

// apartNames are the functions of which a second instance runs, as a process of its own, in an order that a seed can
// draw from. A fault may kill or stop that process alone: it then holds partitions, locks or attempts while all other
// functions go on.
var apartNames = []string{runjob.Name, dispatch.Name, projection.Name, outcome.Name, ingest.Name, command.Name}

// second is the process of one function.
type second struct {
	cmd   *exec.Cmd
	ended <-chan struct{}
}

// launchApart starts the second instance of a function.
func (i *Installation) launchApart(name string) error {
	database := "jobweaver_scheduler"
	switch name {
	case projection.Name:
		database = "jobweaver_api"
	case runjob.Name:
		database = "jobweaver_worker"
	}
	url, err := migrations.WithDatabase(i.Postgres.URL(), database)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(i.dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	self, err := os.Executable()
	if err != nil {
		return err
	}
	data := filepath.Join(i.dir, "installation")
	s := &second{cmd: exec.Command(self)}
	s.cmd.Env = append(i.settings(), childFunction+"="+name, "DATABASE_URL="+url+"&role="+migrations.Role(name),
		"KAFKA_BROKERS="+i.broker, "QUEUES=default,pull", "HOST=127.0.0.1", "PORT=0", "LOG_LEVEL=warn",
		"OUTBOUND_ALLOW=127.0.0.0/8", "CALLBACK_URL="+i.URL+"/api/jobs/callback",
		"WEBHOOK_SECRETS_FILE="+filepath.Join(data, "webhook.secret"), "CALLBACK_SECRETS_FILE="+filepath.Join(data, "callback.secret"))
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.ended, err = childproc.Start(s.cmd, syscall.SIGKILL)
	i.seconds[name] = s
	return err
}

// disturbApart kills a second instance, or stops it for some time.
func (i *Installation) disturbApart(ctx context.Context, kind, name string, d time.Duration) error {
	s := i.seconds[name]
	select {
	case <-s.ended:
		return fmt.Errorf("%s has ended by itself: %s", name, s.cmd.ProcessState)
	default:
	}
	if kind == "kill one" {
		err := s.cmd.Process.Kill()
		<-s.ended
		return errors.Join(err, i.launchApart(name))
	}
	err := s.cmd.Process.Signal(syscall.SIGSTOP)
	retry.Pause(ctx, d)
	return errors.Join(err, s.cmd.Process.Signal(syscall.SIGCONT))
}

func (i *Installation) endApart() (err error) {
	for _, s := range i.seconds {
		select {
		case <-s.ended:
			continue
		default:
		}
		err = errors.Join(err, s.cmd.Process.Kill())
		<-s.ended
	}
	return err
}

// RunApart runs one function if this process was started for that; then it does not return.
func RunApart() {
	name, ok := os.LookupEnv(childFunction)
	if !ok {
		return
	}
	wire := functions.Find(name)
	if name == retention.Name {
		wire = retainApart
	}
	funchost.Main(name, wire)
	os.Exit(0)
}
