package afterrestore_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/local/jobweaver/afterrestore"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

var wanted = flag.Bool("afterrestore.run", false, "run these tests, which back up and restore servers under load")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func wants(t *testing.T) {
	t.Helper()
	if !*wanted {
		t.Skip("make test-restore runs it")
	}
}

// The moments of the dumps: before the first job, in the middle, under load, and at the end.
const (
	nothing = iota
	middle
	load
	end
)

// past is the history of an installation.
type past struct {
	dumps [4][3]dump        // by moment: api, scheduler, worker
	jobs  map[string]string // id by the role of the job in the test
	plain []string          // ids of plain jobs
}

// TestDatabasesOfDifferentMomentsAreReconciled restores the three databases to different moments in the life of one
// installation, in which jobs ran, failed, waited, were retried, cancelled, rescheduled and deleted, and controls were
// set and removed.
func TestDatabasesOfDifferentMomentsAreReconciled(t *testing.T) {
	t.Parallel()
	wants(t)
	p := live(t)
	for _, c := range []struct {
		name                   string
		api, scheduler, worker int
	}{
		{"the API's is lost, the workers' is older", nothing, end, middle},
		{"the scheduler's and the workers' are older", end, middle, middle},
		{"the scheduler's is lost", end, nothing, load},
		{"all differ", load, middle, end},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p.goesOn(t, p.dumps[c.api][0], p.dumps[c.scheduler][1], p.dumps[c.worker][2])
		})
	}
}

// live runs the installation and takes its dumps.
func live(t *testing.T) *past {
	t.Helper()
	p, h := &past{jobs: map[string]string{}}, newFixture(t)
	h.live(func(ctx context.Context, c *client.Client) (err error) {
		if p.dumps[nothing], err = h.dumps(ctx); err != nil {
			return err
		}
		if err := p.begin(ctx, c); err != nil {
			return err
		}
		if err := p.oneIsOld(ctx, h); err != nil {
			return err
		}
		if p.dumps[middle], err = h.dumps(ctx); err != nil {
			return err
		}
		close(h.open)
		if err := p.goOn(ctx, c); err != nil {
			return err
		}
		if err := p.submitMany(ctx, c, 400); err != nil {
			return err
		}
		if p.dumps[load], err = h.dumps(ctx); err != nil {
			return err
		}
		if err := p.submitMany(ctx, c, 50); err != nil {
			return err
		}
		for _, id := range p.plain {
			if err := until(ctx, c, id, "COMPLETED", has("COMPLETED")); err != nil {
				return err
			}
		}
		p.dumps[end], err = h.dumps(ctx)
		return err
	})
	return p
}

func (p *past) submit(ctx context.Context, c *client.Client, what, rest string) error {
	accepted, err := c.SubmitJSON(ctx, []byte(`{"jobType": "WORK", `+rest+`}`))
	p.jobs[what] = accepted.JobID
	if err != nil {
		return fmt.Errorf("submit %s: %w", what, err)
	}
	return nil
}

func (p *past) submitMany(ctx context.Context, c *client.Client, n int) error {
	var answer struct {
		Results []struct{ JobID string }
	}
	job := `{"jobType": "WORK", "payload": {}}`
	body := `{"jobs": [` + strings.Repeat(job+",", n-1) + job + `]}`
	_, err := c.Do(ctx, http.MethodPost, "/api/jobs/batch", "application/json", []byte(body), &answer)
	for _, r := range answer.Results {
		p.plain = append(p.plain, r.JobID)
	}
	return err
}

