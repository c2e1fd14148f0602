package jobstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// With any filter and for any owner, a list looks at 20,000 jobs at most, and the next page continues from there.
func TestAListLooksAtSoManyJobsHoweverFewFit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine asks PostgreSQL: there is nothing to race")
	}
	s, plans := watched(t)
	fillOwned(t, s, 90_000, 2)
	for what, c := range map[string]struct {
		owner  apidb.Owner
		filter jobstore.Filter
		pages  int
		found  int
	}{
		"all owners' of a tag":                          {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{Tag: "often"}}, 5, 1},
		"all owners' FAILED ones of a tag":              {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{Tag: "often", Status: []jobstate.Status{jobstate.Failed}}}, 2, 1},
		"all owners' COMPLETED ones of a queue":         {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{Queue: "none", Status: []jobstate.Status{jobstate.Completed}}}, 5, 0},
		"all owners' of an ordering key":                {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{OrderingKey: "k", JobType: "none"}}, 5, 0},
		"all owners' FAILED ones that ended lately":     {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{EndedSince: new(time.Now().Add(time.Hour)), Status: []jobstate.Status{jobstate.Failed}}}, 2, 0},
		"all owners' that ended lately":                 {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{EndedSince: new(time.Now().Add(time.Hour))}}, 5, 0},
		"an owner's that ended lately":                  {apidb.OwnerOf("umbrella"), jobstore.Filter{Filter: apibody.Filter{EndedSince: new(time.Now().Add(time.Hour))}}, 4, 0},
		"the installation's":                            {apidb.OwnerOf(""), jobstore.Filter{}, 5, 0},
		"the installation's FAILED ones":                {apidb.OwnerOf(""), jobstore.Filter{Filter: apibody.Filter{Status: []jobstate.Status{jobstate.Failed}}}, 2, 0},
		"the installation's of an ordering key":         {apidb.OwnerOf(""), jobstore.Filter{Filter: apibody.Filter{OrderingKey: "k"}}, 5, 0},
		"an owner's of a tag":                           {apidb.OwnerOf("umbrella"), jobstore.Filter{Filter: apibody.Filter{Tag: "often"}}, 5, 0},
		"an owner's of an ordering key":                 {apidb.OwnerOf("umbrella"), jobstore.Filter{Filter: apibody.Filter{OrderingKey: "k", Tag: "often"}}, 5, 0},
		"an owner's RUNNING ones of a key":              {apidb.OwnerOf("umbrella"), jobstore.Filter{Filter: apibody.Filter{OrderingKey: "k", Status: []jobstate.Status{jobstate.Running}}}, 5, 0},
		"all owners' PENDING ones of a key":             {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{OrderingKey: "k", Status: []jobstate.Status{jobstate.Pending}, Tag: "none"}}, 5, 0},
		"all owners' COMPLETED ones, of which many fit": {apidb.Everyone, jobstore.Filter{Filter: apibody.Filter{Status: []jobstate.Status{jobstate.Completed}, OrderingKey: "k"}, Limit: 200}, 0, 0},
	} {
		plans.Forget()
		found, pages := 0, 1
		for c.filter.Limit = max(c.filter.Limit, 50); ; pages++ {
			jobs, next, err := s.Jobs.ListJobs(t.Context(), c.owner, c.filter)
			if err != nil {
				t.Fatal(err)
			}
			found += len(jobs)
			if c.filter.Before = next; next == uuid.Nil || c.pages == 0 {
				break
			}
		}
		if c.pages > 0 && (pages != c.pages || found != c.found) {
			t.Errorf("%s: %d jobs on %d pages, want %d on %d", what, found, pages, c.found, c.pages)
		}
		most := float64(jobstore.MaxSeen)
		if c.pages == 0 {
			if most = jobstore.FirstSeen; found != c.filter.Limit {
				t.Errorf("%s: %d jobs", what, found)
			}
		}
		for name, all := range plans.Seen() {
			most := most
			if name == "JobsNewest" && c.owner.Indexed() && c.filter.OrderingKey == "" { // up to that many jobs on each of the three shelves with jobs
				most *= 3
			}
			for _, plan := range all {
				plan.Walk(func(n pgtest.Node) {
					if rows := n.Loops * (n.Rows + n.Removed); n.Relation == "jobs" && strings.Contains(n.Type, "Scan") && rows > most+1 { // + 1: the plan shows a rounded average over all loops
						t.Errorf("%s: %s visits %.0f jobs by %s %s", what, name, rows, n.Type, n.Index)
					}
				})
			}
		}
	}
}
