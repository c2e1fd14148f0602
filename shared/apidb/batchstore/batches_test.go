package batchstore_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/batchstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// followUps counts the jobs of a type that follow a batch.
func (f fixture) followUps(t testing.TB, batch uuid.UUID, jobType string) int {
	t.Helper()
	return apidbtest.One[int](t, f, "select count(*) from jobs where event_source = $1 and job_type = $2",
		jobstore.BatchSource+batch.String(), jobType)
}

func TestTheFollowingJobGetsTheSummary(t *testing.T) {
	t.Parallel()
	f := open(t)
	id, jobs := f.create(t, apibody.Batch{Name: "import", OnComplete: json.RawMessage(onComplete), Closed: true}, 2)
	for _, job := range jobs {
		f.become(t, job, jobstate.Completed)
	}
	swept := f.sweep(t)
	if len(swept.Jobs) != 1 {
		t.Fatalf("it made %d jobs", len(swept.Jobs))
	}
	var payload struct {
		N  json.Number
		Of struct {
			BatchID uuid.UUID
			Name    string
			Status  string
			Total   int
			Counts  map[string]int
		}
	}
	if err := json.Unmarshal(swept.Jobs[0].Payload, &payload); err != nil {
		t.Fatal(err)
	}
	of := payload.Of
	if payload.N != "12345678901234567890" || of.BatchID != id || of.Name != "import" || of.Status != "COMPLETED" ||
		of.Total != 2 || of.Counts["COMPLETED"] != 2 || len(of.Counts) != len(jobstate.All()) {
		t.Errorf("the payload is %s", swept.Jobs[0].Payload)
	}
	if got := f.batch(t, id); got.FollowUpID == nil || *got.FollowUpID != swept.Jobs[0].JobID {
		t.Errorf("the batch names %v", got.FollowUpID)
	}
}

func TestAFollowingJobThatIsRefusedIsReportedAndTheBatchEnds(t *testing.T) {
	t.Parallel()
	f := open(t)
	id, _ := f.create(t, apibody.Batch{
		OnComplete: json.RawMessage(`{"jobType": "done", "payload": {}, "queue": "closed-down"}`), Closed: true,
	}, 0)
	f.sweep(t)
	if got := f.batch(t, id); got.Status != batchstore.Completed || got.FollowUpID != nil || got.FollowUpError == "" {
		t.Errorf("%+v", got)
	}
}

