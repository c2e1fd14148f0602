package apidb_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// listener receives changes.
type listener struct {
	t       *testing.T
	changes chan apidb.Change
}

func (h *fixture) listenTo(t *testing.T) *listener {
	t.Helper()
	changes, begun := &listener{t, make(chan apidb.Change, 1000)}, make(chan struct{})
	h.beside(t, func(ctx context.Context) {
		_ = h.ListenChanges(ctx, func() { close(begun) }, func(c apidb.Change) { changes.changes <- c })
	})
	<-begun
	return changes
}

// beside runs something until the test ends.
func (h *fixture) beside(t *testing.T, run func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { run(ctx) })
	t.Cleanup(func() { cancel(); all.Wait() })
}

// followWatchers makes the store notify while a client watches, as a projection's does.
func (h *fixture) followWatchers(t *testing.T) {
	t.Helper()
	begun := make(chan struct{}, 1)
	h.beside(t, func(ctx context.Context) {
		_ = h.ListenWatchers(ctx, func() {
			select {
			case begun <- struct{}{}:
			default:
			}
		})
	})
	<-begun
}

func (h *listener) next() apidb.Change {
	h.t.Helper()
	select {
	case c := <-h.changes:
		return c
	case <-time.After(20 * time.Second):
		h.t.Fatal("no change arrived")
		return apidb.Change{}
	}
}

// want checks the kind of the next change, and its job if the kind names jobs.
func (h *listener) want(kind apidb.ChangeKind, id uuid.UUID) {
	h.t.Helper()
	c := h.next()
	if c.Kind != kind || id != uuid.Nil && (len(c.JobIDs) != 1 || c.JobIDs[0] != id) {
		h.t.Errorf("got %c %v, want %c %s", c.Kind, c.JobIDs, kind, id)
	}
}

