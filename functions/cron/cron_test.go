package cron_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/cron"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// fixture is a database on which instances of the function start and stop.
type fixture struct {
	t     *testing.T
	url   string
	store *apidbtest.Stores
}

func open(t *testing.T) *fixture {
	t.Helper()
	h := &fixture{t: t, url: pgtest.Database(t, migrations.API)}
	h.store = h.another(h.url)
	return h
}

func (h *fixture) another(url string) *apidbtest.Stores {
	h.t.Helper()
	store := apidbtest.Open(h.t, url)
	return store
}

func (h *fixture) create(name, spec, fields string) schedulestore.Schedule {
	h.t.Helper()
	asked, err := apibody.DecodeSchedule(fmt.Appendf(nil,
		`{"name": %q, "cron": %q, "job": {"jobType": "OWN", "payload": 1}%s}`, name, spec, fields))
	if err != nil {
		h.t.Fatal(err)
	}
	made, err := h.store.Schedules.Create(h.t.Context(), nil, apidb.Everyone, asked)
	if err != nil {
		h.t.Fatal(err)
	}
	return made
}

// function returns an instance with its own store, like another process.
func (h *fixture) function() funchost.Function {
	h.t.Helper()
	f, err := cron.New(cron.Config{Queues: []string{"default"}}, h.another(pgtest.As(h.url, cron.Name)).Store)
	if err != nil {
		h.t.Fatal(err)
	}
	return f.Host()
}

// run makes a function tick, as its host does, until ctx ends.
func run(ctx context.Context, f funchost.Function, publish funchost.Publish) error {
	var all errgroup.Group
	ctx, stop := context.WithCancel(ctx)
	all.Go(func() error { return f.Run(ctx, publish) })
	all.Go(func() error {
		defer stop()
		for ctx.Err() == nil {
			events, next, err := f.Tick(context.WithoutCancel(ctx))
			if err != nil {
				return err
			}
			if len(events) > 0 { // Run has ended meanwhile
				_ = publish(context.WithoutCancel(ctx), events)
			}
			select {
			case <-time.After(next):
			case <-f.Wake:
			case <-ctx.Done():
			}
		}
		return nil
	})
	return all.Wait()
}