// begin makes jobs in every state.
func (p *past) begin(ctx context.Context, c *client.Client) error {
	if err := p.submitMany(ctx, c, 20); err != nil {
		return err
	}
	hold := `"payload": {"hold": true}`
	for what, rest := range map[string]string{
		"held": hold, "held and deleted later": hold,
		"failed": `"payload": {"fail": true}, "maxRetryCount": 0`, "failed for good": `"payload": {"fail": true}, "maxRetryCount": 0`,
		"retrying": `"payload": {"fail": true}, "maxRetryCount": 1, "retryPolicy": {"type": "fixed", "delayMs": 18000000}`,
		"later":    `"payload": {}, "delayMs": 18000000`, "later, cancelled": `"payload": {}, "delayMs": 18000000`,
		"later, then now": `"payload": {}, "delayMs": 18000000`, "later, changed": `"payload": {"v": 1}, "delayMs": 18000000`,
		"completed": `"payload": {}`,
		"deleted":   `"payload": {}`, "in order 1": hold + `, "orderingKey": "k"`,
	} {
		if err := p.submit(ctx, c, what, rest); err != nil {
			return err
		}
	}
	if err := p.submit(ctx, c, "in order 2", `"payload": {}, "orderingKey": "k"`); err != nil {
		return err
	}
	if err := p.submit(ctx, c, "after", `"payload": {}, "after": ["`+p.jobs["held"]+`"]`); err != nil {
		return err
	}
	for what, status := range map[string]string{
		"held": "RUNNING", "held and deleted later": "RUNNING", "in order 1": "RUNNING", "failed": "FAILED",
		"failed for good": "FAILED", "retrying": "RETRYING", "later": "SCHEDULED", "later, changed": "SCHEDULED", "completed": "COMPLETED", "deleted": "COMPLETED",
	} {
		if err := until(ctx, c, p.jobs[what], what+": "+status, has(status)); err != nil {
			return err
		}
	}
	if _, err := c.Do(ctx, http.MethodPut, "/api/queues/early", "", nil, nil); err != nil {
		return err
	}
	return control(ctx, c, http.MethodPut, "type/OTHER", `{"maxRunning": 5}`)
}

