package apidb

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

func timeOf(id uuid.UUID) time.Time { return time.Unix(id.Time().UnixTime()) }

// near fails the test if the time of an id is not close to the wanted one. IDs have milliseconds, and the machine may
// be slow.
func near(t *testing.T, id uuid.UUID, want time.Time) {
	t.Helper()
	if off := timeOf(id).Sub(want).Abs(); off > time.Minute {
		t.Errorf("the id's time is off by %s", off)
	}
}

// After a clock that was ahead is corrected, new ids must not have its times for hours.
func TestIDsRiseAndFollowAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	var made ids
	now := time.Now()
	last := made.next(now)
	for _, at := range []time.Time{now, now, now.Add(time.Millisecond), now.Add(-time.Millisecond), now} {
		next := made.next(at)
		if bytes.Compare(last[:], next[:]) >= 0 || next.Version() != 7 || next.Variant() != uuid.RFC4122 {
			t.Fatalf("%s after %s", next, last)
		}
		last = next
	}
	near(t, made.next(now.Add(time.Hour)), now.Add(time.Hour))
	near(t, made.next(now), now)
}

// The reading and the time since then give the database's time, whatever the wall clock shows.
func TestTheDatabasesTimeIsEstimatedFromItsLastReading(t *testing.T) {
	t.Parallel()
	c := newClock()
	theirs := c.started.Add(-time.Hour) // the database's time when the mark was zero
	c.take(time.Second, theirs.Add(2*time.Second), 3*time.Second)
	if off := c.at(10 * time.Second).Sub(theirs.Add(10 * time.Second)); off.Abs() > time.Second {
		t.Fatalf("off by %s after a reading that took 2 s", off)
	}
	estimate := c.at(0)
	c.take(20*time.Second, c.at(25*time.Second), 80*time.Second)
	if !c.at(0).Equal(estimate) {
		t.Fatal("a reading that agrees changed the estimate")
	}
	c.take(90*time.Second, theirs.Add(2*time.Hour), 90*time.Second)
	if got := c.at(90 * time.Second); !got.Equal(theirs.Add(2 * time.Hour)) {
		t.Fatalf("after an exact reading of %s the estimate is %s", theirs.Add(2*time.Hour), got)
	}
}

// There is one warning in each interval, not one for each reading.
func TestAMachineWhoseClockIsWrongIsNamedOnceInAWhile(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	ctx := telemetry.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&out, nil)))
	c := newClock()
	c.compare(ctx, time.Now().Add(idtime.Slack-time.Minute))
	if out.Len() > 0 {
		t.Fatalf("a small difference was logged: %s", out.String())
	}
	for range 3 {
		c.compare(ctx, time.Now().Add(time.Hour))
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "ahead=1h0m0s") {
		t.Fatalf("logged: %s", got)
	}
}
