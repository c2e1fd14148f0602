package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// answers counts the responses to equal submits.
type answers struct {
	mu                        sync.Mutex
	ids                       map[uuid.UUID]int
	fresh, replayed, conflict int
	unsure                    int // answered with 503, and so submitted again
}

// insist submits until the store is available: on a busy machine it may be away for a while.
func (a *answers) insist(submit func() *response) *response {
	for {
		r := submit()
		if r.status != http.StatusServiceUnavailable {
			return r
		}
		a.mu.Lock()
		a.unsure++
		a.mu.Unlock()
	}
}

// onceNew reports whether exactly one response called the job new, or none did and that response may have been lost.
func (a *answers) onceNew() bool { return a.fresh == 1 || a.fresh == 0 && a.unsure > 0 }

func (a *answers) add(status int, id uuid.UUID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ids == nil {
		a.ids = map[uuid.UUID]int{}
	}
	a.ids[id]++
	switch status {
	case http.StatusAccepted:
		a.fresh++
	case http.StatusOK:
		a.replayed++
	default:
		a.conflict++
	}
}

// post submits one job by REST.
func (a *answers) post(h *fixture, body string) {
	r := a.insist(func() *response { return h.post("/api/jobs", body) })
	if (r.status == http.StatusOK) != (r.header.Get("Idempotent-Replayed") == "true") {
		h.t.Errorf("answered %d with Idempotent-Replayed %q", r.status, r.header.Get("Idempotent-Replayed"))
	}
	if r.status == http.StatusConflict {
		a.add(r.status, *r.error().JobID)
		return
	}
	a.add(r.status, r.jobID())
}

func (a *answers) postBatch(h *fixture, bodies ...string) {
	var body struct {
		Results []struct {
			Status int
			JobID  uuid.UUID
			Error  errorBody
		}
	}
	a.insist(func() *response {
		return h.post("/api/jobs/batch", `{"jobs": [`+strings.Join(bodies, ",")+`]}`)
	}).want(http.StatusOK).into(&body)
	for _, result := range body.Results {
		if result.Status == http.StatusConflict {
			result.JobID = *result.Error.JobID
		}
		a.add(result.Status, result.JobID)
	}
}

// event submits a job by an event, whose response does not show whether it is new.
func (a *answers) event(h *fixture, id, body string) {
	r := a.insist(func() *response { return h.binary("/events", id, body) }).want(http.StatusAccepted)
	a.add(http.StatusOK, r.jobID())
}

func (a *answers) eventBatch(h *fixture, id, body string) {
	var answer struct{ Jobs []struct{ JobID uuid.UUID } }
	a.insist(func() *response {
		return h.post("/events", "["+envelope(id, submitType, body)+"]", "Content-Type", batchType)
	}).want(http.StatusAccepted).into(&answer)
	a.add(http.StatusOK, answer.Jobs[0].JobID)
}

func atOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

