package apidbtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// ScheduleRules are the rules of an installation that has only the default queue.
var ScheduleRules = schedulestore.Rules{Rules: jobspec.Rules{Queues: []string{"default"}}}

// Schedule parses a schedule with this name. fields is JSON that stands in front of a small job.
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

// Ago sets a schedule back, as if it had not fired for age.
func (f *Fixture) Ago(t testing.TB, name string, age time.Duration) {
	t.Helper()
	f.Exec(t, "update schedules set next_at = date_trunc('second', now()) - $2::interval where name = $1", name, age)
}

// Once makes all schedules fire at their next instant and then not for a year, so that no second tick comes while a
// test checks the first.
func (f *Fixture) Once(t testing.TB) {
	t.Helper()
	f.Exec(t, `update schedules set cron = to_char(next_at at time zone 'UTC', 'FMSS FMMI FMHH24 FMDD FMMM "*"')`)
}