// mark sends a notification that arrives after all earlier ones.
func (h *fixture) mark(t *testing.T) uuid.UUID {
	t.Helper()
	id := uuid.New()
	if err := h.NotifyCommitted(t.Context(), apidb.ChangeHere, []uuid.UUID{id}); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestChangesAreNotifiedOnlyWhileAClientWatches(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.followWatchers(t)
	changes := h.listenTo(t)
	job := h.Accept(t, apidbtest.NewJob())
	h.Apply(t, apidbtest.Status(job.JobID, 1, jobstate.Running))
	h.addLine(t, job.JobID, 0)
	h.seeProgress(t, job.JobID, 1)
	changes.want(apidb.ChangeHere, h.mark(t)) // and nothing before it
	if err := h.AnnounceWatching(t.Context()); err != nil {
		t.Fatal(err)
	}
	changes.want(apidb.ChangeBegins, uuid.Nil)
	h.Apply(t, apidbtest.Status(job.JobID, 2, jobstate.Running))
	changes.want(apidb.ChangeStatus, job.JobID)
	h.addLine(t, job.JobID, 1)
	changes.want(apidb.ChangeLog, job.JobID)
	h.seeProgress(t, job.JobID, 2)
	changes.want(apidb.ChangeProgress, job.JobID)
	h.seeProgress(t, job.JobID, 2) // a repeated progress is not a change
	if err := h.AnnounceWatching(t.Context()); err != nil {
		t.Fatal(err)
	}
	changes.want(apidb.ChangeHere, uuid.Nil)
	h.Apply(t, apidbtest.Status(job.JobID, 3, jobstate.Completed))
	changes.want(apidb.ChangeEnded, job.JobID)
	if err := h.Statuses.ForgetStatuses(t.Context(), []jobevent.ReportJob{{JobID: job.JobID, Version: 3}}); err != nil {
		t.Fatal(err)
	}
	changes.want(apidb.ChangeStatus, job.JobID)
	if _, err := h.Statuses.ForgetJobs(t.Context(), []statusstore.Gone{{JobID: job.JobID, Version: 4}}); err != nil {
		t.Fatal(err)
	}
	changes.want(apidb.ChangeGone, job.JobID)
}

func (h *fixture) addLine(t *testing.T, id uuid.UUID, line int) {
	t.Helper()
	err := h.Logs.Add(t.Context(), []jobevent.AttemptLog{{
		JobID: id, Attempt: 1, FirstLine: line, Lines: []jobevent.LogLine{{At: time.Now(), Level: "INFO", Text: "x"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func (h *fixture) seeProgress(t *testing.T, id uuid.UUID, percent int) {
	t.Helper()
	err := h.Workers.See(t.Context(), []workerstore.Heartbeat{{JSON: []byte("{}"), Heartbeat: jobevent.Heartbeat{
		WorkerID: "w", Attempts: []jobevent.ListedAttempt{{JobID: id, Attempt: 0, Progress: &jobevent.Progress{Percent: percent}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
}

// A batch that the database refuses is not notified: here because of its second job.
func TestARolledBackChangeIsNotNotified(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.followWatchers(t)
	changes := h.listenTo(t)
	good, bad := h.Accept(t, apidbtest.NewJob()), h.Accept(t, apidbtest.NewJob())
	if err := h.AnnounceWatching(t.Context()); err != nil {
		t.Fatal(err)
	}
	changes.want(apidb.ChangeBegins, uuid.Nil)
	h.Exec(t, "alter table jobs add check (status <> 'FAILED')")
	words := []statusstore.PublishedStatus{
		apidbtest.Status(good.JobID, 1, jobstate.Completed), apidbtest.Status(bad.JobID, 1, jobstate.Failed),
	}
	if _, err := h.Statuses.ApplyStatuses(t.Context(), words); err == nil {
		t.Fatal("it was applied")
	}
	changes.want(apidb.ChangeHere, h.mark(t))
	h.Apply(t, words[0])
	changes.want(apidb.ChangeEnded, good.JobID)
}

// A batch that began before a client watched does not notify. ChangeBegins is sent only after that batch has ended,
// so that a client that reads then sees its changes.
func TestChangesBeginAfterTheLastBatchThatDoesNotNotify(t *testing.T) {
	t.Parallel()
	h := &fixture{apidbtest.At(t, pgtest.Database(t, migrations.API)+"&lock_timeout=0")} // until release
	h.followWatchers(t)
	changes := h.listenTo(t)
	job := h.Accept(t, apidbtest.NewJob())
	applied := make(chan error, 1)
	release := h.lockJob(t, job.JobID)
	go func() {
		_, err := h.Statuses.ApplyStatuses(t.Context(), []statusstore.PublishedStatus{apidbtest.Status(job.JobID, 1, jobstate.Completed)})
		applied <- err
	}()
	h.Conn(t, func(_ context.Context, c *pgx.Conn) error {
		pgtest.UntilBlocked(t, c.QueryRow)
		return nil
	})
	if err := h.AnnounceWatching(t.Context()); err != nil {
		t.Fatal(err)
	}
	changes.want(apidb.ChangeHere, h.mark(t))
	release()
	changes.want(apidb.ChangeBegins, uuid.Nil)
	if err := <-applied; err != nil {
		t.Fatal(err)
	}
	if ended, err := h.Jobs.Ended(t.Context(), []uuid.UUID{job.JobID}); err != nil || len(ended) != 1 {
		t.Errorf("ended are %v, %v", ended, err)
	}
}

// lockJob keeps others from changing a job until it is released.
func (h *fixture) lockJob(t *testing.T, id uuid.UUID) (release func()) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), h.URL)
	if err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	t.Cleanup(release)
	if _, err := c.Exec(t.Context(), "begin"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "select from jobs where job_id = $1 for update", id); err != nil {
		t.Fatal(err)
	}
	return release
}

// cron and bulk announce once that they begin to notify, and then notify of the jobs that they make and the commands
// that they keep.
func TestJobsOfSchedulesAndCommandsOfOperationsAreNotified(t *testing.T) {
	t.Parallel()
	h := open(t)
	begun := make(chan struct{}, 10)
	h.beside(t, func(ctx context.Context) { _ = h.Schedules.Listen(ctx, func() { begun <- struct{}{} }) })
	<-begun
	changes := h.listenTo(t)
	silent := h.Accept(t, apidbtest.NewJob())
	h.operateOn(t, silent.JobID)
	if h.Watched() {
		t.Error("no client watches")
	}
	changes.want(apidb.ChangeHere, h.mark(t)) // and nothing before it
	if err := h.AnnounceWatching(t.Context()); err != nil {
		t.Fatal(err)
	}
	changes.want(apidb.ChangeOthers, uuid.Nil)
	if !h.Watched() {
		t.Error("a client watches")
	}
	if err := h.AnnounceWatching(t.Context()); err != nil { // they announce it once
		t.Fatal(err)
	}
	job := h.Accept(t, apidbtest.NewJob())
	h.operateOn(t, job.JobID)
	changes.want(apidb.ChangeStatus, job.JobID)
	if _, err := h.Schedules.Create(t.Context(), nil, apidb.Everyone, apidbtest.Schedule(t, "s", `"cron": "* * * * * *"`)); err != nil {
		t.Fatal(err)
	}
	h.Ago(t, "s", time.Second)
	h.Once(t)
	fired, _, err := h.Schedules.Fire(t.Context(), apidbtest.ScheduleRules, time.Minute)
	if err != nil || len(fired.Jobs) != 1 {
		t.Fatalf("%+v, %v", fired, err)
	}
	changes.want(apidb.ChangeStatus, fired.Jobs[0].JobID)
}

// operateOn gives a job a command by an operation.
func (h *fixture) operateOn(t *testing.T, id uuid.UUID) {
	t.Helper()
	op, _, err := h.Operations.InsertOperation(t.Context(), operationstore.NewOperation{
		ID: h.NewID(), By: "me", Whose: apidb.Everyone,
		Request: apibody.Operation{Command: jobevent.CommandCancel, JobIDs: []uuid.UUID{id}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if commands, _, err := h.Operations.Operate(t.Context(), op.ID); err != nil || len(commands) != 1 {
		t.Fatalf("%+v, %v", commands, err)
	}
}