// Two processes run at once, and each stops and starts again. Every second makes one job, on time, and the job is
// published.
func TestEachSecondIsOneJobWhileProcessesStopAndStart(t *testing.T) {
	t.Parallel()
	h := open(t)
	published := make(chan jobevent.Item, 1000)
	publish := func(_ context.Context, events []jobevent.Item) error {
		for _, e := range events {
			published <- e
		}
		return nil
	}
	var all errgroup.Group
	for i := range 2 {
		all.Go(func() error {
			for life := range 3 {
				ctx, stop := context.WithTimeout(t.Context(), time.Duration(1500+700*i+300*life)*time.Millisecond)
				err := run(ctx, h.function(), publish)
				stop()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	made := h.create("each-second", "* * * * * *", `, "missed": "all"`) // it wakes them
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	ticks := h.ticks("each-second")
	if len(ticks) < 4 || !ticks[len(ticks)-1].At.Equal(*made.NextAt) {
		t.Fatalf("the first of %d ticks is %+v, should be %s", len(ticks), ticks[len(ticks)-1], made.NextAt)
	}
	jobs := map[uuid.UUID]bool{}
	for i, tick := range ticks {
		if tick.Outcome != "fired" || i > 0 && ticks[i-1].At.Sub(tick.At) != time.Second {
			t.Errorf("tick %+v", tick)
		}
		jobs[*tick.JobID] = true
	}
	close(published)
	for e := range published {
		created, err := jobevent.Decode[jobevent.Created](e)
		if err != nil || !jobs[created.JobID] || e.ID() != jobevent.CreatedID(created.JobID) {
			t.Errorf("got %s, %v", e, err)
		}
		delete(jobs, created.JobID)
	}
	if len(jobs) > 0 {
		t.Errorf("not published: %v", jobs)
	}
}

func (h *fixture) ticks(name string) []schedulestore.Tick {
	h.t.Helper()
	ticks, _, err := h.store.Schedules.Ticks(h.t.Context(), apidb.Everyone, apidb.Key{Name: name}, time.Now().Add(time.Hour), 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	return ticks
}

// A committed job that was not published is published by projection, like any job without a status.
func TestABrokerThatIsAwayDoesNotStopTheClock(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.create("each-second", "* * * * * *", "")
	f := h.function()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, f, func(context.Context, []jobevent.Item) error { return errors.New("away") })
	}()
	for len(h.ticks("each-second")) < 2 && ctx.Err() == nil {
		<-time.After(50 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	ticks := h.ticks("each-second")
	if len(ticks) < 2 {
		t.Fatalf("ticks %+v", ticks)
	}
	h.exec("update jobs set created_at = created_at - interval '15 s'")
	now := time.Now()
	again, err := h.store.Statuses.UnconfirmedJobs(t.Context(), apidb.Page{Until: now, Limit: 100}, 10*time.Second)
	if err != nil || len(again) != len(ticks) {
		t.Errorf("to be published again %d of %d, %v", len(again), len(ticks), err)
	}
}

// A ping may arrive while the process stops: the host publishes the jobs of its tick.
func TestATickAfterTheStopIsPublishedByTheHost(t *testing.T) {
	t.Parallel()
	h := open(t)
	f := h.function()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := f.Run(ctx, func(context.Context, []jobevent.Item) error { return nil }); err != nil {
		t.Fatal(err)
	}
	h.create("late", "@every 1s", "")
	for {
		events, next, err := f.Tick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(events) > 0 {
			return
		}
		if len(h.ticks("late")) > 0 {
			t.Fatal("a tick has fired and was not published")
		}
		select {
		case <-time.After(next):
		case <-t.Context().Done():
			t.Fatal("nothing fired")
		}
	}
}

func (h *fixture) exec(sql string) {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close(h.t.Context())
	if _, err := conn.Exec(h.t.Context(), sql); err != nil {
		h.t.Fatal(err)
	}
}

// A process that dies before its commit has fired nothing, and the next pass of any process fires the tick.
func TestAnotherFiresWhatOneHasLeft(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.create("a", "* * * * * *", `, "missed": "all"`)
	conn, err := pgx.Connect(t.Context(), h.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "begin; select from schedules for update"); err != nil {
		t.Fatal(err)
	}
	h.exec("select pg_sleep(extract(epoch from next_at - clock_timestamp())) from schedules where next_at > clock_timestamp()")
	f := h.function()
	if _, next, err := f.Tick(t.Context()); err != nil || next > time.Second || len(h.ticks("a")) > 0 {
		t.Fatalf("another has it: sleeps %s, %v", next, err)
	}
	if _, err := conn.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Tick(t.Context()); err != nil || len(h.ticks("a")) == 0 {
		t.Errorf("nothing fired, %v", err)
	}
}

func TestATickEntersWhatItAccepted(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.create("a", "0 0 1 1 *", "")
	h.exec(`update schedules set next_at = date_trunc('second', now()) - interval '5 s'`)
	h.exec(`update schedules set cron = to_char(next_at at time zone 'UTC', 'FMSS FMMI FMHH24 FMDD FMMM "*"')`)
	if _, _, err := h.function().Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.exec("do $$ begin assert (select sum(n) from tally_entries where what = 'ACCEPTED') = 1; end $$")
}

func TestAWrongSettingIsNamed(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]cron.Config{
		"RETRY_POLICIES: ": {RetryPolicies: "{"}, "RATE_LIMIT_JOBS: ": {RateLimitJobs: -1},
	} {
		if _, err := cron.New(cfg, nil); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s%v", name, err)
		}
	}
}

// While the brokers are away, passes wait to be published, but not 100 passes of 32 MiB each.
func TestWhatWaitsToBePublishedIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	boundedInBytes(t, "")
}

// If one schedule makes a pass fail, the pass is repeated in passes of one schedule each, which together are no larger.
func TestWhatWaitsIsBoundedBesideAScheduleThatFails(t *testing.T) {
	t.Parallel()
	boundedInBytes(t, `
		create function refuse() returns trigger language plpgsql as
			$$begin if length(new.payload::text) < 100 then raise 'refused'; end if; return new; end$$;
		create trigger refuse before insert on jobs for each row execute function refuse();`)
}

func boundedInBytes(t *testing.T, before string) {
	h := open(t)
	f := h.function()
	var out strings.Builder
	ctx := telemetry.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&out, nil)))
	for i := range 100 {
		h.create(fmt.Sprintf("big-%d", i), "@every 1s", "")
	}
	h.exec(before)
	h.create("small", "@every 1s", "")
	h.exec(`update schedules set job = json_build_object('jobType', 'OWN', 'payload', repeat('x', 400000)) where name <> 'small'`)
	for !strings.Contains(out.String(), "there is no room") {
		if _, _, err := f.Tick(ctx); err != nil {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond) // the schedules are due in a second
	}
	published := 0
	ended, stop := context.WithCancel(ctx)
	stop()
	if err := f.Run(ended, func(_ context.Context, events []jobevent.Item) error {
		for _, e := range events {
			published += len(e.Data())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if published < 20<<20 || published > 64<<20 {
		t.Errorf("%d bytes waited", published)
	}
}

// The role of the function may read what policies look at.
func TestTheJobsOfSchedulesHavePolicies(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, name := range []string{"first", "second"} {
		asked, err := apibody.DecodeSchedule([]byte(`{"name": "` + name + `", "cron": "0 0 1 1 *", "job": {"jobType": "OWN", "payload": 1,
			"unique": {"key": "k", "for": "1h", "while": "WAITING"}, "throttle": {"key": "k", "perMs": 1000}, "singleton": {"key": "k", "else": "drop"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.store.Schedules.Create(t.Context(), nil, apidb.Everyone, asked); err != nil {
			t.Fatal(err)
		}
		due := apidbtest.At(t, h.url)
		due.Ago(t, name, 0)
		due.Once(t)
		if _, _, err := h.function().Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ticks := h.ticks(name); len(ticks) != 1 || (ticks[0].Outcome == "skipped") != (name == "second") {
			t.Errorf("%s: the ticks are %+v", name, ticks)
		}
	}
}