// oneIsOld makes a job look as if it was accepted long ago: if the API has later jobs and not this one, it must have
// deleted it.
func (p *past) oneIsOld(ctx context.Context, h *fixture) error {
	for _, url := range []string{h.urls.API, h.urls.Scheduler} {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "update jobs set created_at = created_at - interval '1 hour' where job_id = $1",
			p.jobs["held and deleted later"])
		if err = errors.Join(err, conn.Close(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// goOn has the events after the first dump.
func (p *past) goOn(ctx context.Context, c *client.Client) error {
	for what, command := range map[string]string{"failed": "retry", "later, cancelled": "cancel"} {
		if _, err := c.Command(ctx, p.jobs[what], command); err != nil {
			return err
		}
	}
	_, err := c.Do(ctx, http.MethodPost, "/api/jobs/"+p.jobs["later, then now"]+"/reschedule", "application/json",
		[]byte(`{"runAt": "2020-01-01T00:00:00Z"}`), nil)
	if err != nil {
		return err
	}
	changed, err := c.Get(ctx, p.jobs["later, changed"], 0)
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, http.MethodPatch, "/api/jobs/"+p.jobs["later, changed"], "application/merge-patch+json",
		[]byte(`{"priority": 7, "queue": "default", "payload": {"v": 2}, "maxRetryCount": 9}`), nil)
	if err != nil {
		return err
	}
	for what, is := range map[string]func(*client.Job) bool{
		"failed":           func(j *client.Job) bool { return j.Status == "FAILED" && j.Attempt == 2 },
		"later, changed":   func(j *client.Job) bool { return j.Version > changed.Version },
		"later, cancelled": has("CANCELLED"), "later, then now": has("COMPLETED"), "held": has("COMPLETED"),
		"held and deleted later": has("COMPLETED"), "after": has("COMPLETED"), "in order 2": has("COMPLETED"),
	} {
		if err := until(ctx, c, p.jobs[what], what, is); err != nil {
			return err
		}
	}
	for _, what := range []string{"deleted", "held and deleted later"} {
		if _, err := c.Do(ctx, http.MethodDelete, "/api/jobs/"+p.jobs[what], "", nil, nil); err != nil {
			return err
		}
	}
	if err := control(ctx, c, http.MethodDelete, "type/OTHER", ""); err != nil {
		return err
	}
	if _, err := c.Do(ctx, http.MethodPut, "/api/queues/late", "", nil, nil); err != nil {
		return err
	}
	return control(ctx, c, http.MethodPut, "type/MORE", `{"maxRunning": 7}`)
}

func control(ctx context.Context, c *client.Client, method, path, body string) error {
	_, err := c.Do(ctx, method, "/api/controls/"+path, "application/json", []byte(body), nil)
	return err
}

// goesOn restores three dumps, reconciles them, and lets the installation continue.
func (p *past) goesOn(t *testing.T, api, scheduler, worker dump) {
	t.Helper()
	h := newFixture(t)
	close(h.open)
	for url, d := range map[string]dump{h.urls.API: api, h.urls.Scheduler: scheduler, h.urls.Worker: worker} {
		if err := d.restore(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	before := h.look()
	report := h.afterRestore()
	if t.Logf("%+v", report); report.Cancelled != p.cancelled(before) {
		t.Errorf("%d jobs that the API had deleted are cancelled", report.Cancelled)
	}
	if again := h.afterRestore(); again != (afterrestore.Report{Jobs: again.Jobs}) {
		t.Errorf("a second time it still finds something: %+v", again)
	}
	h.live(func(ctx context.Context, c *client.Client) error {
		for id := range before {
			if id == p.jobs["later"] || id == p.jobs["later, changed"] || id == p.jobs["retrying"] {
				continue
			}
			if err := until(ctx, c, id, "at its end", (*client.Job).Terminal); err != nil {
				return fmt.Errorf("%s: %w", p.named(id), err)
			}
		}
		if err := p.commands(ctx, c, before); err != nil {
			return err
		}
		return h.controlsAgree(ctx)
	})
	p.check(h, before, h.look())
	for _, url := range []string{h.urls.API, h.urls.Scheduler} {
		is := h.ask(url, `select concat_ws(' ', spec ->> 'priority', spec ->> 'maxRetryCount', payload ->> 'v', queue) from jobs
			where job_id = '`+p.jobs["later, changed"]+`'`)
		if want := "7 9 2 default"; is != want {
			t.Errorf("the job that was changed while it waited has %s, not %s", is, want)
		}
	}
}

// cancelled returns how many jobs the API has deleted that had not ended for the scheduler: at most one.
func (p *past) cancelled(before map[string]seen) int64 {
	if was := before[p.jobs["held and deleted later"]]; was.api == "" && was.scheduler == "RUNNING" {
		return 1
	}
	return 0
}

func (h *fixture) afterRestore() afterrestore.Report {
	h.t.Helper()
	api, err := apidb.Open(h.t.Context(), h.urls.API)
	if err != nil {
		h.t.Fatal(err)
	}
	defer api.Close()
	scheduler, err := schedulerdb.Open(h.t.Context(), h.urls.Scheduler, schedulerdb.Config{Lease: time.Second})
	if err != nil {
		h.t.Fatal(err)
	}
	defer scheduler.Close()
	report, err := afterrestore.Run(h.t.Context(), api, scheduler)
	if err != nil {
		h.t.Fatal(err)
	}
	return report
}

// commands checks that a new command to a failed job is carried out, and not taken for an earlier one with the same
// number.
func (p *past) commands(ctx context.Context, c *client.Client, before map[string]seen) error {
	for _, what := range []string{"failed", "failed for good"} {
		job, err := c.Get(ctx, p.jobs[what], 0)
		if err != nil || job.Status != "FAILED" {
			return fmt.Errorf("%s is %s before its retry: %w", what, job.Status, err)
		}
		if _, err := c.Command(ctx, p.jobs[what], "retry"); err != nil {
			return err
		}
		err = until(ctx, c, p.jobs[what], "tried again", func(j *client.Job) bool {
			return j.Status == "FAILED" && j.Attempt == job.Attempt+1
		})
		if err != nil {
			return err
		}
	}
	if _, there := before[p.jobs["later"]]; !there {
		return nil
	}
	if _, err := c.Command(ctx, p.jobs["later"], "cancel"); err != nil {
		return err
	}
	return until(ctx, c, p.jobs["later"], "cancelled", has("CANCELLED"))
}

// controlsAgree waits until the scheduler has applied the controls of the API.
func (h *fixture) controlsAgree(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	const all = `select coalesce(string_agg(kind || name || coalesce(max_running::text, workers), ' ' order by name), '')
		from controls where max_running is not null or workers is not null`
	const created = `select coalesce(string_agg(name, ' ' order by name), '') from `
	for {
		ours, theirs := h.ask(h.urls.API, all), h.ask(h.urls.Scheduler, all)
		if ours == theirs {
			queues, served := h.ask(h.urls.API, created+"queues"), h.ask(h.urls.API, created+"controls where workers is not null")
			if queues != served {
				return fmt.Errorf("the created queues are %q, and %q are served", queues, served)
			}
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the API has controls %q, the scheduler %q", ours, theirs)
		}
		retry.Pause(ctx, 50*time.Millisecond)
	}
}

func (h *fixture) ask(url, sql string) (answer string) {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), url)
	if err == nil {
		err = conn.QueryRow(h.t.Context(), sql).Scan(&answer)
		_ = conn.Close(h.t.Context())
	}
	if err != nil {
		h.t.Error(err)
	}
	return answer
}

// seen is the state of a job in the databases.
type seen struct {
	api, scheduler               string // state; empty: it is missing or deleted
	apiVersion, schedulerVersion int64
	attempts                     map[int]bool // those that workers know
}

func (h *fixture) look() map[string]seen {
	h.t.Helper()
	all := map[string]seen{}
	each := func(url, sql string, take func(s *seen, text string, n int64)) {
		conn, err := pgx.Connect(h.t.Context(), url)
		if err != nil {
			h.t.Fatal(err)
		}
		defer func() { _ = conn.Close(h.t.Context()) }()
		rows, _ := conn.Query(h.t.Context(), sql)
		var id uuid.UUID
		var text string
		var n int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &text, &n}, func() error {
			s := all[id.String()]
			take(&s, text, n)
			all[id.String()] = s
			return nil
		}); err != nil {
			h.t.Fatal(err)
		}
	}
	each(h.urls.API, "select job_id, status, version from jobs",
		func(s *seen, text string, n int64) { s.api, s.apiVersion = text, n })
	each(h.urls.Scheduler, `select job_id, status, version from all_jobs where deleted_at is null
			union all select job_id, status, version from members`,
		func(s *seen, text string, n int64) { s.scheduler, s.schedulerVersion = text, n })
	gone := map[string]bool{}
	each(h.urls.Scheduler, "select job_id, job_id::text, 0 from all_jobs where deleted_at is not null",
		func(_ *seen, text string, _ int64) { gone[text] = true })
	each(h.urls.Worker, "select job_id, '', attempt from attempts", func(s *seen, _ string, n int64) {
		if s.attempts == nil {
			s.attempts = map[int]bool{}
		}
		s.attempts[int(n)] = true
	})
	for id, s := range all {
		if gone[id] || s.api == "" && s.scheduler == "" { // a job that only workers know no longer exists
			delete(all, id)
		}
	}
	return all
}

