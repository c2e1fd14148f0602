package runjob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

	SettleLinger time.Duration `envconfig:"SETTLE_LINGER" default:"25ms" desc:"how long a frequent outcome may wait to be stored together with others; 0: never"`

	Build string `envconfig:"BUILD_ID" desc:"the build of a worker's handlers, on which jobs with keepBuild stay; empty: the release of JobWeaver"`

	RetainAttempts time.Duration `envconfig:"RETAIN_ATTEMPTS" default:"192h" desc:"how long the outcome of an attempt is kept at least, longer than topics keep records; 0: forever"`

	RetainCheckpoints time.Duration `envconfig:"RETAIN_CHECKPOINTS" default:"1440h" desc:"how long the checkpoint of a job that does not complete is kept after it was saved, at least 24h; 0: forever"`

	Sealing sealing.Config `ignored:"true"` // read as parts of their own
	Pull    PullQueues     `ignored:"true"`
	Follow  FollowQueues   `ignored:"true"`

	Within  time.Duration     `ignored:"true"` // SHUTDOWN_GRACE, when the process ends; 0: unknown
	Queues  []string          `ignored:"true"`
	Kafka   kafkaevent.Config `ignored:"true"`
	Version string            `ignored:"true"` // of this build
	Demand  *Demand           `ignored:"true"` // nil: handlers run at once
	As      string            `ignored:"true"` // the function that embeds this worker, in metrics; empty: runjob
}

// Parts are the structs into which the environment is read, each by itself.
func (c *Config) Parts() []any { return []any{c, &c.Sealing, &c.Pull, &c.Follow} }

// PullQueues lists the queues that the function pull serves, and no other worker.
type PullQueues struct {
	Names []string `envconfig:"PULL_QUEUES" default:"pull" desc:"queues of QUEUES whose attempts go to pull workers: pull serves these, and runjob the others"`
}

// FollowQueues lists which of the queues that are created through the API a worker serves.
type FollowQueues struct {
	Names []string `envconfig:"FOLLOW_QUEUES" default:"*" desc:"queues created through the API that a worker serves beside its QUEUES: names, beginnings of names with a * behind them, or * for all; empty: none"`
}

func (f FollowQueues) covers(queue string) bool {
	return slices.ContainsFunc(f.Names, func(name string) bool {
		beginning, isPattern := strings.CutSuffix(name, "*")
		return name == queue || isPattern && strings.HasPrefix(queue, beginning)
	})
}

func (f FollowQueues) check() error {
	for _, name := range f.Names {
		beginning := strings.TrimSuffix(name, "*")
		if wrong := jobspec.WrongQueue(beginning); wrong != "" && (beginning != "" || name == "") {
			return fmt.Errorf("FOLLOW_QUEUES: %q %s", name, wrong)
		}
	}
	return nil
}

// Of returns those of the queues that pull serves; nil: none.
func (p PullQueues) Of(queues []string) (own []string) {
	for _, queue := range queues {
		if slices.Contains(p.Names, queue) {
			own = append(own, queue)
		}
	}
	return own
}

// KeepOff removes the queues that pull serves.
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
	if err := c.Follow.check(); err != nil {
		return err
	}
	if c.PoolSize < 1 || c.PoolSize > 10_000 {
		return fmt.Errorf("POOL_SIZE: %d is not within 1 and 10000", c.PoolSize)
	}
	if c.QueueSize < 0 || c.QueueSize > 100_000 {
		return fmt.Errorf("QUEUE_SIZE: %d is not within 0 and 100000", c.QueueSize)
	}
	if c.SettleLinger < 0 || c.SettleLinger > time.Second {
		return fmt.Errorf("SETTLE_LINGER: %v is not within 0s and 1s", c.SettleLinger)
	}
	if c.Grace < 0 {
		return fmt.Errorf("GRACE: %v is negative", c.Grace)
	}
	if c.Within > 0 && c.Grace >= c.Within {
		return fmt.Errorf("GRACE: %v is not shorter than SHUTDOWN_GRACE, which is %v", c.Grace, c.Within)
	}
	// Otherwise an old record could find nothing of its attempt in the database, and start it again.
	if c.RetainAttempts != 0 && c.RetainAttempts < jobevent.RecordsGone {
		return fmt.Errorf("RETAIN_ATTEMPTS: %v is shorter than %v, for which topics may keep records",
			c.RetainAttempts, jobevent.RecordsGone)
	}
	if c.RetainCheckpoints != 0 && c.RetainCheckpoints < 24*time.Hour {
		return fmt.Errorf("RETAIN_CHECKPOINTS: %v is shorter than 24h", c.RetainCheckpoints)
	}
	return nil
}

// fence returns how old a record may be: the database must still know its attempt, or it would start again.
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

// timing has the periods that the delivery protocol fixes. They are not settings, but tests use other values.
type timing struct {
	heartbeatAtLeast time.Duration // between heartbeats when nothing changes
	heartbeatAtMost  time.Duration // between heartbeats when something does
	heartbeatHurried time.Duration // between heartbeats when other processes ask for other attempts
	heartbeatAgain   time.Duration // after a heartbeat that failed
	silence          time.Duration // without a heartbeat: start nothing; with all heartbeats: reap
	heldAtMost       time.Duration // waiting for a slot, before other workers with free slots get the attempt
	cancelPatience   time.Duration // after a cancel, before the attempt is settled even if its handler has not returned
	stopPatience     time.Duration // the same when the worker stops
	flushAtMost      time.Duration // for settling and publishing, after the grace period
	passAfter        time.Duration // of running, before an attempt no longer holds back the commit of others
	leaveAtMost      time.Duration // for the last heartbeat
	logEvery         time.Duration // between events with the log lines of a running attempt
	cleanupEvery     time.Duration
}

var defaultTiming = timing{
	heartbeatAtLeast: 3 * time.Second,
	heartbeatAtMost:  time.Second,
	heartbeatHurried: 100 * time.Millisecond,
	heartbeatAgain:   500 * time.Millisecond,
	silence:          workerdb.Silence,
	heldAtMost:       time.Second,
	cancelPatience:   5 * time.Second,
	stopPatience:     time.Second,
	flushAtMost:      2 * time.Second,
	passAfter:        30 * time.Second,
	leaveAtMost:      time.Second,
	logEvery:         time.Second,
	cleanupEvery:     10 * time.Minute,
}

const (
	maxBatch             = 500  // attempts in one statement
	maxSaves             = 64   // checkpoints in one statement, of at most 64 KiB each
	maxUnpublished       = 2000 // outcomes that wait to be settled or published; with more no attempt is claimed
	maxUnpublishedBytes  = 16 << 20
	maxTakeBytes         = 8 << 20 // of records, at once
	maxGap               = 10_000  // done records that wait for an earlier one, before the worker logs a warning
	maxHeldBack          = 100     // done records that wait for an earlier one whose attempt has run for long
	maxProgress          = 256     // bytes of a message in a heartbeat, which lists all attempts
	maxHeartbeatAttempts = 500     // in one event
	maxCancels           = 10_000  // requests to cancel that wait for the store
	cleanupShare         = 10      // at most 1 / cleanupShare of the time goes into deleting old attempts
	retryAtLeast         = 100 * time.Millisecond
	retryAtMost          = 2 * time.Second
	maxValueBytes        = 1 << 20 // of a rejected record
)
