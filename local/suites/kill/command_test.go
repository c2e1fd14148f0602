package kill

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// cancel cancels a job some time after it was accepted, and notes when the API shows its end.
func (l *load) cancel(o *order) {
	if !retry.Pause(l.follow, rand.N(o.shape.cancelIn)) || !l.command(o, "cancel") {
		return
	}
	if job := l.awaitEnd(o.id); job != nil && job.Status == canceled {
		o.mu.Lock()
		o.cancelled = time.Now()
		o.mu.Unlock()
	}
}

// redrive retries a job that has failed.
func (l *load) redrive(o *order) {
	if job := l.awaitEnd(o.id); job != nil && job.Status == failed {
		l.command(o, "retry")
	}
}

// command sends a command until it is accepted; false if the job's state does not allow it any more.
func (l *load) command(o *order, command string) bool {
	for {
		number, err := l.fixture.api.Command(l.follow, o.id, command)
		var answer *client.Error
		switch {
		case err == nil:
			l.count(command + " kept")
			o.mu.Lock()
			o.commands = append(o.commands, given{command, number, time.Now()})
			o.mu.Unlock()
			return true
		case errors.As(err, &answer) && answer.Status == http.StatusConflict:
			l.count(command + " refused")
			return false
		case wrong(err):
			l.fixture.complain("%s job %s: %v", command, o.id, err)
			return false
		}
		if !retry.Pause(l.follow, 200*time.Millisecond) {
			return false
		}
	}
}

// awaitEnd returns a job as soon as the API shows its end; nil if following ends first.
func (l *load) awaitEnd(id string) *client.Job {
	for {
		job, err := l.fixture.api.Get(l.follow, id, 30*time.Second)
		if err == nil && job.Terminal() {
			return job
		}
		if wrong(err) {
			l.fixture.complain("GET job %s: %v", id, err)
			return nil
		}
		if !retry.Pause(l.follow, 200*time.Millisecond) {
			return nil
		}
	}
}
