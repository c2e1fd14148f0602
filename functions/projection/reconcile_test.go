package projection_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

func TestAnUnconfirmedJobIsRepublishedAtGrowingAges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		broker bool
		ages   []time.Duration
	}{
		"on topics": {false, []time.Duration{10, 20, 40, 80, 160, 300, 600, 900}},
		// A Broker that is slow, and has lost nothing, gets the statuses of a burst once.
		"behind a Broker": {true, []time.Duration{40, 80, 160, 300, 600, 900}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openWith(t, projection.Config{Broker: c.broker})
			h.wantRepublished(c.ages)
		})
	}
}

func (h *fixture) wantRepublished(ages []time.Duration) {
	h.t.Helper()
	at := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	first := h.accept(func(r *jobspec.Request) {
		r.RunAt, r.Priority, r.OwnerID = &at, 4, "acme"
		r.RetryPolicy = &retrypolicy.Policy{Type: retrypolicy.Fixed, DelayMs: 7}
	})
	if got := h.pass(); len(got) != 0 {
		h.t.Fatalf("a young job is republished: %v", got)
	}
	for step := 5 * time.Second; len(ages) > 0; {
		h.grow(step)
		for _, e := range h.next() {
			var age time.Duration
			if err := h.conn.QueryRow(h.t.Context(), "select now() - created_at from jobs").Scan(&age); err != nil {
				h.t.Fatal(err)
			}
			if due := ages[0] * time.Second; age < due || age > due*5/4+2*step {
				h.t.Fatalf("published at the age of %s, due at %s and up to a quarter later", age, due)
			}
			ages = ages[1:]
			if e.ID() != first.ID() || e.Source() != first.Source() || e.Type() != first.Type() || e.Subject() != first.Subject() ||
				fmt.Sprint(e.Event().Extensions()) != fmt.Sprint(first.Event().Extensions()) {
				h.t.Fatalf("got %s\nfirst %s", e, first)
			}
		}
	}
}

// next runs the next pass at once.
func (h *fixture) next() []jobevent.Item {
	h.Rewind()
	return h.pass()
}

func TestARepublishedEventIsIdentical(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.accept(func(r *jobspec.Request) { r.Delay = time.Hour })
	h.exec("update jobs set created_at = created_at - interval '13 s'")
	again := h.pass()
	if len(again) != 1 {
		t.Fatalf("got %v", again)
	}
	var want, got map[string]any
	if err := json.Unmarshal(first.Data(), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again[0].Data(), &got); err != nil {
		t.Fatal(err)
	}
	delete(want, "createdAt")
	delete(got, "createdAt")
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("again %v\nfirst %v", got, want)
	}
}

func TestAfterAStartRequestsOlderThanTenSecondsArePublished(t *testing.T) {
	t.Parallel()
	h := open(t)
	for range 3 {
		h.accept()
	}
	h.grow(10 * time.Second)
	h.grow(5 * time.Second) // between two ages
	h.accept()
	if got := h.pass(); len(got) != 3 {
		t.Errorf("got %d", len(got))
	}
	if got := h.next(); len(got) != 0 {
		t.Errorf("and %d again", len(got))
	}
}

func TestABurstIsNotRepublishedAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	const burst = 50
	for range burst {
		h.accept()
	}
	h.grow(60 * time.Second)
	if got := h.pass(); len(got) != burst {
		t.Errorf("got %d at first", len(got))
	}
	h.grow(30 * time.Second)
	if got := h.next(); len(got) == 0 || len(got) == burst {
		t.Errorf("at the age of 90 s, %d of %d were published", len(got), burst)
	}
}

