package schedulestore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
)

// manyAndFew creates n due schedules of one owner, and a single one of another that is due for a shorter time.
func (h *fixture) manyAndFew(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		h.createOf(t, "many", fmt.Sprintf("many-%d", i), eachYear+`, "missed": "all"`)
	}
	h.createOf(t, "few", "few", eachYear+`, "missed": "all"`)
	h.Exec(t, `update schedules set next_at = date_trunc('second', now()) -
		case owner_id when 'many' then interval '10 s' else interval '1 s' end`)
	h.Once(t)
}

// One owner has more due schedules than a pass takes, all due for longer. Another owner's single one is in the same
// pass: otherwise one owner could stop the schedules of all others.
func TestOwnersSchedulesTakeTurns(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.manyAndFew(t, 120)
	fired, next := h.fire(t)
	owners := map[string]int{}
	for _, job := range fired.Jobs {
		owners[job.OwnerID]++
	}
	if owners["few"] != 1 || owners["many"] != 99 || next != 0 {
		t.Errorf("a pass fires %v, the next one is in %s", owners, next)
	}
}

// Missed ticks of one owner must not fill a pass.
func TestAnOwnersMissedTicksAreAQuarterOfAPass(t *testing.T) {
	t.Parallel()
	h := open(t)
	for owner, late := range map[string]time.Duration{"many": 24 * time.Hour, "few": 10 * time.Second} {
		h.createOf(t, owner, owner, eachSecond+`, "missed": "all"`)
		h.Ago(t, owner, late)
	}
	fired, next := h.fire(t)
	owners := map[string]int{}
	for _, job := range fired.Jobs {
		owners[job.OwnerID]++
	}
	if owners["many"] != 250 || owners["few"] < 10 || next != 0 {
		t.Errorf("a pass fires %v, the next one is in %s", owners, next)
	}
}

// Whatever an owner's schedules request, they make no more jobs a second than RATE_LIMIT_JOBS. Schedules that wait
// for that are not looked at in each pass, and delay no other owner's.
func TestAnOwnersSchedulesKeepToItsRateOfJobs(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.manyAndFew(t, 40)
	rules := apidbtest.ScheduleRules
	rules.RateLimitJobs = 15
	began, fired := time.Now(), map[string]int{}
	for passes := 1; fired["many"] < 40; passes++ {
		some, next, err := h.Schedules.Fire(t.Context(), rules, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range some.Jobs {
			fired[job.OwnerID]++
		}
		if most := 15 * (1 + time.Since(began).Seconds()); float64(fired["many"]) > most || fired["few"] != 1 {
			t.Fatalf("%d passes fire %v in %s", passes, fired, time.Since(began))
		}
		if fired["many"] < 40 && (next < time.Millisecond || next > time.Second) {
			t.Fatalf("after %d passes the next one is in %s", passes, next)
		}
		<-time.After(min(next, time.Second))
	}
}

// Operations of one owner must not delay another owner's.
func TestOwnersOperationsTakeTurns(t *testing.T) {
	t.Parallel()
	h := open(t)
	insert := func(owner string) uuid.UUID {
		op, _, err := h.Operations.InsertOperation(t.Context(), operationstore.NewOperation{
			ID: uuid.Must(uuid.NewV7()), By: "me", Whose: apidb.OwnerOf(owner),
			Request: apibody.Operation{Command: "cancel", Filter: &apibody.Filter{Queue: "default"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return op.ID
	}
	var many []uuid.UUID
	for range 5 {
		many = append(many, insert("many"))
	}
	few := insert("few")
	for _, c := range []struct {
		after uuid.UUID
		want  []uuid.UUID
	}{
		{uuid.Nil, []uuid.UUID{many[0], few, many[1]}},
		{many[1], []uuid.UUID{many[2], few, many[3]}},
		{few, []uuid.UUID{many[0], few, many[1]}},
	} {
		if got, err := h.Operations.UnfinishedOperations(t.Context(), c.after, 3); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("after %s: %v, %v, and not %v", c.after, got, err, c.want)
		}
	}
}

func (h *fixture) createOf(t *testing.T, owner, name, fields string) {
	t.Helper()
	if _, err := h.Schedules.Create(t.Context(), nil, apidb.OwnerOf(owner), apidbtest.Schedule(t, name, fields)); err != nil {
		t.Fatal(err)
	}
}
