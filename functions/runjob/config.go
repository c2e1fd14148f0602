package runjob

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// Config configures a worker.
type Config struct {
	PoolSize  int           `envconfig:"POOL_SIZE" default:"12" desc:"attempts that a worker runs at once"`
	QueueSize int           `envconfig:"QUEUE_SIZE" default:"100" desc:"attempts that wait in a worker for a slot"`
	Grace     time.Duration `envconfig:"GRACE" default:"25s" desc:"how long running attempts may continue when a worker stops"`

	RetainAttempts time.Duration `envconfig:"RETAIN_ATTEMPTS" default:"192h" desc:"how long the outcome of an attempt is kept, longer than topics keep records; 0: forever"`

	Sealing sealing.Config `ignored:"true"` // parts of their own
	Pull    PullQueues     `ignored:"true"`

	Within  time.Duration     `ignored:"true"` // SHUTDOWN_GRACE, after which the process ends; 0: unknown
	Queues  []string          `ignored:"true"`
	Kafka   kafkaevent.Config `ignored:"true"`
	Version string            `ignored:"true"` // of this build
	Demand  *Demand           `ignored:"true"` // nil: handlers run at once
	As      string            `ignored:"true"` // the function that embeds this worker, in metrics; empty: runjob
}

// Parts are the structs into which the environment is read, each by itself.
func (c *Config) Parts() []any { return []any{c, &c.Sealing, &c.Pull} }

// PullQueues lists the queues that the function pull serves, and no other worker.
type PullQueues struct {
	Names []string `envconfig:"PULL_QUEUES" default:"pull" desc:"queues of QUEUES whose attempts go to pull workers: pull serves these, and runjob the others"`
}

// Of are those of some queues that pull serves; nil: none.
func (p PullQueues) Of(queues []string) (own []string) {
	for _, queue := range queues {
		if slices.Contains(p.Names, queue) {
			own = append(own, queue)
		}
	}
	return own
}

// KeepOff leaves the queues to pull that are its own.
func (c *Config) KeepOff() {
	isPull := func(queue string) bool { return slices.Contains(c.Pull.Names, queue) }
	c.Queues = slices.DeleteFunc(slices.Clone(c.Queues), isPull)
}

func (c Config) check() error {
	if len(c.Queues) == 0 {
		return errors.New("QUEUES: no queue for this worker: those of PULL_QUEUES are for pull, the others for runjob")
	}
	if err := jobspec.CheckQueues(c.Queues); err != nil {
		return err
	}
	if c.PoolSize < 1 || c.PoolSize > 10_000 {
		return fmt.Errorf("POOL_SIZE: %d is not within 1 and 10000", c.PoolSize)
	}
	if c.QueueSize < 0 || c.QueueSize > 100_000 {
		return fmt.Errorf("QUEUE_SIZE: %d is not within 0 and 100000", c.QueueSize)
	}
	if c.Grace < 0 {
		return fmt.Errorf("GRACE: %v is negative", c.Grace)
	}
	if c.Within > 0 && c.Grace >= c.Within {
		return fmt.Errorf("GRACE: %v is not shorter than SHUTDOWN_GRACE, which is %v", c.Grace, c.Within)
	}
	// Or an old record could find no trace of its attempt, and start it again.
	if c.RetainAttempts != 0 && c.RetainAttempts < jobevent.RecordsGone {
		return fmt.Errorf("RETAIN_ATTEMPTS: %v is shorter than %v, for which topics may keep records",
			c.RetainAttempts, jobevent.RecordsGone)
	}
	return nil
}

// fence: an old record must find the row of its attempt, or it starts the attempt again.
func (c Config) fence() (fence funchost.Fence) {
	if c.RetainAttempts == 0 {
		return fence // kept for ever
	}
	fence = funchost.Fence{Setting: "RETAIN_ATTEMPTS", Age: c.RetainAttempts}
	for _, queue := range c.Queues {
		fence.Topics = append(fence.Topics, jobevent.RunTopic(queue))
	}
	return fence
}

// timing holds the periods that the delivery protocol fixes, so they are no settings; tests set others.
type timing struct {
	beatAtLeast    time.Duration // between beats when nothing changes
	beatAtMost     time.Duration // between beats when something does
	beatAgain      time.Duration // after a beat that failed
	silence        time.Duration // without a heartbeat: start nothing; with them all along: settle for silent workers
	heldAtMost     time.Duration // before an attempt is handed back to workers with free slots
	cancelPatience time.Duration // for a handler to return after its cancel, before it is settled anyway
	stopPatience   time.Duration // the same for a worker that stops
	flushAtMost    time.Duration // for settling and publishing, beyond what is left of the grace period
	passAfter      time.Duration // before an attempt that runs holds back the commit of others no more
	leaveAtMost    time.Duration // for the last heartbeat
	logEvery       time.Duration // between events of lines of an attempt that runs
	cleanupEvery   time.Duration
}

var defaultTiming = timing{
	beatAtLeast:    3 * time.Second,
	beatAtMost:     time.Second,
	beatAgain:      500 * time.Millisecond,
	silence:        workerdb.Silence,
	heldAtMost:     time.Second,
	cancelPatience: 5 * time.Second,
	stopPatience:   time.Second,
	flushAtMost:    2 * time.Second,
	passAfter:      30 * time.Second,
	leaveAtMost:    time.Second,
	logEvery:       time.Second,
	cleanupEvery:   10 * time.Minute,
}

const (
	maxBatch            = 500  // attempts in one statement
	maxUnpublished      = 2000 // outcomes that wait to be settled or published; above it nothing is taken
	maxUnpublishedBytes = 16 << 20
	maxTakeBytes        = 8 << 20 // of records, at once
	maxGap              = 10_000  // done records that wait for an earlier one, before that is warned of
	maxHeldBack         = 100     // done records that wait for an earlier one whose attempt has run for long
	maxProgress         = 256     // bytes of a message in a beat, which lists all attempts
	maxBeatAttempts     = 500     // in one event
	maxCancels          = 10_000  // wishes to cancel that wait for the store
	cleanupShare        = 10      // of the time at most one part goes into deleting what is old
	retryAtLeast        = 100 * time.Millisecond
	retryAtMost         = 2 * time.Second
	maxValueBytes       = 1 << 20 // of a rejected record
)
