package changes

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/client"
)

// lookOn reads changed jobs, every lookEvery.
func (h *Hub) lookOn(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.marked:
		}
		pause := lookEvery
		if err := h.look(ctx); err != nil && ctx.Err() == nil {
			h.reading.Note(ctx, err)
			h.miss(false)
			pause = listenPause
		} else {
			h.reading.Note(ctx, nil)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// look reads some of the changed jobs, and adds their events to the ring.
func (h *Hub) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, hubPatience)
	defer cancel()
	taken := h.take()
	after, payloads := h.named()
	if len(taken) == 0 {
		return nil
	}
	ids := make([]uuid.UUID, 0, len(taken))
	for id, what := range taken {
		if what.status || what.progress {
			ids = append(ids, id)
		}
	}
	var jobs []jobstore.Changed
	if len(ids) > 0 {
		var later []uuid.UUID
		var err error
		if jobs, later, err = h.jobs.ChangedJobs(ctx, ids); err != nil {
			return err
		}
		h.again(later, taken)
		if err := h.jobs.FindAfter(ctx, jobs, after); err != nil {
			return err
		}
		h.findPayloads(ctx, jobs, payloads)
	}
	if err := h.addJobs(ctx, jobs, taken); err != nil {
		return err
	}
	if err := h.unblock(ctx, jobs, taken); err != nil {
		return err
	}
	for id, what := range taken {
		if what.log {
			if err := h.addLines(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// findPayloads finds which of the values that streams look for the jobs have. What these streams cost must not hold up
// the others: if it takes longer than payloadPatience, they get a reload event after reloadEvery, and until then
// nothing is looked for.
func (h *Hub) findPayloads(ctx context.Context, jobs []jobstore.Changed, values []string) {
	h.mu.Lock()
	unfound := h.unfound
	h.mu.Unlock()
	if unfound || len(values) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, payloadPatience)
	defer cancel()
	if h.jobs.FindPayloads(ctx, jobs, values) == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unfound = true
	time.AfterFunc(reloadEvery, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.unfound = false
		h.ring.add(client.EventReload, reloadData("payloads change faster than they can be searched"), &event{found: true})
		h.grow()
	})
}

// take returns the jobs to read next, in the order in which they changed. If more have changed than can be read soon,
// streams of lists get one reload event instead. A reload event that is due for another reason does not hold back the
// events of jobs.
func (h *Hub) take() map[uuid.UUID]changes {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.listening { // everything is read again once it listens
		return nil
	}
	if h.over { // the reload event covers them, and all changes until it is sent
		h.dropOthers()
		h.over = false
	}
	if h.reload {
		if wait := reloadEvery - time.Since(h.reloaded); wait <= 0 {
			h.addReload(true, "more has changed than the stream sends one by one")
		} else {
			time.AfterFunc(wait, func() { signal(h.marked) })
		}
	}
	n := min(len(h.order), mostLooked)
	taken := make(map[uuid.UUID]changes, n)
	for _, id := range h.order[:n] {
		taken[id] = h.changed[id]
		delete(h.changed, id)
	}
	if h.order = h.order[n:]; len(h.order) == 0 {
		h.order = nil
	} else {
		signal(h.marked)
	}
	return taken
}

// named returns the jobs that filters name as after, and what they look for in payloads.
func (h *Hub) named() (after []uuid.UUID, payloads []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.after)), slices.Collect(maps.Keys(h.payloads))
}

// dropOthers drops the changes of jobs that no stream follows by id. The caller holds the mutex.
func (h *Hub) dropOthers() {
	kept := h.order[:0]
	for _, id := range h.order {
		if h.followed[id] != nil {
			kept = append(kept, id)
		} else {
			delete(h.changed, id)
		}
	}
	h.order = kept
}

// again queues jobs that did not fit into this read.
func (h *Hub) again(later []uuid.UUID, taken map[uuid.UUID]changes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range later {
		h.note(id, taken[id])
		delete(taken, id)
		signal(h.marked)
	}
}

// addJobs adds the events of jobs. A job that was to be read and does not exist was deleted: its streams get a reload
// event.
func (h *Hub) addJobs(ctx context.Context, jobs []jobstore.Changed, taken map[uuid.UUID]changes) error {
	shown := make([][]byte, len(jobs))
	for i := range jobs {
		var err error
		if shown[i], err = h.ShowJob(ctx, &jobs[i]); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	gone := map[uuid.UUID]bool{}
	for id, what := range taken {
		gone[id] = (what.status || what.progress) && h.followed[id] != nil
	}
	for i := range jobs {
		id := jobs[i].JobID
		gone[id] = false
		h.addJob(&jobs[i], shown[i], taken[id])
	}
	for id, is := range gone {
		if is {
			h.ring.add(client.EventReload, reloadData("the job is deleted"), &event{jobID: id})
		}
	}
	h.grow()
	return nil
}

// unblock queues jobs that waited for jobs that have now ended, because no notification names them: they may be ready
// now.
func (h *Hub) unblock(ctx context.Context, jobs []jobstore.Changed, taken map[uuid.UUID]changes) error {
	var ended []uuid.UUID
	for i := range jobs {
		if jobs[i].Status.Terminal() && taken[jobs[i].JobID].status {
			ended = append(ended, jobs[i].JobID)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	h.mu.Lock()
	followed := slices.Collect(maps.Keys(h.followed))
	h.mu.Unlock()
	unblocked, err := h.jobs.UnblockedJobs(ctx, ended, followed)
	if err != nil {
		return err
	}
	h.mark(unblocked, changes{status: true})
	return nil
}

// addJob adds the event of one job. If streams follow the job, it adds no event that repeats the last one.
func (h *Hub) addJob(job *jobstore.Changed, shown []byte, what changes) {
	if f := h.followed[job.JobID]; f != nil {
		now := edge.Digest(shown)
		if f.shown == now {
			return
		}
		f.shown = now
	}
	if what.status {
		h.ring.add(client.EventJob, shown, &event{jobID: job.JobID, job: job})
	}
	if data := progressData(job); what.progress && data != nil {
		h.ring.add(client.EventProgress, data, &event{jobID: job.JobID, job: job})
	}
}

// addLines adds an event with the new lines of a job's log.
func (h *Hub) addLines(ctx context.Context, id uuid.UUID) error {
	for more := true; more; {
		h.mu.Lock()
		job := h.followed[id]
		if job == nil {
			h.mu.Unlock()
			return nil
		}
		place := job.place
		h.mu.Unlock()
		lines, end, rest, err := h.logs.After(ctx, id, place, eventLogBytes)
		if err != nil || len(lines) == 0 {
			return err
		}
		data, err := h.ShowLines(ctx, id, lines)
		if err != nil {
			return err
		}
		more = rest
		h.mu.Lock()
		job.place = end
		h.ring.add(client.EventLog, data, &event{jobID: id})
		h.grow()
		h.mu.Unlock()
	}
	return nil
}
