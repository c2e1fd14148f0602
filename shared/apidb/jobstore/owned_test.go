package jobstore_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func ownedJob(owner string) jobstore.NewJob {
	job := apidbtest.NewJob()
	job.Whose, job.Request.OwnerID = apidb.OwnerOf(owner), owner
	return job
}

func ownedEvent(whose apidb.Owner, owner, id string) jobstore.NewJob {
	job := ownedJob(owner)
	job.Whose, job.EventSource, job.EventID = whose, "/shop", id
	return job
}

func TestTheSameEventOfTwoOwnersIsTwoJobs(t *testing.T) {
	t.Parallel()
	h := open(t)
	acme := h.Accept(t, ownedEvent(apidb.OwnerOf("acme"), "acme", "1"))
	zeta := h.Accept(t, ownedEvent(apidb.OwnerOf("zeta"), "zeta", "1"))
	if zeta.Replayed || zeta.JobID == acme.JobID {
		t.Errorf("the other's is %+v", zeta)
	}
	if again := h.Accept(t, ownedEvent(apidb.OwnerOf("acme"), "acme", "1")); !again.Replayed || again.JobID != acme.JobID {
		t.Errorf("again it is %+v", again)
	}
}

// While authentication was off, an event could name any owner. A client with a key now learns nothing about that
// owner's job.
func TestAnEventFromBeforeAuthenticationShowsItsJobToNoOtherOwner(t *testing.T) {
	t.Parallel()
	h := open(t)
	before := h.Accept(t, ownedEvent(apidb.Everyone, "acme", "1"))
	got := h.Accept(t, ownedEvent(apidb.OwnerOf(""), "", "1"))
	if !got.Conflict || got.JobID != uuid.Nil || got.TraceID != uuid.Nil {
		t.Errorf("got %+v", got)
	}
	if again := h.Accept(t, ownedEvent(apidb.Everyone, "zeta", "1")); again.JobID != before.JobID {
		t.Errorf("without keys it is the same event: %+v", again)
	}
	for _, others := range []int{0, 1} { // alone, and in a batch
		jobs := []jobstore.NewJob{ownedEvent(apidb.OwnerOf(""), "", "1")}
		for range others {
			jobs = append(jobs, ownedEvent(apidb.OwnerOf(""), "", "2"))
		}
		if _, err := h.Jobs.InsertAllJobs(t.Context(), jobs); !errors.Is(err, apidb.ErrConflict) {
			t.Errorf("among %d others: %v", others, err)
		}
	}
}

func TestAnOwnerInsertsNoJobForAnother(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := ownedJob("acme")
	job.Whose = apidb.OwnerOf("zeta")
	for _, jobs := range [][]jobstore.NewJob{{job}, {ownedJob("zeta"), job}} {
		_, some := h.Jobs.InsertJobs(t.Context(), jobs)
		_, all := h.Jobs.InsertAllJobs(t.Context(), jobs)
		if some == nil || all == nil {
			t.Errorf("%v, %v", some, all)
		}
	}
	if n := apidbtest.One[int](t, h, "select count(*) from jobs"); n != 0 {
		t.Errorf("%d jobs are there", n)
	}
}

// An operation of an owner handles its own jobs, whatever its list or filter names. Another owner's key is another
// key.
func TestAnOperationOfAnOwnerComesToOwnJobsOnly(t *testing.T) {
	t.Parallel()
	h := open(t)
	acme, zeta, nobodys := h.Accept(t, ownedJob("acme")), h.Accept(t, ownedJob("zeta")), h.Accept(t, apidbtest.NewJob())
	all := []uuid.UUID{acme.JobID, zeta.JobID, nobodys.JobID}
	for _, c := range []struct {
		owner string
		job   uuid.UUID
	}{{"zeta", zeta.JobID}, {"acme", acme.JobID}, {"", nobodys.JobID}} {
		for _, request := range []apibody.Operation{
			{Command: jobevent.CommandCancel, JobIDs: all, IdempotencyKey: "k"},
			{Command: jobevent.CommandCancel, Filter: &apibody.Filter{All: true}},
			{Command: jobevent.CommandCancel, Filter: &apibody.Filter{OwnerID: "acme"}},
		} {
			asked := operationstore.NewOperation{
				ID: uuid.Must(uuid.NewV7()), Request: request, By: "me", Whose: apidb.OwnerOf(c.owner), RequestHash: []byte(c.owner),
			}
			op, replayed, err := h.Operations.InsertOperation(t.Context(), asked)
			if err != nil || replayed {
				t.Fatal(replayed, err)
			}
			commands, _, err := h.Operations.Operate(t.Context(), op.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, command := range commands {
				if command.JobID != c.job {
					t.Errorf("%s's %+v comes to %s", c.owner, request, command.JobID)
				}
			}
			if request.IdempotencyKey != "" && len(commands) != 1 {
				t.Errorf("%s's list asks %v", c.owner, commands)
			}
			for _, other := range []apidb.Owner{apidb.OwnerOf("other"), apidb.OwnerOf(c.owner + "x")} {
				if _, err := h.Operations.Operation(t.Context(), other, op.ID); !errors.Is(err, operationstore.ErrNoOperation) {
					t.Errorf("another sees it: %v", err)
				}
			}
		}
	}
}
