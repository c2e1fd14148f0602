package jobs

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The store looks at 20,000 jobs at once. A page has the jobs that match beyond them, as long as there is time.
func TestASearchGoesOnToOlderJobs(t *testing.T) {
	t.Parallel()
	s := apidbtest.New(t)
	s.Exec(t, "alter table jobs set (autovacuum_enabled = off)")
	for _, part := range []struct {
		tag  string
		jobs int
	}{{"order-1", 1}, {"other", 21_000}, {"order-2", 1}, {"other", 21_000}} {
		s.Exec(t, `insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot, tags)
			select uuidv7(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(),
				'COMPLETED', 1, '{}', array[$1::text]
			from generate_series(1, $2::int)`, part.tag, part.jobs)
	}
	list := func(tag string, limit int, before uuid.UUID, lasts time.Duration) (tags []string, next uuid.UUID) {
		t.Helper()
		filter := jobstore.Filter{Filter: apibody.Filter{Tag: tag}, Limit: limit, Before: before}
		found, next, err := search(t.Context(), s.Jobs, apidb.Everyone, filter, lasts)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range found {
			tags = append(tags, job.Tags...)
		}
		return tags, next
	}
	if tags, next := list("order-*", 50, uuid.Nil, time.Hour); len(tags) != 2 || tags[0] != "order-2" || next != uuid.Nil {
		t.Errorf("with time it finds %v, and goes on after %s", tags, next)
	}
	tags, next := list("order-*", 1, uuid.Nil, time.Hour)
	if len(tags) != 1 || tags[0] != "order-2" || next == uuid.Nil {
		t.Errorf("a page of one job has %v, and goes on after %s", tags, next)
	}
	if tags, next = list("order-*", 1, next, time.Hour); len(tags) != 1 || tags[0] != "order-1" || next != uuid.Nil {
		t.Errorf("the next page has %v, and goes on after %s", tags, next)
	}
	parts := 1
	for tags, next = list("order-1", 50, uuid.Nil, 0); next != uuid.Nil && parts < 10; parts++ {
		if len(tags) != 0 {
			t.Errorf("part %d has %v", parts, tags)
		}
		tags, next = list("order-1", 50, next, 0)
	}
	if len(tags) != 1 || parts != 3 {
		t.Errorf("without time it finds %v in part %d", tags, parts)
	}
}