func TestAConfirmedJobIsNotRepublished(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.accept().Subject()
	h.handle(status(t, id, 1, jobstate.Completed))
	h.grow(time.Minute)
	if got := h.pass(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestACommandIsRepublishedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.accept().Subject()
	h.handle(status(t, id, 1, jobstate.Completed), status(t, id, 2, jobstate.Failed))
	kept, err := h.store.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, uuid.MustParse(id), jobevent.CommandRetry, "me")
	if err != nil {
		t.Fatal(err)
	}
	first, err := apievent.Command(kept)
	if err != nil {
		t.Fatal(err)
	}
	h.pass()
	for _, age := range []time.Duration{10 * time.Second, 10 * time.Second, 20 * time.Second} {
		h.grow(age)
		got := h.next()
		if len(got) != 1 || got[0].ID() != first.ID() || string(got[0].Data()) != string(first.Data()) ||
			fmt.Sprint(got[0].Event().Extensions()) != fmt.Sprint(first.Event().Extensions()) {
			t.Fatalf("got %v\nfirst %s", got, first)
		}
	}
	h.handle(status(t, id, 3, jobstate.Pending, func(s *jobevent.Status) {
		s.LastCommand = &jobevent.CommandResult{Number: 1, Command: "retry", Applied: true}
	}))
	h.grow(40 * time.Second)
	for _, e := range h.next() {
		if e.ID() == first.ID() {
			t.Error("an answered command is republished")
		}
	}
}

func TestJobsInFlightAreAskedAboutEachMinute(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.accept().Subject()
	h.handle(status(t, id, 7, jobstate.Running))
	if got := h.pass(); len(got) != 0 {
		t.Fatalf("got %v", got)
	}
	seen := map[string]bool{}
	for range 3 {
		h.grow(time.Minute)
		got := h.next()
		if len(got) != 1 || seen[got[0].ID()] {
			t.Fatalf("got %v", got)
		}
		seen[got[0].ID()] = true
		command, err := jobevent.Decode[jobevent.Command](got[0])
		if err != nil || command.Command != jobevent.CommandReport || len(command.Reports) != 1 ||
			command.Reports[0] != (jobevent.ReportJob{JobID: uuid.MustParse(id), Version: 7}) {
			t.Errorf("got %+v, %v", command, err)
		}
		if topic, err := got[0].Topic(); topic != jobevent.TopicCommand || err != nil {
			t.Error(topic, err)
		}
		if got := h.next(); len(got) != 0 {
			t.Errorf("and again %v", got)
		}
	}
}

// Otherwise a job would show RUNNING for a minute that ended just before a jobweaver serve was killed.
func TestWithANewBrokerAllJobsInFlightAreAskedAboutAtOnce(t *testing.T) {
	t.Parallel()
	h := openWith(t, projection.Config{NewBroker: true})
	id := h.accept().Subject()
	h.handle(status(t, id, 7, jobstate.Running))
	for _, want := range []int{1, 0} {
		if got := h.next(); len(got) != want {
			t.Errorf("got %v", got)
		}
	}
	h.grow(time.Minute)
	if got := h.next(); len(got) != 1 {
		t.Errorf("after a minute got %v", got)
	}
}

func TestWaitingJobsAreWalkedInReportsOfAThousand(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.exec(`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot)
		select gen_random_uuid(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(), 'PENDING', 1, '{}' from generate_series(1, 10500)`)
	count := func(events []jobevent.Item) (jobs int) {
		for _, e := range events {
			command, err := jobevent.Decode[jobevent.Command](e)
			if err != nil || len(command.Reports) > jobevent.MaxReportJobs {
				t.Fatal(len(command.Reports), err)
			}
			jobs += len(command.Reports)
		}
		return jobs
	}
	for i, want := range []int{10_000, 500, 0} {
		if got := count(h.next()); got != want {
			t.Errorf("pass %d asks about %d jobs, want %d", i, got, want)
		}
	}
}

func TestAPassIsBoundedAndTheNextContinues(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.exec(`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, created_at)
		select gen_random_uuid(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(), 'PENDING', now() - interval '1 minute'
		from generate_series(1, 12000)`)
	all := map[string]bool{}
	for i, want := range []int{10_000, 2_000, 0} {
		got := h.next()
		for _, e := range got {
			all[e.ID()] = true
		}
		if len(got) != want {
			t.Errorf("pass %d returned %d jobs, want %d", i, len(got), want)
		}
	}
	if len(all) != 12_000 {
		t.Errorf("%d jobs were published", len(all))
	}
}

