package jobstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// following makes a job of an owner depend on others.
func following(t *testing.T, s *fixture, owner string, after ...uuid.UUID) uuid.UUID {
	t.Helper()
	job := apidbtest.NewJob()
	job.JobID, job.Request.OwnerID, job.Request.After = s.NewID(), owner, after
	if _, err := s.Jobs.InsertJobs(t.Context(), []jobstore.NewJob{job}); err != nil {
		t.Fatal(err)
	}
	return job.JobID
}

// ended makes jobs end without an error code.
func ended(t *testing.T, s *fixture, as jobstate.Status, ids ...uuid.UUID) {
	t.Helper()
	for _, id := range ids {
		word := jobevent.Status{JobID: id, Version: 1, Status: string(as), UpdatedAt: time.Now()}
		if _, err := s.Statuses.ApplyStatuses(t.Context(), []statusstore.PublishedStatus{{JSON: []byte(`{}`), Status: word}}); err != nil {
			t.Fatal(err)
		}
	}
}

// Jobs that depend on a job are found among many others, whatever their state, by reading only the owner's jobs with
// dependencies.
func TestJobsThatComeAfterOneAreFound(t *testing.T) {
	t.Parallel()
	s, plans := watched(t)
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, theirs := following(t, s, "acme"), following(t, s, "umbrella")
	fillOwned(t, s, 20_000, 2)
	near := following(t, s, "acme", first)
	other := following(t, s, "acme", near)
	far := following(t, s, "acme", other, first)
	following(t, s, "umbrella", theirs)
	ended(t, s, jobstate.Completed, near)
	for whose, c := range map[string]struct {
		owner  apidb.Owner
		filter jobstore.Filter
		want   []uuid.UUID
	}{
		"all owners'":                 {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{After: &first}}, []uuid.UUID{far, near}},
		"all owners', only acme's":    {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{After: &first, OwnerID: "acme"}}, []uuid.UUID{far, near}},
		"all owners', only another's": {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{After: &first, OwnerID: "another"}}, nil},
		"acme's":                      {apidb.OwnerOf("acme"), jobstore.Filter{Filter: apibody.Filter{After: &first}}, []uuid.UUID{far, near}},
		"acme's of umbrella's":        {apidb.OwnerOf("acme"), jobstore.Filter{Filter: apibody.Filter{After: &theirs}}, nil},
		"umbrella's of acme's":        {apidb.OwnerOf("umbrella"), jobstore.Filter{Filter: apibody.Filter{After: &first}}, nil},
		"that wait":                   {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{After: &first, Status: []jobstate.Status{jobstate.Pending}}}, []uuid.UUID{far}},
		"of the last":                 {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{After: &far}}, nil},
	} {
		plans.Forget()
		if got, _ := s.search(t, c.owner, c.filter); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", whose, got, c.want)
		}
		for _, plan := range plans.Seen()["JobsNewest"] {
			plan.Walk(func(n pgtest.Node) {
				if rows := n.Loops * (n.Rows + n.Removed); n.Relation == "jobs" && rows > 4 {
					t.Errorf("%s: visits %.0f jobs by %s", whose, rows, n.Index)
				}
			})
		}
	}
	if n, known, err := s.Jobs.CountDead(t.Context(), apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{After: &first}}); n != 0 || !known || err != nil {
		t.Errorf("%d of them are dead, %t, %v", n, known, err)
	}
}

// An operation handles the jobs that a list with its filter shows, and no others.
func TestAnOperationGoesToJobsAfterOneAndToThoseWithoutACode(t *testing.T) {
	t.Parallel()
	s, _ := watched(t)
	first := following(t, s, "acme")
	next, plain := following(t, s, "acme", first), following(t, s, "umbrella")
	coded := failed(t, s, "acme", "", "x", "NET", "no route")
	ended(t, s, jobstate.Failed, first, next, plain)
	for what, c := range map[string]struct {
		owner  apidb.Owner
		filter apibody.Filter
		want   []uuid.UUID
	}{
		"after":                        {apidb.Everyone, apibody.Filter{After: &first}, []uuid.UUID{next}},
		"after, an owner's":            {apidb.OwnerOf("acme"), apibody.Filter{After: &first}, []uuid.UUID{next}},
		"after, another's":             {apidb.OwnerOf("umbrella"), apibody.Filter{After: &first}, nil},
		"without a code":               {apidb.Everyone, apibody.Filter{NoErrorCode: true}, []uuid.UUID{first, next, plain}},
		"without a code, an owner's":   {apidb.OwnerOf("umbrella"), apibody.Filter{NoErrorCode: true}, []uuid.UUID{plain}},
		"without a code, of all":       {apidb.Everyone, apibody.Filter{NoErrorCode: true, Status: jobstate.All()}, []uuid.UUID{first, next, plain}},
		"with a code":                  {apidb.Everyone, apibody.Filter{ErrorCode: "NET"}, []uuid.UUID{coded}},
		"a message after another job":  {apidb.Everyone, apibody.Filter{Search: "no route", After: &first}, nil},
		"a message of whatever state":  {apidb.Everyone, apibody.Filter{Search: "no route", Status: jobstate.All()}, []uuid.UUID{coded}},
		"a message, another's of all":  {apidb.Everyone, apibody.Filter{Search: "no route", OwnerID: "umbrella"}, nil},
		"a message, another's of acme": {apidb.OwnerOf("acme"), apibody.Filter{Search: "no route", OwnerID: "umbrella"}, nil},
	} {
		if got := operated(t, s, c.owner, c.filter); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", what, got, c.want)
		}
	}
}
