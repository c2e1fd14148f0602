package projection

import (
	"fmt"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/auditstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// leastRetention is the least value that the scheduler accepts, too.
const leastRetention = 24 * time.Hour

// Config has the settings of how long ended jobs, audit entries and rejected records are kept.
type Config struct {
	Broker    bool `ignored:"true"` // events go to K_SINK, and no topics
	NewBroker bool `ignored:"true"` // the broker has begun with this process: earlier statuses may be lost

	Completed time.Duration `envconfig:"RETAIN_COMPLETED" default:"168h" desc:"how long COMPLETED jobs are kept, at least 24h; 0: forever"`
	Failed    time.Duration `envconfig:"RETAIN_FAILED" default:"720h" desc:"how long FAILED jobs are kept, at least 24h; 0: forever"`
	Cancelled time.Duration `envconfig:"RETAIN_CANCELLED" default:"168h" desc:"how long CANCELLED jobs are kept, at least 24h; 0: forever"`
	Forget    time.Duration `envconfig:"FORGET_AFTER" default:"192h" desc:"how long the tombstone of a deleted job is kept, longer than topics keep records"`
	Audit     time.Duration `envconfig:"RETAIN_AUDIT" default:"720h" desc:"how long entries of the audit log are kept, at least 720h; 0: forever"`
	Events    time.Duration `envconfig:"RETAIN_EVENTS" default:"168h" desc:"how long an event is kept for handlers that begin to wait for it later, at least 24h; 0: forever"`
	Rejected  time.Duration `envconfig:"RETAIN_REJECTED" default:"720h" desc:"how long rejected records are kept, at least 24h; 0: forever; only the newest 10,000, and 256 MiB, are kept"`
}

func (c Config) check() error {
	for _, setting := range []struct {
		name       string
		age, least time.Duration
	}{
		{"RETAIN_COMPLETED", c.Completed, leastRetention}, {"RETAIN_FAILED", c.Failed, leastRetention},
		{"RETAIN_CANCELLED", c.Cancelled, leastRetention}, {"RETAIN_AUDIT", c.Audit, auditstore.MinAge},
		{"RETAIN_EVENTS", c.Events, leastRetention}, {"RETAIN_REJECTED", c.Rejected, leastRetention},
		{"FORGET_AFTER", c.Forget, jobevent.RecordsGone},
	} {
		if setting.age != 0 && setting.age < setting.least || setting.age < 0 {
			return fmt.Errorf("%s: %s is shorter than %s", setting.name, setting.age, setting.least)
		}
	}
	return nil
}
