package interplay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// endWithin is how long everything may take to end once nothing holds it back. It only has to be longer than the
// slowest machine needs: a lost attempt takes 15 s, an unconfirmed event comes again after 10, 20, 40 s.
var endWithin = 4 * time.Minute

// lift takes away what the program has set, so that everything can end.
func (x *run) lift(ctx context.Context) {
	last := 1_000_000 // the number of a step that no program has
	for name := range x.schedule {
		x.step(ctx, Step{N: last, Do: "schedule-pause", Name: name})
		x.ticks(ctx, name)
		x.step(ctx, Step{N: last, Do: "schedule-delete", Name: name})
	}
	x.liftAlerts(ctx)
	for of := range x.subjects {
		kind, name, _ := strings.Cut(of, ":")
		x.blocked(ctx, of)
		x.mu.Lock()
		if w := x.open[of]; w != nil {
			w.To = time.Now()
		}
		x.mu.Unlock()
		x.ask(ctx, last, http.MethodDelete, "/api/controls/"+kind+"/"+escape(name), nil, Asked{Admin: true})
	}
	for name := range x.batches {
		x.step(ctx, Step{N: last, Do: "batch-close", Of: name})
	}
	x.rec.Lifted = time.Now()
}

func (x *run) ticks(ctx context.Context, name string) {
	var page struct {
		Ticks []struct {
			Tick

			Reason, JobID *string
		}
	}
	err := x.patiently(ctx, func() error {
		_, err := x.API.Do(ctx, http.MethodGet, "/api/schedules/"+x.key(name)+"/ticks?limit=200", "", nil, &page)
		return err
	})
	if err != nil {
		if !errors.Is(err, client.ErrNotFound) {
			x.trouble("list ticks: %v", err)
		}
		return
	}
	if x.rec.Ticks == nil {
		x.rec.Ticks = map[string][]Tick{}
	}
	for _, t := range page.Ticks {
		if t.Reason != nil {
			t.Tick.Reason = *t.Reason
		}
		if t.JobID != nil {
			t.Tick.JobID = *t.JobID
		}
		x.rec.Ticks[x.key(name)] = append(x.rec.Ticks[x.key(name)], t.Tick)
	}
}

// blocked writes down what jobs show that a pause holds back.
func (x *run) blocked(ctx context.Context, of string) {
	x.mu.Lock()
	w := x.open[of]
	i := slices.Index(x.rec.Windows, w)
	x.mu.Unlock()
	if w == nil || !w.Limit.Paused || !w.Applied {
		return
	}
	page, err := x.API.ListPage(ctx, client.Filter{Status: []string{client.Pending}}, 5, "")
	if err != nil {
		return
	}
	for _, j := range page.Jobs {
		if !concerns(w, &j) {
			continue
		}
		job, err := x.API.Get(ctx, j.JobID, 0)
		if err == nil {
			x.mu.Lock()
			x.rec.Blocked = append(x.rec.Blocked, Blocked{i, job.JobID, job.Status, job.BlockedBy})
			x.mu.Unlock()
		}
	}
}

// concerns reports whether a control is about a job.
func concerns(w *Window, j *client.Job) bool {
	if w.Name == "*" { // the program has no others
		return w.Kind != "fairnessKey" || j.FairnessKey != ""
	}
	switch w.Kind {
	case "owner":
		return j.OwnerID == w.Name
	case "type":
		return j.JobType == w.Name
	case "queue":
		return j.Queue == w.Name
	}
	return j.FairnessKey == w.Name
}

// alike reports whether a control counts two jobs that it is about together: one named * counts each key by itself.
func alike(w *Window, a, b *client.Job) bool {
	switch {
	case w.Name != "*":
		return true
	case w.Kind == "queue":
		return a.Queue == b.Queue
	case w.Kind == "type":
		return a.JobType == b.JobType
	}
	return a.FairnessKey == b.FairnessKey
}

// unfinished is what a list is asked for.
var unfinished = []string{client.Scheduled, client.Pending, client.Queued, client.Running, client.Waiting, client.Retrying}

