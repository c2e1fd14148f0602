package apidbtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// ScheduleRules are the rules of an installation with the default queue.
var ScheduleRules = schedulestore.Rules{Rules: jobspec.Rules{Queues: []string{"default"}}}

// Schedule reads a schedule of this name. fields is JSON that stands in front of a small job.
func Schedule(t testing.TB, name, fields string) apibody.Schedule {
	t.Helper()
	asked, err := apibody.DecodeSchedule(fmt.Appendf(nil,
		`{"name": %q, %s, "job": {"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]}}}`,
		name, fields))
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

// Ago sets a schedule as if nothing had fired it for so long.
func (f *Fixture) Ago(t testing.TB, name string, age time.Duration) {
	t.Helper()
	f.Exec(t, "update schedules set next_at = date_trunc('second', now()) - $2::interval where name = $1", name, age)
}

// Once has all schedules fire when they are to fire next, and then not for a year: no second tick comes while a test
// looks at the first.
func (f *Fixture) Once(t testing.TB) {
	t.Helper()
	f.Exec(t, `update schedules set cron = to_char(next_at at time zone 'UTC', 'FMSS FMMI FMHH24 FMDD FMMM "*"')`)
}
