package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/rig"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// The requests of the quiet owner, with a number that no other request has.
const (
	noopRequest     = `{"jobType":"NOOP","payload":{"n":%d}}`
	delayedRequest  = `{"jobType":"NOOP","payload":{"n":%d},"delayMs":500}`
	debounceRequest = `{"jobType":"NOOP","payload":{"n":%[1]d},"debounce":{"key":"k%[1]d","delayMs":500,"maxDelayMs":500}}`
	pullRequest     = `{"jobType":"QUIET","queue":"pull","payload":{"n":%d}}`

	later = 500 * time.Millisecond
)

var neighbourCases = []neighbour{
	{name: "queue", beside: "50,000 waiting jobs of 50 ms",
		noise: fill(50_000, SleepType, ""), probe: starts(noopRequest, 0)},
	{name: "types", beside: "200,000 waiting jobs of 10,000 types without a worker",
		noise: unservedTypes(jobevent.DefaultQueue),
		probe: starts(noopRequest, 0)},
	{name: "order", beside: "20,000 jobs of one ordering key", noise: fill(20_000, SleepType, `,"orderingKey":"o"`),
		probe: starts(noopRequest, 0)},
	{name: "pause", beside: "the pause of a type of which 100,000 wait", noise: paused, probe: starts(noopRequest, 0)},
	{name: "due", beside: "200,000 jobs due at one instant", noise: dueAtOnce, probe: starts(delayedRequest, later)},
	{name: "dependents", beside: "a job on which 50,000 depend", noise: dependents, probe: chains},
	{name: "debounce", beside: "20,000 debounced jobs due at one instant", noise: debounced,
		probe: starts(debounceRequest, later)},
	{name: "submits", beside: "4 connections that submit 500 jobs in each request", noise: submits,
		probe: starts(noopRequest, 0)},
	{name: "submits-limited", beside: "the same with RATE_LIMIT_JOBS=1000", env: []string{"RATE_LIMIT_JOBS=1000"},
		noise: submits, probe: starts(noopRequest, 0)},
	{name: "pull", beside: "1,500 slots of one type that hang, 20,000 jobs of it, 20,000 of one without a worker",
		noise: hangingPullers, probe: pulled},
	{name: "operations", beside: "20 operations over 50,000 jobs", noise: operations, probe: operation},
	{name: "schedules", beside: "1,000 schedules of one second", noise: schedules(1000), probe: ticks},
	{name: "schedules10k", beside: "10,000 schedules due at one instant", noise: schedulesDue, probe: ticks},
	{name: "batches", beside: "5,000 batches that end", noise: endingBatches, probe: batch},
	{name: "batch-ticks", beside: "5,000 batches that end", noise: endingBatches, probe: ticks},
	{name: "deliveries", beside: "2,000 ends for 200 hosts that hang", noise: hangingHosts, probe: delivered},
	{name: "streams", beside: "100 streams and 1,000 waiting requests", noise: watchers, probe: starts(noopRequest, 0)},
	{name: "reads", beside: "64 connections that search the job list", noise: searches, probe: starts(noopRequest, 0)},
}

func fill(jobs int, jobType, more string) func(context.Context, *neighbourhood) error {
	request := strings.TrimSuffix(request(jobType, jobevent.DefaultQueue), "}") + more + "}"
	return func(ctx context.Context, n *neighbourhood) error { return n.submit(ctx, request, jobs) }
}

// submit returns when the scheduler has the jobs.
func (n *neighbourhood) submit(ctx context.Context, request string, jobs int) error {
	return n.submitEach(ctx, func(int) string { return request }, jobs)
}

func (n *neighbourhood) submitEach(ctx context.Context, request func(int) string, jobs int) error {
	var mu sync.Mutex
	at := 0
	body := func(some int) []byte {
		mu.Lock()
		defer mu.Unlock()
		all := make([]string, some)
		for i := range all {
			all[i] = request(at)
			at++
		}
		return []byte(`{"jobs":[` + strings.Join(all, ",") + `]}`)
	}
	last, err := n.noisy.FillWith(ctx, body, min(jobs, n.BacklogMost), n.Settings.Clients, n.Settings.Batch)
	if err != nil {
		return err
	}
	for there := 0; there < len(last); {
		if there, err = n.server.Scheduled(ctx, last); err != nil {
			return err
		}
		if err := pass(ctx, lookAgain); err != nil {
			return err
		}
	}
	return nil
}

