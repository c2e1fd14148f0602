package apidb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

const (
	// censusPage is how many jobs one statement counts: none holds a snapshot for long.
	censusPage = 50_000
	// censusEvery and censusShare say how seldom all are counted: the longer it takes, the less often.
	censusEvery = 10 * time.Second
	censusShare = 20
)

// Census counts the jobs that have not ended, page by page. Up to a page it is one snapshot; of millions
// a job that moves meanwhile may count twice or not at all.
type Census struct {
	begun  time.Time
	spent  time.Duration
	shelf  int16
	after  uuid.UUID
	counts map[countKey]*liveCount // by owner, and of everyone
}

type countKey struct {
	of             Owner
	status         jobstate.Status
	queue, jobType string
}

// liveCount is also what is kept of it.
type liveCount struct {
	Status  jobstate.Status
	Queue   string
	JobType string
	N       int64
	Oldest  uuid.UUID // the first that was accepted
}

// CountJobs goes on with a census, or begins one where it is time. Its answer says when to call again, 0:
// there is more to count.
func (s *Store) CountJobs(ctx context.Context, c *Census, now time.Time) (next time.Duration, err error) {
	if c.counts == nil {
		last, err := s.q.JobCounts(ctx)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return 0, classify("look for the last count of jobs", err)
		}
		due := last.AsOf.Add(max(censusEvery, censusShare*last.Took))
		if last.AsOf.Before(now) && now.Before(due) {
			return due.Sub(now), nil
		}
		*c = Census{begun: now, counts: map[countKey]*liveCount{}}
	}
	began := time.Now()
	rows, err := s.q.JobsCountPage(ctx, gen.JobsCountPageParams{Shelf: c.shelf, AfterID: c.after, MaxJobs: censusPage})
	if err != nil {
		return 0, classify("count jobs", err)
	}
	seen := c.add(rows)
	c.spent += time.Since(began)
	if seen == censusPage {
		return 0, nil
	}
	if err := s.keepCensus(ctx, c); err != nil {
		return 0, err
	}
	next = max(censusEvery, censusShare*c.spent)
	*c = Census{}
	return next, nil
}

func (c *Census) add(rows []gen.JobsCountPageRow) (seen int64) {
	for _, row := range rows {
		seen += row.N
		for _, of := range []Owner{OwnerOf(row.OwnerID), Everyone} {
			c.addRow(countKey{of, statusOfShelf(row.Shelf), row.Queue, row.JobType}, row)
		}
		if row.Shelf > c.shelf || row.Shelf == c.shelf && row.LastID.String() > c.after.String() {
			c.shelf, c.after = row.Shelf, row.LastID
		}
	}
	return seen
}

func (c *Census) addRow(key countKey, row gen.JobsCountPageRow) {
	if c.counts[key] == nil {
		c.counts[key] = &liveCount{Status: key.status, Queue: row.Queue, JobType: row.JobType, Oldest: row.FirstID}
	}
	count := c.counts[key]
	count.N += row.N
	if row.FirstID.String() < count.Oldest.String() {
		count.Oldest = row.FirstID
	}
}

// bodies are what is kept of each owner: the same counts are the same text.
func (c *Census) bodies() (map[Owner][]byte, error) {
	counts := map[Owner][]*liveCount{Everyone: {}}
	for key, count := range c.counts {
		counts[key.of] = append(counts[key.of], count)
	}
	bodies := make(map[Owner][]byte, len(counts))
	for owner, of := range counts {
		slices.SortFunc(of, func(a, b *liveCount) int {
			return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.JobType, b.JobType))
		})
		body, err := json.Marshal(of)
		if err != nil {
			return nil, fmt.Errorf("write counts of jobs: %w", err)
		}
		bodies[owner] = body
	}
	return bodies, nil
}

func (s *Store) keepCensus(ctx context.Context, c *Census) error {
	bodies, err := c.bodies()
	if err != nil {
		return err
	}
	all := gen.JobCountsPutParams{AsOf: c.begun, Took: c.spent, Counts: bodies[Everyone]}
	var owners gen.OwnerJobCountsPutParams
	for owner, body := range bodies {
		if !owner.everyone {
			owners.OwnerIDs, owners.Counts = append(owners.OwnerIDs, owner.name), append(owners.Counts, string(body))
		}
	}
	err = s.tx(ctx, func(q *gen.Queries) error {
		n, err := q.JobCountsPut(ctx, all)
		if err != nil || n == 0 { // somebody has counted later
			return err
		}
		return q.OwnerJobCountsPut(ctx, owners)
	})
	return classify("keep counts of jobs", err)
}

// statusOfShelf is the other way round of shelvesOf, for those that have not ended.
func statusOfShelf(shelf int16) jobstate.Status {
	for _, status := range jobstate.All() {
		for _, of := range shelvesOf(status) {
			if of == int32(shelf) {
				return status
			}
		}
	}
	panic(fmt.Sprintf("there is no shelf %d", shelf)) // shelf_of knows none
}