func (p *past) named(id string) string {
	for what, is := range p.jobs {
		if is == id {
			return what
		}
	}
	return "a plain job"
}

// check checks that no ended job started again, that no attempt known to workers started again, and that the two
// databases agree.
func (p *past) check(h *fixture, before, after map[string]seen) {
	h.t.Helper()
	for id, was := range before {
		is, there := after[id]
		switch {
		case !there:
			h.t.Errorf("%s is gone: it was %+v", p.named(id), was)
			continue
		case is.api != is.scheduler || is.apiVersion != is.schedulerVersion:
			h.t.Errorf("of %s the databases say %+v", p.named(id), is)
		}
		newest := was.api
		if was.schedulerVersion > was.apiVersion || newest == "" {
			newest = was.scheduler
		}
		ended := newest == "COMPLETED" || newest == "CANCELLED"
		if ended && is.api != newest {
			h.t.Errorf("%s was %s, and is %s: %+v", p.named(id), newest, is.api, was)
		}
		for attempt := range 5 {
			n := h.starts[fmt.Sprintf("%s.%d", id, attempt)]
			if n > 1 || n > 0 && (ended || was.attempts[attempt]) {
				h.t.Errorf("%s started attempt %d %d times: it was %+v", p.named(id), attempt, n, was)
			}
		}
	}
	for id := range after {
		if _, there := before[id]; !there {
			h.t.Errorf("%s came from nowhere", p.named(id))
		}
	}
}