// settle waits until everything has ended.
func (x *run) settle(ctx context.Context) {
	began := time.Now()
	calm := 0
	for calm < 2 && time.Since(began) < endWithin && ctx.Err() == nil {
		if !retry.Pause(ctx, 250*time.Millisecond) {
			return
		}
		if x.busy(ctx) {
			calm = 0
		} else {
			calm++ // a batch that has ended makes one more job
		}
	}
	if calm < 2 {
		x.rec.Open = x.stuck(ctx)
	}
}

func (x *run) stuck(ctx context.Context) (open []*client.Job) {
	for j, err := range x.API.List(ctx, client.Filter{Status: unfinished}) {
		if err != nil {
			return open
		}
		if job, err := x.API.Get(ctx, j.JobID, 0); err == nil {
			open = append(open, job)
		}
	}
	return open
}

// busy reports whether something has not ended, is on its way, or is not known.
func (x *run) busy(ctx context.Context) bool {
	page, err := x.API.ListPage(ctx, client.Filter{Status: unfinished}, 1, "")
	if err != nil || len(page.Jobs) > 0 {
		return true
	}
	for _, id := range x.strangers() {
		if job, err := x.clientOf(id).Get(ctx, id, 0); err == nil && !job.Terminal() || err != nil && !errors.Is(err, client.ErrNotFound) {
			return true
		}
	}
	for _, id := range x.batches {
		b, err := x.API.Batches.Get(ctx, id, 0)
		if err != nil && !errors.Is(err, client.ErrNotFound) || err == nil && !ended(b.Status) {
			return true
		}
	}
	for _, id := range x.flows {
		f, err := x.API.Flows.Get(ctx, id, 0)
		if err != nil && !errors.Is(err, client.ErrNotFound) || err == nil && !ended(f.Status) {
			return true
		}
	}
	for _, id := range x.bulks {
		var o client.Operation
		_, err := x.API.Do(ctx, http.MethodGet, "/api/operations/"+id, "", nil, &o)
		if err != nil || o.Status == "RUNNING" || o.Status == "ABORTING" {
			return true
		}
	}
	return x.lags(ctx)
}

func ended(status string) bool { return terminal(status) || status == client.BatchExpired }