const lookAgain = 50 * time.Millisecond

func unservedTypes(queue string) func(context.Context, *neighbourhood) error {
	return func(ctx context.Context, n *neighbourhood) error {
		unserved := func(i int) string { return request(fmt.Sprintf("UNSERVED%d", i%10_000), queue) }
		err := n.submitEach(ctx, unserved, 200_000)
		return errors.Join(err, n.server.Settle(ctx), pass(ctx, 2*settling)) // it is what waits that is measured
	}
}

func paused(ctx context.Context, n *neighbourhood) error {
	if err := n.submit(ctx, request(SleepType, jobevent.DefaultQueue), 100_000); err != nil {
		return err
	}
	return n.admin.Do(ctx, http.MethodPut, "/api/controls/type/"+SleepType, `{"paused":true}`, nil)
}

func dueAtOnce(ctx context.Context, n *neighbourhood) error {
	at := time.Now().Add(50 * time.Second)
	one := strings.TrimSuffix(request(NoopType, jobevent.DefaultQueue), "}") +
		`,"runAt":"` + at.UTC().Format(time.RFC3339) + `"}`
	if err := n.submit(ctx, one, 200_000); err != nil {
		return err
	}
	return pass(ctx, time.Until(at))
}

func dependents(ctx context.Context, n *neighbourhood) error {
	first, err := n.noisy.Submit(ctx, []byte(`{"jobType":"NOOP","payload":{},"delayMs":20000}`))
	if err != nil {
		return err
	}
	at := time.Now().Add(20 * time.Second)
	one := strings.TrimSuffix(request(NoopType, jobevent.DefaultQueue), "}") + `,"after":["` + first + `"]}`
	if err := n.submit(ctx, one, 50_000); err != nil {
		return err
	}
	return pass(ctx, time.Until(at))
}

// chains measures how long two jobs take of which one depends on the other.
func chains(ctx context.Context, n *neighbourhood) ([]time.Duration, error) {
	return n.often(ctx, func(ctx context.Context, _ int) (time.Duration, error) {
		began := time.Now()
		id, err := n.quiet.Submit(ctx, []byte(n.noop))
		if err != nil {
			return 0, err
		}
		id, err = n.quiet.Submit(ctx, []byte(strings.TrimSuffix(n.noop, "}")+`,"after":["`+id+`"]}`))
		if err != nil {
			return 0, err
		}
		_, err = n.quiet.Completed(ctx, id)
		return time.Since(began), err
	})
}

func debounced(ctx context.Context, n *neighbourhood) error {
	at := time.Now().Add(15 * time.Second)
	err := n.submitHeld(ctx, func(i int) string {
		return fmt.Sprintf(`{"jobType":"NOOP","payload":{},"debounce":{"key":"k%d","delayMs":%d}}`, i,
			time.Until(at).Milliseconds())
	}, 20_000)
	if err != nil {
		return err
	}
	return pass(ctx, time.Until(at))
}

// submitHeld does not wait for the scheduler, which does not know these jobs yet.
func (n *neighbourhood) submitHeld(ctx context.Context, request func(int) string, jobs int) error {
	for from := 0; from < jobs; from += n.Settings.Batch {
		all := make([]string, n.Settings.Batch)
		for i := range all {
			all[i] = request(from + i)
		}
		if _, err := n.noisy.SubmitBatch(ctx, []byte(`{"jobs":[`+strings.Join(all, ",")+`]}`), len(all)); err != nil {
			return err
		}
	}
	return nil
}

func submits(ctx context.Context, n *neighbourhood) error {
	body := apiload.Batch(n.noop, n.Settings.Batch)
	n.goOn(n.Settings.Clients, func(ctx context.Context) error {
		_, err := n.noisy.SubmitBatch(ctx, body, n.Settings.Batch)
		if err != nil {
			_ = pass(ctx, lookAgain)
		}
		return err
	})
	return pass(ctx, settling)
}