func TestOfManySweepersOneMakesTheFollowingJob(t *testing.T) {
	t.Parallel()
	f := open(t)
	var ids []uuid.UUID
	for range 20 {
		id, _ := f.create(t, apibody.Batch{OnComplete: json.RawMessage(onComplete), Closed: true}, 0)
		ids = append(ids, id)
	}
	var sweepers sync.WaitGroup
	for range 8 {
		store := apidbtest.Open(t, f.URL)
		sweepers.Go(func() {
			if _, _, err := store.Batches.Sweep(t.Context(), rules, time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
	sweepers.Wait()
	f.sweep(t)
	for _, id := range ids {
		if n := f.followUps(t, id, "done"); n != 1 || f.batch(t, id).Status != batchstore.Completed {
			t.Errorf("batch %s has %d following jobs", id, n)
		}
	}
}

func TestJobsThatRaceWithTheCloseAreCountedOrRefused(t *testing.T) {
	t.Parallel()
	f := open(t)
	id, _ := f.create(t, apibody.Batch{OnComplete: json.RawMessage(onComplete)}, 0)
	var submitters sync.WaitGroup
	taken, many := make(chan uuid.UUID, 10_000), make(chan struct{})
	begun := sync.OnceFunc(func() { close(many) })
	for range 8 {
		submitters.Go(func() {
			for {
				job := f.jobOf(id, "")
				accepted, err := f.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{job})
				if err != nil {
					t.Error(err)
					return
				}
				if accepted[0].Late != nil {
					return
				}
				if taken <- job.JobID; len(taken) >= 100 {
					begun()
				}
			}
		})
	}
	<-many
	if _, err := f.Batches.Close(t.Context(), nil, apidb.Everyone, id); err != nil {
		t.Fatal(err)
	}
	atClose := f.batch(t, id).Counts.Total()
	submitters.Wait()
	if total := f.batch(t, id).Counts.Total(); total != atClose || total != int64(len(taken)) {
		t.Errorf("it had %d jobs when it was closed, has %d, and took %d", atClose, total, len(taken))
	}
}

func TestAnOpenBatchThatExpiresIsClosedAndFails(t *testing.T) {
	t.Parallel()
	f := open(t)
	at := time.Now().Add(time.Hour)
	id, jobs := f.create(t, apibody.Batch{OnFailure: json.RawMessage(onFailure), ExpiresAt: &at}, 3)
	f.become(t, jobs[0], jobstate.Completed)
	f.become(t, jobs[1], jobstate.Running)
	f.Exec(t, "update batches set expires_at = now()")
	if _, taken := f.add(t, id); taken {
		t.Error("it takes a job after its expiresAt")
	}
	for range 3 { // it expires, cancels, and waits for the operation
		f.sweep(t)
	}
	f.operate(t)
	f.sweep(t)
	if got := f.batch(t, id); got.Status != batchstore.Running || got.ExpiredAt == nil || got.Counts[jobstate.Cancelled] != 1 {
		t.Errorf("while one of its jobs runs it is %+v", got)
	}
	f.become(t, jobs[1], jobstate.Retrying) // the attempt failed
	f.sweep(t)
	f.operate(t)
	f.sweep(t)
	if got := f.batch(t, id); got.Status != batchstore.Expired || got.Counts[jobstate.Cancelled] != 2 || f.followUps(t, id, "undone") != 1 {
		t.Errorf("it has ended as %+v", got)
	}
}

// The second retry skips the job, because it has a command already, so its operation ends before the job runs again.
func TestABatchThatIsRetriedTwiceAtOnceEndsAfterItsJobs(t *testing.T) {
	t.Parallel()
	f := open(t)
	id, jobs := f.create(t, apibody.Batch{Closed: true}, 1)
	f.become(t, jobs[0], jobstate.Failed)
	f.sweep(t)
	var operations []uuid.UUID
	for range 2 {
		operation, err := f.Batches.Retry(t.Context(), nil, apidb.Everyone, id, "test")
		if err != nil {
			t.Fatal(err)
		}
		operations = append(operations, operation)
	}
	asked, _, err := f.Operations.Operate(t.Context(), operations[0])
	if err != nil || len(asked) != 1 {
		t.Fatalf("the first retry asked %d jobs, %v", len(asked), err)
	}
	if again, _, err := f.Operations.Operate(t.Context(), operations[1]); err != nil || len(again) != 0 {
		t.Fatalf("the second retry asked %d jobs, %v", len(again), err)
	}
	f.sweep(t)
	if got := f.batch(t, id); got.Finished() {
		t.Errorf("the batch is %s while its job has an unanswered retry", got.Status)
	}
	f.Apply(t, apidbtest.Status(jobs[0], 2, jobstate.Completed, apidbtest.Answered(asked[0].Number, true)))
	f.sweep(t)
	if got := f.batch(t, id); got.Status != batchstore.Completed {
		t.Errorf("the batch is %s after its job has completed", got.Status)
	}
}

func TestABatchDoesNotEndWithAJobThatIsRetriedMeanwhile(t *testing.T) {
	t.Parallel()
	f := open(t)
	id, jobs := f.create(t, apibody.Batch{Closed: true, OnComplete: json.RawMessage(onComplete)}, 1)
	f.become(t, jobs[0], jobstate.Failed)
	swept := make(chan error, 1)
	f.Conn(t, func(ctx context.Context, c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			// The sweep waits here, after it has looked for a job that has not ended.
			if _, err := tx.Exec(ctx, "lock table batch_deletions"); err != nil {
				return err
			}
			go func() {
				_, _, err := f.Batches.Sweep(ctx, rules, time.Minute)
				swept <- err
			}()
			f.Conn(t, func(_ context.Context, c *pgx.Conn) error {
				pgtest.UntilBlocked(t, c.QueryRow)
				return nil
			})
			_, err := tx.Exec(ctx, "update jobs set status = 'PENDING', version = 2 where job_id = $1", jobs[0])
			return err
		})
	})
	if err := <-swept; err != nil {
		t.Fatal(err)
	}
	if got := f.batch(t, id); got.Finished() || f.followUps(t, id, "done") > 0 {
		t.Errorf("the batch is %s while its job is PENDING: %v", got.Status, got.Counts)
	}
}

func TestACancelAbortsTheRetryOfItsBatch(t *testing.T) {
	t.Parallel()
	f := open(t)
	const ofAPiece = 500
	id, _ := f.create(t, apibody.Batch{Closed: true}, ofAPiece+1)
	f.Exec(t, "update jobs set status = 'FAILED', version = 1, snapshot = '{}'")
	retry, err := f.Batches.Retry(t.Context(), nil, apidb.Everyone, id, "test")
	if err != nil {
		t.Fatal(err)
	}
	if asked, _, err := f.Operations.Operate(t.Context(), retry); err != nil || len(asked) != ofAPiece {
		t.Fatalf("the retry asked %d jobs, %v", len(asked), err)
	}
	if _, err := f.Batches.Cancel(t.Context(), nil, apidb.Everyone, id, "test"); err != nil {
		t.Fatal(err)
	}
	if asked, _, err := f.Operations.Operate(t.Context(), retry); err != nil || len(asked) > 0 {
		t.Errorf("the retry asked %d jobs after the cancel, %v", len(asked), err)
	}
}

func TestACancelReachesJobsWhoseRetryIsUnanswered(t *testing.T) {
	t.Parallel()
	f := open(t)
	id, jobs := f.create(t, apibody.Batch{Closed: true}, 1)
	f.become(t, jobs[0], jobstate.Failed)
	retry, err := f.Batches.Retry(t.Context(), nil, apidb.Everyone, id, "test")
	if err != nil {
		t.Fatal(err)
	}
	asked, _, err := f.Operations.Operate(t.Context(), retry)
	if err != nil || len(asked) != 1 {
		t.Fatalf("the retry asked %d jobs, %v", len(asked), err)
	}
	cancel, err := f.Batches.Cancel(t.Context(), nil, apidb.Everyone, id, "test")
	if err != nil {
		t.Fatal(err)
	}
	if early, _, err := f.Operations.Operate(t.Context(), cancel); err != nil || len(early) > 0 {
		t.Fatalf("the cancel asked %d jobs before the retry was answered, %v", len(early), err)
	}
	f.Apply(t, apidbtest.Status(jobs[0], 2, jobstate.Pending, apidbtest.Answered(asked[0].Number, true)))
	if late, _, err := f.Operations.Operate(t.Context(), cancel); err != nil || len(late) != 1 {
		t.Errorf("the cancel asked %d jobs after the retry was answered, %v", len(late), err)
	}
}

func TestABatchIsDeletedAfterTheLastOfItsJobs(t *testing.T) {
	t.Parallel()
	f := open(t)
	id, jobs := f.create(t, apibody.Batch{Closed: true}, 1)
	live, _ := f.create(t, apibody.Batch{Closed: true}, 1)
	f.become(t, jobs[0], jobstate.Completed)
	f.sweep(t)
	ages := statusstore.Ages{Completed: time.Hour}
	expire := func() int64 {
		t.Helper()
		walked, err := f.Statuses.ExpireBatches(t.Context(), time.Now().Add(2*time.Hour), ages, uuid.Nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		return walked.Gone
	}
	if n := expire(); n != 0 {
		t.Errorf("%d batches are gone with jobs left", n)
	}
	if _, err := f.Statuses.ForgetJobs(t.Context(), []statusstore.Gone{{JobID: jobs[0], Version: 9}}); err != nil {
		t.Fatal(err)
	}
	if got := f.batch(t, id); got.Counts[jobstate.Completed] != 1 {
		t.Errorf("its counts are %v after the deletion of its job", got.Counts)
	}
	if n := expire(); n != 1 {
		t.Errorf("%d batches are gone, not 1", n)
	}
	f.batch(t, live)
}

func TestABatchAndItsJobsAreStoredTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	f := open(t)
	asked := batchstore.NewBatch{ID: f.NewID()}
	good, bad := f.jobOf(asked.ID, ""), f.jobOf(asked.ID, "")
	bad.Request.After = []uuid.UUID{uuid.New()}
	asked.Jobs = []jobstore.NewJob{good, bad}
	if _, err := f.Batches.Create(t.Context(), nil, asked); err == nil {
		t.Error("it is stored with a job that comes after none")
	}
	if n := apidbtest.One[int](t, f, "select (select count(*) from jobs) + (select count(*) from batches)"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}
