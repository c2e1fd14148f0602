package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/shared/client"
)

// drain waits until every job has ended and every end was delivered.
func drain(ctx context.Context, h *installation.Installation, c *chaos, l *load) error {
	if c.steppedBack {
		c.waitForTheHour(ctx, l)
	}
	err := installation.Within(ctx, drainWithin, func(ctx context.Context) error {
		open, err := openJobs(ctx, l)
		if err == nil && len(open) > 0 {
			err = fmt.Errorf("%d jobs: %v", len(open), open[:min(len(open), 5)])
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("not drained within %s: %w", drainWithin, err)
	}
	database := h.Postgres.URL("jobweaver_api")
	return installation.Within(ctx, drainWithin, func(ctx context.Context) error {
		open, err := installation.Texts(ctx, database,
			"select job_id || ' ' || coalesce(last_error, '') from deliveries where status = 'PENDING'")
		if err == nil && len(open) > 0 {
			err = fmt.Errorf("%d deliveries are open: %v", len(open), open[:min(len(open), 5)])
		}
		return err
	})
}

// waitForTheHour waits for the hour by which PostgreSQL's clock was once set back. Times that it had stamped by then
// (delays, retries, repeats of events) are due only afterwards, see docs/reliability.md.
func (c *chaos) waitForTheHour(ctx context.Context, l *load) {
	late := 0
	_ = installation.Within(ctx, clearedWithin, func(ctx context.Context) error {
		open, err := openJobs(ctx, l)
		if late = len(open); err == nil && late > 0 {
			err = errNotYet
		}
		return err
	})
	if late == 0 {
		return
	}
	c.system.Log(fmt.Sprintf("%d jobs wait for the hour by which PostgreSQL's clock was set back: set forward", late))
	if c.hourLate = late; c.system.Postgres.Control.Step(time.Hour) != nil {
		c.breaks("PostgreSQL's clock cannot be put forward")
	}
}

// openJobs lists the jobs that have not ended.
func openJobs(ctx context.Context, l *load) (open []string, err error) {
	batches, err := listBatches(ctx, l, client.BatchRunning)
	if err != nil {
		return nil, err
	}
	for id := range batches { // before the jobs, since their ends submit some
		open = append(open, "batch "+id)
	}
	// One list has all statuses: a job whose attempt is lost goes back, and a list of each status could miss it.
	filter := client.Filter{Status: []string{"SCHEDULED", "PENDING", "QUEUED", "RUNNING", "WAITING", "RETRYING"}}
	for job, err := range l.gateways[0].List(ctx, filter) {
		if err != nil {
			return nil, err
		}
		open = append(open, job.JobID+" is "+job.Status)
	}
	return open, nil
}

func listJobs(ctx context.Context, l *load, filter client.Filter) (ids []string, err error) {
	for job, err := range l.gateways[0].List(ctx, filter) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, job.JobID)
	}
	return ids, nil
}

// collect reads the witness's file, every job, the topics, the statistics and the logs.
func collect(ctx context.Context, h *installation.Installation, c *chaos, l *load) (*history, error) {
	hist := &history{
		orders: map[string]*order{}, ticks: map[string][]tick{}, faults: c.faults, clocks: c.clocks,
		frozen: h.Diary.Freezes(), exits: h.Diary.Ends(), logs: panics(h), made: l.batches,
		late: append(l.complaints, c.broken...),
	}
	for _, o := range l.all() {
		hist.orders[o.key] = o
	}
	lines, err := installation.ReadLines(h.Path("witness.jsonl"))
	if err != nil {
		return nil, err
	}
	hist.addLines(lines)
	hist.measureGaps(lines)
	if hist.jobs, err = collectJobs(ctx, l); err != nil {
		return nil, err
	}
	if hist.batches, err = listBatches(ctx, l, ""); err != nil {
		return nil, err
	}
	hist.nameMembers()
	for _, name := range schedules {
		if hist.ticks[name], err = l.ticks(ctx, name); err != nil {
			return nil, err
		}
	}
	if err := h.CountRecords(); err != nil {
		return nil, err
	}
	hist.records = h.Records
	if hist.workers, err = workerIDs(h); err != nil {
		return nil, err
	}
	hist.stats, err = collectStats(ctx, l, hist)
	return hist, err
}

