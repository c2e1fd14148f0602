package statusstore_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestTheHighestVersionCountsInWhateverOrder(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := h.Accept(t, apidbtest.NewJob())
	story := []statusstore.PublishedStatus{
		apidbtest.Status(job.JobID, 1, jobstate.Pending), apidbtest.Status(job.JobID, 2, jobstate.Running, func(s *jobevent.Status) { s.Attempt = 1 }),
		apidbtest.Status(job.JobID, 3, jobstate.Retrying, func(s *jobevent.Status) { s.Attempt, s.RetryCount = 1, 1 }),
		apidbtest.Status(job.JobID, 5, jobstate.Completed, func(s *jobevent.Status) { s.Attempt, s.RetryCount = 2, 1 }),
	}
	story = append(story, story...)
	rand.Shuffle(len(story), func(i, j int) { story[i], story[j] = story[j], story[i] })
	for len(story) > 0 {
		n := min(1+rand.IntN(3), len(story))
		h.Apply(t, story[:n]...)
		story = story[n:]
	}
	got := h.ReadJob(t, job.JobID)
	if got.Status != jobstate.Completed || got.Version != 5 || got.Attempt != 2 || got.RetryCount != 1 || got.Snapshot.Version != 5 {
		t.Errorf("got %+v", got)
	}
	if n := h.Apply(t, apidbtest.Status(job.JobID, 4, jobstate.Running)); n != 0 {
		t.Errorf("an old word changed %d rows", n)
	}
}

func TestAStatusOfAnUnknownJobChangesNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	if n := h.Apply(t, apidbtest.Status(uuid.New(), 1, jobstate.Running)); n != 0 {
		t.Errorf("it changed %d rows", n)
	}
}

func TestAnImpossibleStatusIsInvalid(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := h.Accept(t, apidbtest.NewJob())
	for name, w := range map[string]statusstore.PublishedStatus{
		"a state that is none": apidbtest.Status(job.JobID, 1, "HAPPY"),
		"an attempt below 0":   apidbtest.Status(job.JobID, 1, jobstate.Running, func(s *jobevent.Status) { s.Attempt = -1 }),
		"a retry below 0":      apidbtest.Status(job.JobID, 1, jobstate.Running, func(s *jobevent.Status) { s.RetryCount = -1 }),
		"a version below 0":    apidbtest.Status(job.JobID, -1, jobstate.Pending),
	} {
		if _, err := h.Statuses.ApplyStatuses(t.Context(), []statusstore.PublishedStatus{w}); !errors.Is(err, jobevent.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := h.ReadJob(t, job.JobID); got.Version != 0 {
		t.Errorf("it was taken: %+v", got)
	}
}

func TestBatchesThatShareJobsDoNotStopEachOther(t *testing.T) {
	t.Parallel()
	h := open(t)
	var ids []uuid.UUID
	for range 50 {
		ids = append(ids, h.Accept(t, apidbtest.NewJob()).JobID)
	}
	var g errgroup.Group
	for range 8 {
		g.Go(func() error {
			var words []statusstore.PublishedStatus
			for _, at := range rand.Perm(len(ids)) {
				for version := range int64(5) {
					words = append(words, apidbtest.Status(ids[at], version+1, jobstate.Running))
				}
			}
			_, err := h.Statuses.ApplyStatuses(t.Context(), words)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := apidbtest.One[int](t, h, "select count(*) from jobs where version = 5"); n != len(ids) {
		t.Errorf("%d jobs have version 5", n)
	}
}

func TestAnAnswerMakesRoomForTheNextCommand(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := h.Accept(t, apidbtest.NewJob())
	keep := func(command string) (int, error) {
		kept, err := h.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, job.JobID, command, "me")
		return kept.Number, err
	}
	if n, err := keep("cancel"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	h.Apply(t, apidbtest.Status(job.JobID, 1, jobstate.Running)) // a status from before the command
	if n, err := keep("cancel"); n != 1 || err != nil {
		t.Errorf("the same again: %d, %v", n, err)
	}
	h.Apply(t, apidbtest.Status(job.JobID, 2, jobstate.Running, apidbtest.Answered(1, false)))
	if got := h.ReadJob(t, job.JobID); got.CancelRequestedAt != nil {
		t.Error("a cancel that was refused still shows")
	}
	if n, err := keep("cancel"); n != 2 || err != nil {
		t.Errorf("after the answer: %d, %v", n, err)
	}
	h.Apply(t, apidbtest.Status(job.JobID, 2, jobstate.Running, apidbtest.Answered(1, false))) // a repeated status, which answers only the first command
	if n, err := keep("cancel"); n != 2 || err != nil {
		t.Errorf("after the old answer again: %d, %v", n, err)
	}
	if got := h.ReadJob(t, job.JobID); got.CancelRequestedAt == nil {
		t.Error("the old answer took the new wish away")
	}
	h.Apply(t, apidbtest.Status(job.JobID, 3, jobstate.Cancelled, apidbtest.Answered(2, true)))
	var refused *commandstore.RefusedError
	if _, err := keep("cancel"); !errors.As(err, &refused) || refused.Status != jobstate.Cancelled {
		t.Errorf("cancel of a cancelled job: %v", err)
	}
	if n, err := keep("retry"); n != 3 || err != nil {
		t.Errorf("retry: %d, %v", n, err)
	}
	if _, err := keep("cancel"); !errors.As(err, &refused) || refused.Pending != "retry" {
		t.Errorf("cancel while a retry is not answered: %v", err)
	}
}

func TestARepeatedAnswerStillDeletesTheCommand(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := h.Accept(t, apidbtest.NewJob())
	if _, err := h.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, job.JobID, "cancel", "me"); err != nil {
		t.Fatal(err)
	}
	done := apidbtest.Status(job.JobID, 1, jobstate.Cancelled, apidbtest.Answered(1, true))
	h.Exec(t, "update jobs set version = 1, status = 'CANCELLED', snapshot = $2 where job_id = $1", job.JobID, string(done.JSON))
	h.Apply(t, done) // not newer
	if n := apidbtest.One[int](t, h, "select count(*) from commands"); n != 0 {
		t.Errorf("%d commands are kept", n)
	}
}

func TestConcurrentCommandsAndStatusesLoseNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := h.Accept(t, apidbtest.NewJob())
	var g errgroup.Group
	for range 20 {
		g.Go(func() error {
			_, err := h.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, job.JobID, "cancel", "me")
			return err
		})
		g.Go(func() error {
			_, err := h.Statuses.ApplyStatuses(t.Context(), []statusstore.PublishedStatus{apidbtest.Status(job.JobID, rand.Int64N(9)+1, jobstate.Running, apidbtest.Answered(1, true))})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	// The command with the last number is stored, unless the number is 1, which was answered.
	seq := apidbtest.One[int](t, h, "select command_seq from jobs")
	kept := apidbtest.One[int](t, h, "select coalesce(max(number), 0) from commands")
	if seq > 1 && kept != seq {
		t.Errorf("number %d was given, %d is kept", seq, kept)
	}
}