func hangingPullers(ctx context.Context, n *neighbourhood) error {
	for i := range 15 {
		claim := fmt.Sprintf(`{"worker":"hangs-%d","types":["HANGS"],"slots":100,"wait":"20s"}`, i)
		n.goOn(1, func(ctx context.Context) error {
			return n.noisy.Do(ctx, http.MethodPost, "/api/workers/claim", claim, nil)
		})
	}
	if err := n.submit(ctx, request("HANGS", rig.PullQueue), 20_000); err != nil {
		return err
	}
	return n.submit(ctx, request("UNSERVED", rig.PullQueue), 20_000)
}

// pulled measures until a job reaches a pull worker of the quiet owner.
func pulled(ctx context.Context, n *neighbourhood) ([]time.Duration, error) {
	running, end := context.WithCancel(ctx)
	defer end()
	var starts apiload.Starts
	failed := make(chan error, 1)
	go func() {
		failed <- n.quiet.Pull(running, apiload.Puller{
			Name: "quiet", JobType: "QUIET", Slots: 10, Wait: idleWait, Starts: &starts,
		})
	}()
	seen, err := n.often(ctx, func(ctx context.Context, _ int) (time.Duration, error) {
		began := time.Now()
		id, err := n.quiet.Submit(ctx, fmt.Appendf(nil, pullRequest, began.UnixNano()))
		if err != nil {
			return 0, err
		}
		if _, err := n.quiet.Completed(ctx, id); err != nil {
			return 0, err
		}
		return starts.At(id).Sub(began), nil
	})
	end()
	if err == nil {
		err = <-failed
	}
	return seen, err
}

func operations(ctx context.Context, n *neighbourhood) error {
	one := strings.TrimSuffix(request(NoopType, jobevent.DefaultQueue), "}") + `,"delayMs":3600000}`
	if err := n.submit(ctx, one, 50_000); err != nil {
		return err
	}
	for i := range 20 {
		err := n.noisy.Do(ctx, http.MethodPost, "/api/operations", fmt.Sprintf(
			`{"command":"reschedule","delayMs":%d,"filter":{"status":["SCHEDULED"]}}`, 3_600_000+i), nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// operation measures an operation that cancels one job.
func operation(ctx context.Context, n *neighbourhood) ([]time.Duration, error) {
	return n.often(ctx, func(ctx context.Context, _ int) (time.Duration, error) {
		id, err := n.quiet.Submit(ctx, []byte(strings.TrimSuffix(n.noop, "}")+`,"delayMs":3600000}`))
		if err != nil {
			return 0, err
		}
		began := time.Now()
		var made struct{ OperationID string }
		err = n.quiet.Do(ctx, http.MethodPost, "/api/operations", `{"command":"cancel","jobIds":["`+id+`"]}`, &made)
		if err == nil {
			err = n.quiet.Do(ctx, http.MethodGet, "/api/operations/"+made.OperationID+"?wait=60s", "", nil)
		}
		return time.Since(began), err
	})
}

func schedules(number int) func(context.Context, *neighbourhood) error {
	return func(ctx context.Context, n *neighbourhood) error {
		return schedule(ctx, n.noisy, number, "* * * * * *")
	}
}

func schedule(ctx context.Context, api *apiload.API, number int, cron string) error {
	for i := range number {
		err := api.Do(ctx, http.MethodPost, "/api/schedules", fmt.Sprintf(
			`{"name":"s%d","cron":%q,"job":{"jobType":"NOOP","payload":{}}}`, i, cron), nil)
		if err != nil {
			return err
		}
	}
	return nil
}

func schedulesDue(ctx context.Context, n *neighbourhood) error {
	at := time.Now().Add(40 * time.Second).UTC()
	cron := fmt.Sprintf("%d %d %d * * *", at.Second(), at.Minute(), at.Hour())
	if err := schedule(ctx, n.noisy, 10_000, cron); err != nil {
		return err
	}
	return pass(ctx, time.Until(at))
}

// ticks measures how late the jobs of five schedules of each second start.
func ticks(ctx context.Context, n *neighbourhood) (late []time.Duration, err error) {
	from := time.Now()
	const number = 5
	if err := schedule(ctx, n.quiet, number, "* * * * * *"); err != nil {
		return nil, err
	}
	if err := pass(ctx, n.Window); err != nil {
		return nil, err
	}
	for i := range number {
		name := "/api/schedules/s" + strconv.Itoa(i)
		var page struct {
			Ticks []struct {
				At    time.Time
				JobID *string
			}
		}
		if err := n.quiet.Do(ctx, http.MethodGet, name+"/ticks?limit=50", "", &page); err != nil {
			return nil, err
		}
		for _, tick := range page.Ticks {
			if tick.JobID == nil || tick.At.Before(from) {
				continue
			}
			job, err := n.quiet.Completed(ctx, *tick.JobID)
			if err != nil {
				return nil, err
			}
			late = append(late, job.StartedAt.Sub(tick.At))
		}
		if err := n.quiet.Do(ctx, http.MethodDelete, name, "", nil); err != nil {
			return nil, err
		}
	}
	return late, nil
}

func endingBatches(ctx context.Context, n *neighbourhood) error {
	at := time.Now().Add(45 * time.Second)
	for range 5_000 {
		ms := max(time.Until(at).Milliseconds(), 0)
		job := `{"jobType":"NOOP","payload":{},"delayMs":` + strconv.FormatInt(ms, 10) + `}`
		if err := n.noisy.Do(ctx, http.MethodPost, "/api/batches", `{"closed":true,"jobs":[`+job+`]}`, nil); err != nil {
			return err
		}
	}
	return pass(ctx, time.Until(at))
}

// batch measures a batch of one job.
func batch(ctx context.Context, n *neighbourhood) ([]time.Duration, error) {
	return n.often(ctx, func(ctx context.Context, _ int) (time.Duration, error) {
		began := time.Now()
		var made struct{ BatchID string }
		err := n.quiet.Do(ctx, http.MethodPost, "/api/batches", `{"closed":true,"jobs":[`+n.noop+`]}`, &made)
		if err == nil {
			err = n.quiet.Do(ctx, http.MethodGet, "/api/batches/"+made.BatchID+"?wait=60s", "", nil)
		}
		return time.Since(began), err
	})
}

// hangingHosts lets the noisy owner's ends go to receivers that do not answer.
func hangingHosts(ctx context.Context, n *neighbourhood) error {
	for i := range 200 {
		hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-n.end.Done() }))
		n.going.Go(func() error { <-n.end.Done(); hangs.Close(); return nil })
		one := strings.TrimSuffix(n.noop, "}") + `,"callbackUrl":"` + hangs.URL + `/` + strconv.Itoa(i) + `"}`
		if err := n.submit(ctx, one, 10); err != nil {
			return err
		}
	}
	return pass(ctx, settling)
}