// nameMembers gives the orders of batches and calls, which are accepted without the ids of their jobs, those ids.
func (h *history) nameMembers() {
	ids := map[string]string{}
	for id, j := range h.jobs {
		ids[j.key()] = id
	}
	for _, made := range h.made {
		for _, o := range append(made.members, made.next) {
			o.id = ids[o.key]
		}
	}
	for _, o := range h.orders {
		if o.caller != "" {
			o.id = ids[o.key]
		}
	}
}

func collectJobs(ctx context.Context, l *load) (map[string]*job, error) {
	ids, err := listJobs(ctx, l, client.Filter{})
	if err != nil {
		return nil, err
	}
	jobs := make([]*job, len(ids))
	var reads errgroup.Group
	reads.SetLimit(8)
	for i, id := range ids {
		reads.Go(func() error {
			_, err := l.gateways[i%len(l.gateways)].Do(ctx, http.MethodGet, "/api/jobs/"+id, "", nil, &jobs[i])
			return err
		})
	}
	err = reads.Wait()
	all := map[string]*job{}
	for i, id := range ids {
		all[id] = jobs[i]
	}
	return all, err
}

// collectStats waits up to half a minute until the statistics agree with the list, since they are slightly older.
func collectStats(ctx context.Context, l *load, hist *history) (map[string]int, error) {
	var answer struct{ Jobs map[string]int }
	err := installation.Within(ctx, 30*time.Second, func(ctx context.Context) error {
		if _, err := l.gateways[0].Do(ctx, http.MethodGet, "/api/stats", "", nil, &answer); err != nil {
			return err
		}
		v, same := &verdict{}, *hist
		same.stats = answer.Jobs
		if same.checkStats(v); len(v.violations) > 0 {
			return errNotYet
		}
		return nil
	})
	if errors.Is(err, errNotYet) {
		err = nil // the check reports what differs
	}
	return answer.Jobs, err
}

var errNotYet = errors.New("the statistics differ from the list")

// workerIDs reads from the workers' logs which process had which id. That of a pull worker is its name.
func workerIDs(h *installation.Installation) (map[string]string, error) {
	of := map[string]string{}
	for _, p := range h.Pullers {
		of[p.Name] = p.Name
	}
	for _, f := range h.Workers() {
		file, err := os.Open(f.Log)
		if err != nil {
			return nil, fmt.Errorf("read log of %s: %w", f.Name, err)
		}
		scan := bufio.NewScanner(file)
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			var entry struct{ Msg, WorkerID string }
			if strings.Contains(scan.Text(), "worker started") && json.Unmarshal(scan.Bytes(), &entry) == nil {
				of[entry.WorkerID] = f.Name
			}
		}
		if err := errors.Join(scan.Err(), file.Close()); err != nil {
			return nil, fmt.Errorf("read log of %s: %w", f.Name, err)
		}
	}
	return of, nil
}

// measureGaps finds, for each fault, the longest time without any end, and complains if a single frozen process
// delayed the others.
func (h *history) measureGaps(lines []installation.Line) {
	for _, f := range h.faults {
		last := f.from
		for _, l := range lines {
			if l.What != installation.LineEnd && l.What != installation.LineCall || l.At.Before(f.from) {
				continue
			}
			f.gap = max(f.gap, l.At.Sub(last))
			if last = l.At; l.At.After(f.healed) {
				break
			}
		}
		if f.alone && f.gap > continuesWithin+machineRoom {
			h.late = append(h.late, fmt.Sprintf("%s (%v): nothing ended for %s, the rest is to continue within %s",
				f, f.what, seconds(f.gap), continuesWithin))
		}
	}
}