// strangers returns the jobs that do not belong to the owner: those of hooks, and of events of other types.
func (x *run) strangers() (ids []string) {
	x.adopt()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.rec.Specs {
		if s.ID != "" && s.Foreign {
			ids = append(ids, s.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids) // a repeated request has got the job of the first
}

// collect reads everything that the API shows about the program.
func (x *run) collect(ctx context.Context) {
	r := x.rec
	r.Jobs, r.Listed, r.Unchanged = map[string]*client.Job{}, map[string]*client.Job{}, map[string]int{}
	r.Batches, r.Flows, r.Operations = map[string]*client.Batch{}, map[string]*client.Flow{}, map[string]*client.Operation{}
	r.Deliveries, r.Counts, r.Filters = map[string][]Delivery{}, map[string]int{}, map[string][]string{}
	r.Reports = map[string]*Report{}
	x.waitForDeliveries(ctx)
	x.read("list jobs", x.patiently(ctx, func() error {
		for j, err := range x.API.List(ctx, client.Filter{}) {
			if err != nil {
				return err
			}
			r.Listed[j.JobID] = j
		}
		return nil
	}))
	ids := x.strangers()
	for id := range r.Listed {
		ids = append(ids, id)
	}
	for _, id := range ids {
		x.read("get job", x.patiently(ctx, func() error { return x.collectJob(ctx, id) }))
	}
	for name, id := range x.batches {
		x.read("get batch", x.patiently(ctx, func() (err error) { r.Batches[name], err = x.API.Batches.Get(ctx, id, 0); return err }))
	}
	for name, id := range x.flows {
		x.read("get flow", x.patiently(ctx, func() (err error) { r.Flows[name], err = x.API.Flows.Get(ctx, id, 0); return err }))
	}
	for name, id := range x.bulks {
		r.Operations[name] = new(client.Operation)
		x.read("get operation", x.patiently(ctx, func() error {
			_, err := x.API.Do(ctx, http.MethodGet, "/api/operations/"+id, "", nil, r.Operations[name])
			return err
		}))
	}
	r.Gone = map[string]*client.Job{}
	for id, j := range x.shown {
		if r.Jobs[id] == nil {
			r.Gone[id] = j
		}
	}
	x.lists(ctx)
	x.filters(ctx)
	x.counts(ctx)
	r.Faults = x.Since(r.Began)
	x.log.mu.Lock()
	defer x.log.mu.Unlock()
	r.Events = x.log.events
	r.Runs, r.Backs, r.Arrivals, r.Steps = x.log.runs, x.log.backs, x.log.arrivals, x.log.steps
	r.Mails, r.Notices = x.log.mails, x.log.notices
}

func (x *run) read(what string, err error) {
	if err != nil {
		x.trouble("%s: %v", what, err)
	}
}

func (x *run) collectJob(ctx context.Context, id string) error {
	as := x.clientOf(id)
	job, err := as.Get(ctx, id, 0)
	if errors.Is(err, client.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	job.Raw = nil
	x.rec.Jobs[id] = job
	x.collectReport(job)
	if x.rec.Unchanged[id], err = x.conditional(ctx, id); err != nil {
		return err
	}
	if job.CallbackURL != "" {
		var page struct{ Deliveries []Delivery }
		if _, err := as.Do(ctx, http.MethodGet, "/api/jobs/"+id+"/deliveries", "", nil, &page); err != nil {
			return err
		}
		x.rec.Deliveries[id] = page.Deliveries
	}
	return nil
}

// conditional reads a job twice, the second time only if it has changed.
func (x *run) conditional(ctx context.Context, id string) (status int, err error) {
	etag := ""
	for range 2 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, x.URL+"/api/jobs/"+id, nil)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Authorization", "Bearer "+x.admin)
		if owner := x.rec.Jobs[id].OwnerID; owner != "" {
			req.Header.Set("X-Owner-Id", owner)
		}
		if etag != "" {
			req.Header.Set("If-None-Match", etag)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		_ = res.Body.Close()
		etag, status = res.Header.Get("ETag"), res.StatusCode
	}
	return status, nil
}

// waitForDeliveries waits until no delivery is under way. One that was refused is tried again after 5 s; one whose first
// try was lost with its process, too, and then only after 5 min: that one is asked for.
func (x *run) waitForDeliveries(ctx context.Context) {
	type delivery struct {
		JobID   string
		Version int64
		Tries   int
		NextAt  *time.Time
	}
	for began := time.Now(); time.Since(began) < endWithin && ctx.Err() == nil; retry.Pause(ctx, 300*time.Millisecond) {
		var page, unowned struct{ Deliveries []delivery }
		_, err := x.API.Do(ctx, http.MethodGet, "/api/deliveries?limit=200&status=PENDING", "", nil, &page)
		_, other := x.Installation.API.Do(ctx, http.MethodGet, "/api/deliveries?limit=200&status=PENDING", "", nil, &unowned)
		strangers, busy := x.strangers(), errors.Join(err, other) != nil
		for _, d := range unowned.Deliveries {
			if slices.Contains(strangers, d.JobID) {
				page.Deliveries = append(page.Deliveries, d)
			}
		}
		for _, d := range page.Deliveries {
			busy = true
			if d.Tries > 1 && d.NextAt != nil && time.Until(*d.NextAt) > 2*time.Minute {
				path := fmt.Sprintf("/api/jobs/%s/deliveries/%d/retry", d.JobID, d.Version)
				_, _ = x.clientOf(d.JobID).Do(ctx, http.MethodPost, path, "", nil, nil) // looked at again in the next round
			}
		}
		if !busy {
			return
		}
	}
}

// filters asks for some of the lists that the rules can work out.
func (x *run) filters(ctx context.Context) {
	queries := []url.Values{
		{}, {"status": {client.Completed}}, {"status": {client.Failed, client.Cancelled}}, {"tag": {"red"}}, {"type": {x.own("type")}},
		{"orderingKey": {x.key("o0")}}, {"queue": {"default"}}, {"noErrorCode": {"true"}}, {"errorCode": {"TEST.FAILED"}},
		{"payload": {"steps[1].type:SLEEP"}},
	}
	for _, id := range x.batches {
		queries = append(queries, url.Values{"batchId": {id}})
	}
	for _, q := range queries {
		text := q.Encode()
		x.read("list jobs", x.patiently(ctx, func() error {
			var found []string
			for cursor := ""; ; {
				var page struct {
					Jobs       []struct{ JobID string }
					NextCursor *string
				}
				path := "/api/jobs?limit=200&" + text
				if cursor != "" {
					path += "&cursor=" + url.QueryEscape(cursor)
				}
				if _, err := x.API.Do(ctx, http.MethodGet, path, "", nil, &page); err != nil {
					return err
				}
				for _, j := range page.Jobs {
					found = append(found, j.JobID)
				}
				if page.NextCursor == nil || *page.NextCursor == "" {
					x.rec.Filters[text] = found
					return nil
				}
				cursor = *page.NextCursor
			}
		}))
	}
}

// counts reads the statistics and the groups of dead jobs, which are of the owner's jobs.
func (x *run) counts(ctx context.Context) {
	for range 20 { // they are at most a second old
		retry.Pause(ctx, 500*time.Millisecond)
		var stats struct{ Jobs map[string]int }
		x.read("read statistics", x.patiently(ctx, func() error {
			_, err := x.API.Do(ctx, http.MethodGet, "/api/stats", "", nil, &stats)
			return err
		}))
		x.rec.Counts = stats.Jobs
		var dead struct {
			Groups []struct {
				JobType, ErrorCode string
				Jobs               int
			}
		}
		x.read("read the groups of dead jobs", x.patiently(ctx, func() error {
			_, err := x.API.Do(ctx, http.MethodGet, "/api/jobs/dead/groups?limit=200", "", nil, &dead)
			return err
		}))
		x.rec.Dead = map[string]int{}
		for _, group := range dead.Groups {
			x.rec.Dead[group.JobType+" "+group.ErrorCode] = group.Jobs
		}
		if countsAgree(x.rec) && deadAgree(x.rec) {
			return
		}
	}
}

// deadAgree reports whether the groups of dead jobs show what the list shows.
func deadAgree(r *Record) bool {
	shown := map[string]int{}
	for _, j := range r.Listed {
		if j.Status == client.Failed {
			code := ""
			if j.LastError != nil {
				code = j.LastError.ErrorCode
			}
			shown[j.JobType+" "+code]++
		}
	}
	return maps.Equal(r.Dead, shown)
}

// countsAgree reports whether the statistics show what the list shows.
func countsAgree(r *Record) bool {
	shown := map[string]int{}
	for _, j := range r.Listed {
		shown[j.Status]++
	}
	for status, n := range r.Counts {
		if n != shown[status] {
			return false
		}
	}
	return true
}

// clear removes what the program has made, as everything that has ended can be removed.
func (x *run) clear(ctx context.Context) {
	for name := range x.queues {
		x.ask(ctx, 1_000_001, http.MethodDelete, "/api/queues/"+x.own(name)+"?drain=true", nil, Asked{Admin: true})
	}
	if len(x.rec.Open) > 0 {
		return
	}
	for began := time.Now(); time.Since(began) < endWithin && ctx.Err() == nil; retry.Pause(ctx, time.Second) {
		left := x.remaining(ctx)
		if x.rec.Remaining = left; len(left) == 0 {
			return
		}
		if strings.HasPrefix(left[0], notKnown) {
			continue
		}
		for _, as := range []*client.Client{x.API, x.hooked, x.Installation.API} { // each finds what its owner has
			body, _ := json.Marshal(map[string]any{"command": "delete", "jobIds": left}) //nolint:errchkjson // plain
			var o client.Operation
			_, err := as.Do(ctx, http.MethodPost, "/api/operations", "application/json", body, &o)
			x.read("delete what is left", refusal(err))
			if err == nil {
				_, _ = as.Do(ctx, http.MethodGet, fmt.Sprintf("/api/operations/%s?wait=20s", o.OperationID), "", nil, &o)
			}
		}
	}
}

const notKnown = "not known: "

// refusal returns err if a request was refused, and nil if it was only not answered.
func refusal(err error) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status < 500 {
		return err
	}
	return nil
}

func (x *run) remaining(ctx context.Context) (left []string) {
	for j, err := range x.API.List(ctx, client.Filter{}) {
		if err != nil {
			return []string{notKnown + err.Error()}
		}
		left = append(left, j.JobID)
	}
	for _, id := range x.strangers() {
		if _, err := x.clientOf(id).Get(ctx, id, 0); !errors.Is(err, client.ErrNotFound) {
			left = append(left, id)
		}
	}
	return left
}
