package shuffle

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/functions/command"
	"github.com/jobweaver/jobweaver/functions/dispatch"
	"github.com/jobweaver/jobweaver/functions/ingest"
	"github.com/jobweaver/jobweaver/functions/outcome"
	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/functions/watchdog"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/workerdb"
)

// fixture runs all functions on three databases of their own and one bus, with the test as the only clock.
type fixture struct {
	*bus
	t        *testing.T
	api      *apidbtest.Stores
	apiPool  *pgxpool.Pool // for SQL past the store, like schedulerPool
	dispatch *dispatch.Function
	watchdog *watchdog.Function
	workers  *workers

	schedulerPool *pgxpool.Pool

	jobs map[uuid.UUID]*job
	ids  []uuid.UUID // of the jobs, in the order of submission
}

// open makes an installation. With a short lease, each lease has expired when the watchdog looks.
func open(t *testing.T, lease time.Duration, pick func(int) int) *fixture {
	t.Helper()
	h := &fixture{bus: newBus(), t: t, jobs: map[uuid.UUID]*job{}}
	apiURL, schedulerURL := pgtest.Database(t, migrations.API), pgtest.Database(t, migrations.Scheduler)
	var err error
	h.api = apidbtest.Open(t, apiURL)
	scheduler, err := schedulerdb.Open(t.Context(), schedulerURL, schedulerdb.Config{Lease: lease, MaxLost: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(scheduler.Close)
	h.apiPool, h.schedulerPool = pool(t, apiURL), pool(t, schedulerURL)
	workerURL := pgtest.Database(t, migrations.Worker)
	h.workers = &workers{
		t: t, pool: pool(t, workerURL), jobs: h.jobs, pick: pick,
		started: map[workerdb.Key]int{}, published: map[workerdb.Key]jobevent.Kind{},
	}
	if h.workers.store, err = workerdb.Open(t.Context(), workerURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.workers.store.Close)
	h.dispatch, h.watchdog = dispatch.New(scheduler), watchdog.New(scheduler)
	h.readAll(scheduler)
	return h
}

func (h *fixture) readAll(scheduler *schedulerdb.Store) {
	in, out, com := ingest.New(scheduler).Host(), outcome.New(scheduler).Host(), command.New(scheduler).Host()
	dog, pro := h.watchdog.Host(), h.projection().Host()
	h.read(in.Name, in.Handle, in.Topics...)
	h.read(out.Name, out.Handle, out.Topics...)
	h.read(com.Name, com.Handle, com.Topics...)
	h.read(dog.Name, dog.Handle, dog.Topics...)
	h.read(pro.Name, h.neverBack(taking(pro)), pro.Topics...)
	h.read("runjob", h.workers.consume, jobevent.TopicRun)
	h.read("runjob's cancels", h.workers.cancel, jobevent.TopicAttemptCancel)
}

// taking passes on the items that the function's host does not skip.
func taking(f funchost.Function) funchost.Handle {
	return func(ctx context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		batch = slices.DeleteFunc(slices.Clone(batch), func(e jobevent.Item) bool {
			topic, err := e.Topic()
			return err == nil && f.Skips(topic, e.Type())
		})
		if len(batch) == 0 {
			return nil, nil
		}
		return f.Handle(ctx, batch)
	}
}

// projection returns a new projection, without memory.
func (h *fixture) projection() *projection.Function {
	h.t.Helper()
	f, err := projection.New(projection.Config{}, h.api.Store)
	if err != nil {
		h.t.Fatal(err)
	}
	return f
}

// neverBack checks that projection never makes the API show an older state of a job.
func (h *fixture) neverBack(handle funchost.Handle) funchost.Handle {
	shown := map[uuid.UUID]int64{}
	return func(ctx context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		items, err := handle(ctx, batch)
		if err != nil {
			return items, err
		}
		rows, err := h.apiPool.Query(ctx, "select job_id, version from jobs")
		if err != nil {
			return nil, err
		}
		var id uuid.UUID
		var version int64
		_, err = pgx.ForEachRow(rows, []any{&id, &version}, func() error {
			if version < shown[id] {
				h.t.Errorf("version %d of %s is shown after %d", version, id, shown[id])
			}
			shown[id] = version
			return nil
		})
		return items, err
	}
}

func pool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgpool.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// submit accepts one job of each kind. If lose returns true, the gateway's event is lost.
func (h *fixture) submit(rnd *rand.Rand, lose func() bool) {
	h.t.Helper()
	for i := range kinds {
		h.submitOne(&kinds[i], rnd, lose)
	}
}

func (h *fixture) submitOne(k *kind, rnd *rand.Rand, lose func() bool) {
	h.t.Helper()
	request := k.request
	request.JobType, request.Queue = jobspec.Simulation, jobspec.DefaultQueue
	request.TimeoutMs, request.Payload = jobspec.DefaultTimeout.Milliseconds(), []byte(`{"steps":[]}`)
	var id uuid.UUID // from the seed, because it determines the partitions
	binary.BigEndian.PutUint64(id[:], rnd.Uint64())
	fresh := jobstore.NewJob{JobID: id, TraceID: uuid.New(), Request: request, Whose: apidb.Everyone}
	accepted, err := h.api.Jobs.InsertJobs(h.t.Context(), []jobstore.NewJob{fresh})
	if err != nil {
		h.t.Fatal(err)
	}
	h.jobs[id], h.ids = &job{kind: k, calledBack: map[int]jobstate.Kind{}}, append(h.ids, id)
	e, err := apievent.Created(accepted[0].Created(fresh))
	h.gateway(e, err, lose)
	if k.command != "" {
		h.command(id, k.command, lose)
	}
	if k.retries > 0 {
		h.change(id, k.retries, lose)
	}
}

func (h *fixture) change(id uuid.UUID, retries int, lose func() bool) {
	h.t.Helper()
	change := commandstore.JobChange{Change: jobevent.Change{Spec: fmt.Appendf(nil, `{"maxRetryCount":%d}`, retries)}, Delay: new(time.Duration), Hash: []byte("change")}
	kept, err := h.api.Commands.KeepChange(h.t.Context(), nil, apidb.Everyone, id, change, client)
	if err != nil {
		h.t.Fatal(err)
	}
	e, err := apievent.Command(kept)
	h.gateway(e, err, lose)
}

// client is the author of all commands.
const client = "client"

func (h *fixture) command(id uuid.UUID, command string, lose func() bool) {
	h.t.Helper()
	kept, err := h.api.Commands.KeepCommand(h.t.Context(), nil, apidb.Everyone, id, command, client)
	if err != nil {
		h.t.Fatal(err)
	}
	e, err := apievent.Command(kept)
	h.gateway(e, err, lose)
}

func (h *fixture) gateway(e jobevent.Item, err error, lose func() bool) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	if lose() {
		h.mishaps[acceptedNotPublished]++
		return
	}
	h.publish(h.t, []jobevent.Item{e})
}

// tick runs a function's clock once.
func (h *fixture) tick(who string, tick func(context.Context) ([]jobevent.Item, time.Duration, error)) {
	h.t.Helper()
	items, _, err := tick(h.t.Context())
	h.publish(h.t, check(h.t, who, items, err))
}

// reconcile ages the rows of the API and of the scheduler by a minute, and runs a new watchdog and a new projection
// on them.
func (h *fixture) reconcile() {
	h.t.Helper()
	for _, sql := range []string{
		"update workers set since = since - interval '61 s'",
		"update jobs set lease_expires_at = lease_expires_at - interval '61 s'",
	} {
		if _, err := h.schedulerPool.Exec(h.t.Context(), sql); err != nil {
			h.t.Fatal(err)
		}
	}
	h.hurrySuspects()
	h.tick("watchdog", h.watchdog.Tick)
	for _, sql := range []string{
		"update jobs set created_at = created_at - interval '61 s', updated_at = updated_at - interval '61 s'",
		"update commands set created_at = created_at - interval '61 s'",
		"update callbacks set received_at = least(received_at, now() - interval '3 s')", // in their first minute all are published
	} {
		if _, err := h.apiPool.Exec(h.t.Context(), sql); err != nil {
			h.t.Fatal(err)
		}
	}
	h.tick("reconcile", h.projection().Tick)
}

// hurrySuspects ends the delay of jobs that were lost twice in a row.
func (h *fixture) hurrySuspects() {
	h.t.Helper()
	const sql = "update jobs set due_at = now() where status = 'SCHEDULED' and lost_count >= 2 and due_at > now()"
	if _, err := h.schedulerPool.Exec(h.t.Context(), sql); err != nil {
		h.t.Fatal(err)
	}
}

// redrive retries the failed jobs whose kind has a redrive.
func (h *fixture) redrive(lose func() bool) {
	h.t.Helper()
	for _, id := range h.ids {
		j := h.jobs[id]
		if j.redrive && !j.redriven && h.look(id).Status == jobstate.Failed {
			j.redriven = true
			h.command(id, jobevent.CommandRetry, lose)
		}
	}
}

// look reads a job as the API shows it.
func (h *fixture) look(id uuid.UUID) jobstore.Job {
	h.t.Helper()
	shown, err := h.api.Jobs.Job(h.t.Context(), apidb.Everyone, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return shown
}

// ended reports whether every job has ended and every command is answered.
func (h *fixture) ended() bool {
	h.t.Helper()
	for id, j := range h.jobs {
		if shown := h.look(id); !shown.Status.Terminal() || j.redrive && !j.redriven {
			return false
		}
	}
	var commands int
	if err := h.apiPool.QueryRow(h.t.Context(), "select count(*) from commands").Scan(&commands); err != nil {
		h.t.Fatal(err)
	}
	return commands == 0
}

func never() bool { return false }

func oneIn(rnd *rand.Rand, n int) func() bool { return func() bool { return rnd.IntN(n) == 0 } }