// delivered measures until the end of a job reaches its callbackUrl.
func delivered(ctx context.Context, n *neighbourhood) ([]time.Duration, error) {
	var came sync.Map
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if waits, some := came.LoadAndDelete(path.Base(r.URL.Path)); some {
			waits.(chan time.Time) <- time.Now()
		}
	}))
	defer receiver.Close()
	return n.often(ctx, func(ctx context.Context, i int) (time.Duration, error) {
		at := make(chan time.Time, 1)
		came.Store(strconv.Itoa(i), at)
		began := time.Now()
		to, _ := json.Marshal(receiver.URL + "/" + strconv.Itoa(i))
		_, err := n.quiet.Submit(ctx, []byte(strings.TrimSuffix(n.noop, "}")+`,"callbackUrl":`+string(to)+`}`))
		if err != nil {
			return 0, err
		}
		select {
		case arrived := <-at:
			return arrived.Sub(began), nil
		case <-time.After(time.Minute):
			return time.Minute, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
}

func watchers(ctx context.Context, n *neighbourhood) error {
	open, err := n.noisy.OpenStreams(n.end, 100)
	if err != nil {
		return err
	}
	n.going.Go(func() error { <-n.end.Done(); open.Close(); return nil })
	id, err := n.noisy.Submit(ctx, []byte(strings.TrimSuffix(n.noop, "}")+`,"delayMs":3600000}`))
	if err != nil {
		return err
	}
	n.goOn(900, func(ctx context.Context) error { _, err := n.noisy.Get(ctx, id, time.Minute); return err })
	return pass(ctx, time.Second)
}

func searches(ctx context.Context, n *neighbourhood) error {
	if err := n.submit(ctx, n.noop, 50_000); err != nil {
		return err
	}
	n.goOn(64, func(ctx context.Context) error {
		_, _, err := n.noisy.List(ctx, "limit=200&q=nothing-has-this")
		if err != nil {
			_ = pass(ctx, lookAgain)
		}
		return err
	})
	return pass(ctx, time.Second)
}
