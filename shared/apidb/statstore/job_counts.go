package statstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/shelves"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

const (
	// censusPage is how many jobs one statement counts: none holds a snapshot for long.
	censusPage = 50_000
	// censusEvery and censusShare say how seldom all are counted: the longer it takes, the less often.
	censusEvery = 10 * time.Second
	censusShare = 20
)

// Census counts the jobs that have not ended, page by page, and those that have ended in the snapshot of the last page.
// So up to a page all counts are of one instant; of millions a job that moves meanwhile may count twice or not at all.
type Census struct {
	begun  time.Time
	spent  time.Duration
	shelf  int16
	after  uuid.UUID
	counts map[countKey]*jobCount // by owner, and of everyone
}

type countKey struct {
	of             apidb.Owner
	status         jobstate.Status
	queue, jobType string
}

// jobCount is also what is kept of it.
type jobCount struct {
	Status  jobstate.Status
	Queue   string
	JobType string
	N       int64
	Oldest  uuid.UUID `json:",omitzero"` // the first that was accepted, of those that have not ended
}

// CountJobs goes on with a census, or begins one where it is time. Its answer says when to call again, 0:
// there is more to count.
func (s *Store) CountJobs(ctx context.Context, c *Census, now time.Time) (next time.Duration, err error) {
	if c.counts == nil {
		last, err := s.q.JobCounts(ctx)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return 0, apidb.Classify("look for the last count of jobs", err)
		}
		due := last.AsOf.Add(max(censusEvery, censusShare*last.Took))
		if last.AsOf.Before(now) && now.Before(due) {
			return due.Sub(now), nil
		}
		*c = Census{begun: now, counts: map[countKey]*jobCount{}}
	}
	began := time.Now()
	more, err := s.countPage(ctx, c)
	if err != nil {
		return 0, apidb.Classify("count jobs", err)
	}
	if c.spent += time.Since(began); more {
		return 0, nil
	}
	if err := s.keepCensus(ctx, c); err != nil {
		return 0, err
	}
	next = max(censusEvery, censusShare*c.spent)
	*c = Census{}
	return next, nil
}

func (s *Store) countPage(ctx context.Context, c *Census) (more bool, err error) {
	var rows []gen.JobsCountPageRow
	var kept []gen.TalliesKeptRow
	err = s.db.Snapshot(ctx, func(q *gen.Queries) error {
		page := gen.JobsCountPageParams{Shelf: c.shelf, AfterID: c.after, MaxJobs: censusPage}
		if rows, err = q.JobsCountPage(ctx, page); err != nil {
			return err
		}
		if more = jobsOf(rows) == censusPage; more {
			return nil
		}
		kept, err = q.TalliesKept(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	c.add(rows)
	for _, row := range kept {
		key := countKey{apidb.OwnerWith(row.OwnerID, row.Everyone), jobstate.Status(row.What), row.Queue, row.JobType}
		c.counts[key] = &jobCount{Status: key.status, Queue: row.Queue, JobType: row.JobType, N: row.Kept}
	}
	return more, nil
}

func jobsOf(rows []gen.JobsCountPageRow) (n int64) {
	for _, row := range rows {
		n += row.N
	}
	return n
}

func (c *Census) add(rows []gen.JobsCountPageRow) {
	for _, row := range rows {
		for _, of := range []apidb.Owner{apidb.OwnerOf(row.OwnerID), apidb.Everyone} {
			c.addRow(countKey{of, statusOfShelf(row.Shelf), row.Queue, row.JobType}, row)
		}
		if row.Shelf > c.shelf || row.Shelf == c.shelf && row.LastID.String() > c.after.String() {
			c.shelf, c.after = row.Shelf, row.LastID
		}
	}
}

func (c *Census) addRow(key countKey, row gen.JobsCountPageRow) {
	if c.counts[key] == nil {
		c.counts[key] = &jobCount{Status: key.status, Queue: row.Queue, JobType: row.JobType, Oldest: row.FirstID}
	}
	count := c.counts[key]
	count.N += row.N
	if row.FirstID.String() < count.Oldest.String() {
		count.Oldest = row.FirstID
	}
}

// countsOf are an owner's.
type countsOf struct{ live, ended []*jobCount }

// noCounts are written as empty lists, not as null.
func noCounts() *countsOf { return &countsOf{live: []*jobCount{}, ended: []*jobCount{}} }

// byOwner has an order, so that the same counts are the same text.
func (c *Census) byOwner() map[apidb.Owner]*countsOf {
	all := map[apidb.Owner]*countsOf{apidb.Everyone: noCounts()}
	for _, key := range slices.SortedFunc(maps.Keys(c.counts), func(a, b countKey) int {
		return cmp.Or(cmp.Compare(a.status, b.status), cmp.Compare(a.queue, b.queue), cmp.Compare(a.jobType, b.jobType))
	}) {
		if all[key.of] == nil {
			all[key.of] = noCounts()
		}
		of := &all[key.of].live
		if key.status.Terminal() {
			of = &all[key.of].ended
		}
		*of = append(*of, c.counts[key])
	}
	return all
}

// texts are what is kept of the counts.
func (c *countsOf) texts() (live, ended []byte, err error) {
	if live, err = json.Marshal(c.live); err == nil {
		ended, err = json.Marshal(c.ended)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("write counts of jobs: %w", err)
	}
	return live, ended, nil
}

func (s *Store) keepCensus(ctx context.Context, c *Census) error {
	all := gen.JobCountsPutParams{AsOf: c.begun, Took: c.spent}
	var owners gen.OwnerJobCountsPutParams
	for owner, counts := range c.byOwner() {
		live, ended, err := counts.texts()
		if err != nil {
			return err
		}
		if owner.IsEveryone() {
			all.Counts, all.Ended = live, ended
			continue
		}
		owners.OwnerIDs, owners.Counts = append(owners.OwnerIDs, owner.ID()), append(owners.Counts, string(live))
		owners.Ended = append(owners.Ended, string(ended))
	}
	err := s.db.Tx(ctx, func(q *gen.Queries) error {
		n, err := q.JobCountsPut(ctx, all)
		if err != nil || n == 0 { // somebody has counted later
			return err
		}
		return q.OwnerJobCountsPut(ctx, owners)
	})
	return apidb.Classify("keep counts of jobs", err)
}

// statusOfShelf is the other way round of shelvesOf, for those that have not ended.
func statusOfShelf(shelf int16) jobstate.Status {
	for _, status := range jobstate.All() {
		for _, of := range shelves.Of(status) {
			if of == int32(shelf) {
				return status
			}
		}
	}
	panic(fmt.Sprintf("there is no shelf %d", shelf)) // shelf_of knows none
}