func TestLargePayloadsArePublishedInParts(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.exec(`insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, created_at)
		select gen_random_uuid(), 'X', 'default', ('"' || repeat('x', $1) || '"')::json, '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(), 'PENDING',
		now() - interval '1 minute' from generate_series(1, 3)`, apidb.MaxPageBytes/2+1)
	for i, want := range []int{2, 1, 0} {
		events, next, err := h.Tick(t.Context())
		if err != nil || len(events) != want || (next == 0) != (want > 0) {
			t.Errorf("piece %d: %d jobs, next in %v, %v", i, len(events), next, err)
		}
	}
}

func TestAFailedPassIsRepeated(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.accept()
	h.grow(time.Minute)
	h.exec("alter table commands rename to away")
	if _, _, err := h.Tick(t.Context()); err == nil {
		t.Fatal("a pass without its table is fine")
	}
	h.exec("alter table away rename to commands")
	if got := h.pass(); len(got) != 1 {
		t.Errorf("got %d", len(got))
	}
}

func TestARescheduleIsRepublishedWithItsInstant(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.accept(func(r *jobspec.Request) { r.Delay = time.Hour }).Subject()
	h.handle(status(t, id, 1, jobstate.Scheduled))
	kept, err := h.store.Commands.KeepReschedule(t.Context(), nil, apidb.Everyone, uuid.MustParse(id), apibody.When{Delay: time.Minute}, "me")
	if err != nil {
		t.Fatal(err)
	}
	first, err := apievent.Command(kept)
	if err != nil {
		t.Fatal(err)
	}
	h.grow(10 * time.Second)
	again := false
	for _, e := range h.next() {
		again = again || e.ID() == first.ID() && string(e.Data()) == string(first.Data())
	}
	if !again {
		t.Errorf("it is not republished")
	}
}

func TestACallbackIsRepublishedUntilItsAttemptHasEnded(t *testing.T) {
	t.Parallel()
	h := open(t)
	ofFirst := func(s *jobevent.Status) { s.Attempt = 1 }
	for _, callback := range []apibody.Callback{
		{Attempt: 1, Status: apibody.CallbackCompleted, Output: json.RawMessage(`{"a": 1}`)},
		{Attempt: 1, Status: apibody.CallbackFailed, ErrorCode: "A", Message: "b"},
	} {
		id := h.accept().Subject()
		h.handle(status(t, id, 1, jobstate.Waiting, ofFirst))
		callback.JobID = uuid.MustParse(id)
		taken, err := h.store.Callbacks.Keep(t.Context(), callback, "")
		if err != nil {
			t.Fatal(err)
		}
		first, err := apievent.Callback(*taken.Callback)
		if err != nil {
			t.Fatal(err)
		}
		age := func() (age time.Duration) {
			if err := h.conn.QueryRow(t.Context(), "select now() - received_at from callbacks where job_id = $1", id).Scan(&age); err != nil {
				t.Fatal(err)
			}
			return age
		}
		if got := h.next(); len(got) != 0 && age() < 2*time.Second {
			t.Fatalf("a young callback is republished: %v", got)
		}
		// An unconfirmed request is published in each pass of its first minute, and then once at each of these ages.
		// Reports have other ages.
		dues := []time.Duration{80 * time.Second, 160 * time.Second, 300 * time.Second, 600 * time.Second}
		for step := 5 * time.Second; age() < 700*time.Second; {
			h.grow(step)
			from, times := age(), 0
			for _, e := range h.next() {
				if e.ID() != first.ID() {
					continue
				}
				times++
				again, err := jobevent.Decode[map[string]any](e)
				want, alsoErr := jobevent.Decode[map[string]any](first)
				if err != nil || alsoErr != nil {
					t.Fatal(err, alsoErr)
				}
				delete(again, "finishedAt") // the test has changed it
				delete(want, "finishedAt")
				if fmt.Sprint(again) != fmt.Sprint(want) || e.Type() != first.Type() || e.Source() != first.Source() ||
					fmt.Sprint(e.Event().Extensions()) != fmt.Sprint(first.Event().Extensions()) {
					t.Errorf("got %s\nfirst %s", e, first)
				}
			}
			switch to := age(); {
			case times == 1 && from < time.Minute, times == 0 && to >= time.Minute:
			case times == 1 && len(dues) > 0 && to >= dues[0] && from <= dues[0]+2*step:
				dues = dues[1:]
			default:
				t.Errorf("got %d times at the age of %s, next due at %v", times, from, dues)
			}
		}
		if len(dues) > 0 {
			t.Errorf("not published at %v", dues)
		}
		h.handle(status(t, id, 2, jobstate.Retrying, ofFirst))
		h.grow(time.Minute)
		for _, e := range append(h.next(), h.next()...) {
			if e.ID() == first.ID() {
				t.Error("a confirmed callback is republished")
			}
		}
	}
}

