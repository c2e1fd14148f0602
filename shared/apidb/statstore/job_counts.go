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
	// censusPage is how many jobs one statement counts, so that none holds a snapshot for long.
	censusPage = 50_000
	// censusEvery and censusShare bound how often all jobs are counted: the longer a census takes, the less often.
	censusEvery = 10 * time.Second
	censusShare = 20
)

// Census counts the jobs that have not ended, page by page, and the ended ones in the snapshot of the last page. If
// all jobs fit on one page, all counts are of one instant; of millions, a job in transition may count twice or not at
// all.
type Census struct {
	begun  time.Time
	spent  time.Duration
	shelf  int16
	after  uuid.UUID
	counts map[countKey]*jobCount // by owner, and for everyone
}

type countKey struct {
	of             apidb.Owner
	status         jobstate.Status
	queue, jobType string
}

// jobCount is also the stored form.
type jobCount struct {
	Status  jobstate.Status
	Queue   string
	JobType string
	N       int64
	Oldest  uuid.UUID `json:",omitzero"` // the first accepted job that has not ended
}

// CountJobs continues a census, or begins one if it is time. next is when to call it again; 0: there is more to
// count.
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

// storedCounts reads the stored form of counts.
func storedCounts[T ~string | ~[]byte](text T) (counts []*jobCount, err error) {
	if err := json.Unmarshal([]byte(text), &counts); err != nil {
		return nil, fmt.Errorf("read counts of jobs: %w", err)
	}
	return counts, nil
}

// countsOf holds the counts of one owner.
type countsOf struct{ live, ended []*jobCount }

// noCounts is written as empty lists, not as null.
func noCounts() *countsOf { return &countsOf{live: []*jobCount{}, ended: []*jobCount{}} }

// byOwner sorts the counts, so that the same counts give the same text.
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

// texts returns the stored form of the counts.
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
		if err != nil || n == 0 { // another process has stored a later count
			return err
		}
		return q.OwnerJobCountsPut(ctx, owners)
	})
	return apidb.Classify("keep counts of jobs", err)
}

// statusOfShelf is the inverse of shelves.Of, for jobs that have not ended.
func statusOfShelf(shelf int16) jobstate.Status {
	for _, status := range jobstate.All() {
		for _, of := range shelves.Of(status) {
			if of == int32(shelf) {
				return status
			}
		}
	}
	panic(fmt.Sprintf("there is no shelf %d", shelf)) // shelf_of returns no other
}