func TestHundredEqualSubmitsAreOneJob(t *testing.T) {
	t.Parallel()
	for name, wishes := range map[string]string{
		"plain":       `"idempotencyKey": "k"`,
		"in an order": `"idempotencyKey": "k", "orderingKey": "o"`,
		"to expire":   `"idempotencyKey": "k", "expiresAt": "2030-01-01T00:00:00Z"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			body := with(wishes)
			var rest answers
			atOnce(100, func(i int) {
				if i%2 == 0 {
					rest.post(h, body)
				} else {
					rest.postBatch(h, body, body)
				}
			})
			if len(rest.ids) != 1 || !rest.onceNew() || rest.fresh+rest.replayed != 150 {
				t.Errorf("%d jobs, %d times new, %d times again, %d conflicts", len(rest.ids), rest.fresh, rest.replayed, rest.conflict)
			}
			var events answers
			atOnce(40, func(i int) {
				if i%2 == 0 {
					events.event(h, "same", body)
				} else {
					events.eventBatch(h, "other", body)
				}
			})
			for id := range rest.ids {
				if len(events.ids) != 1 || events.ids[id] != 40 {
					t.Errorf("the events are jobs %v", events.ids)
				}
			}
			if n := h.rows(); n != 1 {
				t.Errorf("%d jobs", n)
			}
			h.broker.next(t)
			if len(h.broker.published) != 0 {
				t.Error("a job was published twice")
			}
		})
	}
}

func TestConcurrentEqualSubmitsByAllWaysAreOneJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	same, other := with(`"idempotencyKey": "k", "orderingKey": "o"`), with(`"orderingKey": "o"`)
	var all, others answers
	atOnce(100, func(i int) {
		switch i % 5 {
		case 0:
			all.post(h, same)
		case 1:
			all.postBatch(h, same, same)
		case 2:
			all.event(h, "same", same)
		case 3:
			all.eventBatch(h, "other", same)
		default:
			others.insist(func() *response { return h.post("/api/jobs", other) }).want(http.StatusAccepted)
		}
	})
	if len(all.ids) != 1 || all.fresh > 1 || all.conflict > 0 {
		t.Errorf("%d jobs, %d times new, %d conflicts", len(all.ids), all.fresh, all.conflict)
	}
	n := h.rows()
	if n < 21 || n > 21+others.unsure { // without a key each submit is a job
		t.Errorf("%d jobs", n)
	}
	h.wantLine("o", n)
}

func TestConcurrentDifferentSubmitsWithOneKeyAreOneJobAndConflicts(t *testing.T) {
	t.Parallel()
	for name, wishes := range map[string]string{
		"plain":        `"idempotencyKey": "k", "maxRetryCount": %d`,
		"in an order":  `"idempotencyKey": "k", "maxRetryCount": %d, "orderingKey": "o"`,
		"in ten lines": `"idempotencyKey": "k", "orderingKey": "o%d"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			var all answers
			atOnce(100, func(i int) {
				if body := with(fmt.Sprintf(wishes, i%10)); i%20 < 10 {
					all.post(h, body)
				} else {
					all.postBatch(h, body)
				}
			})
			if len(all.ids) != 1 || !all.onceNew() || all.fresh+all.replayed != 10 || all.conflict != 90 || h.rows() != 1 {
				t.Errorf("%d jobs, %d times new, %d times again, %d conflicts", len(all.ids), all.fresh, all.replayed, all.conflict)
			}
			h.binary("/events", "1", with(`"idempotencyKey": "k", "maxRetryCount": 77`)).wantError(apierror.InvalidEvent)
		})
	}
}

func TestTwoHundredSubmitsWithOneOrderingKeyAreInOrderOfAcceptance(t *testing.T) {
	t.Parallel()
	h := open(t)
	body := with(`"orderingKey": "o"`)
	mine := make([][]uuid.UUID, 8)
	atOnce(len(mine), func(i int) {
		for range 25 {
			mine[i] = append(mine[i], h.submit(body))
		}
	})
	at := map[uuid.UUID]int{}
	for i, id := range h.wantLine("o", 200) {
		at[id] = i
	}
	for i, ids := range mine {
		for n := 1; n < len(ids); n++ {
			if at[ids[n]] <= at[ids[n-1]] {
				t.Errorf("client %d: submit %d stands before %d", i, n, n-1)
			}
		}
	}
	for range 200 {
		created, err := jobevent.Decode[jobevent.Created](h.broker.next(t))
		if err != nil {
			t.Fatal(err)
		}
		if created.OrderingKey != "o" || created.OrderNumber == 0 || (created.OrderAfter == nil) != (at[created.JobID] == 0) ||
			created.OrderAfter != nil && at[*created.OrderAfter] != at[created.JobID]-1 {
			t.Errorf("got %+v", created)
		}
	}
}

// wantLine returns the jobs of a key in their order: each depends on the one before it.
func (h *fixture) wantLine(key string, jobs int) (ids []uuid.UUID) {
	h.t.Helper()
	rows, err := h.direct.Query(h.t.Context(), "select job_id, order_after from jobs where ordering_key = $1 order by order_number", key)
	if err != nil {
		h.t.Fatal(err)
	}
	var id uuid.UUID
	var before *uuid.UUID
	if _, err = pgx.ForEachRow(rows, []any{&id, &before}, func() error {
		if n := len(ids); n == 0 && before != nil || n > 0 && (before == nil || *before != ids[n-1]) {
			h.t.Errorf("number %d comes after %v", n, before)
		}
		ids = append(ids, id)
		return nil
	}); err != nil {
		h.t.Fatal(err)
	}
	if len(ids) != jobs {
		h.t.Errorf("%d jobs in line, want %d", len(ids), jobs)
	}
	return ids
}