// A projection that has just started publishes callbacks that were accepted before.
func TestACallbackIsPublishedAfterAStart(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := uuid.MustParse(h.accept().Subject())
	if _, err := h.store.Callbacks.Keep(t.Context(), apibody.Callback{JobID: id, Attempt: 1, Status: apibody.CallbackCompleted}, ""); err != nil {
		t.Fatal(err)
	}
	h.exec("update callbacks set received_at = received_at - interval '1 hour'")
	if got := h.pass(); len(got) != 1 || got[0].ID() != jobevent.OutcomeID(id, 1, "callback") {
		t.Errorf("got %v", got)
	}
}

// Ten thousand callbacks that wait for the broker may have two gigabytes of outputs.
func TestLargeCallbacksArePublishedInParts(t *testing.T) {
	t.Parallel()
	h := open(t)
	for range 3 {
		h.accept()
	}
	h.exec("update jobs set version = 1, status = 'WAITING', attempt = 1, snapshot = '{}'")
	h.exec(`insert into callbacks (job_id, attempt, outcome, output, body_hash, received_at)
		select job_id, 1, 'completed', ('"' || repeat('x', $1) || '"')::json, '', now() - interval '100 s' from jobs`,
		apidb.MaxPageBytes/2+1)
	for i, want := range []int{2, 1, 0} {
		published := 0
		for _, e := range h.next() {
			if e.Type() == jobevent.TypeCompleted {
				published++
			}
		}
		if published != want {
			t.Errorf("pass %d returned %d callbacks, want %d", i, published, want)
		}
	}
}

// The scheduler's database may have been restored without the job.
func TestAJobThatTheSchedulerDoesNotKnowIsRepublished(t *testing.T) {
	t.Parallel()
	h := open(t)
	unknown := func(e jobevent.Item, version int64) jobevent.Item {
		return status(t, e.Subject(), version, jobevent.StatusUnknown)
	}
	lost, moved, ended, old := h.accept(), h.accept(), h.accept(), h.accept()
	h.handle(
		status(t, lost.Subject(), 2, jobstate.Running), status(t, moved.Subject(), 3, jobstate.Running),
		status(t, ended.Subject(), 2, jobstate.Completed), status(t, old.Subject(), 2, jobstate.Running))
	h.exec("update jobs set created_at = created_at - interval '8 days' where job_id = $1", old.Subject())
	h.handle(unknown(lost, 2), unknown(moved, 2), unknown(ended, 2), unknown(old, 2))
	for e, want := range map[*jobevent.Item]jobstate.Status{
		&lost: jobstate.Pending, &moved: jobstate.Running, &ended: jobstate.Completed, &old: jobstate.Running,
	} {
		if job := h.job(e.Subject()); job.Status != want || (job.Version == 0) != (e == &lost) {
			t.Errorf("%s in version %d, want %s", job.Status, job.Version, want)
		}
	}
	h.pass()
	h.grow(13 * time.Second)
	var again []string
	for _, e := range h.pass() {
		if e.Type() == jobevent.TypeCreated {
			again = append(again, e.Subject())
		}
	}
	if !slices.Equal(again, []string{lost.Subject()}) {
		t.Errorf("republished %v, want %s", again, lost.Subject())
	}
	h.handle(status(t, lost.Subject(), 1, jobstate.Queued))
	if job := h.job(lost.Subject()); job.Status != jobstate.Queued || job.Version != 1 {
		t.Errorf("then it is %s in version %d", job.Status, job.Version)
	}
}
