package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// decided is the answer to a submit.
type decided struct {
	JobID     uuid.UUID
	Status    string
	DecidedBy string
}

func (c *client) decide(body string, status int) (d decided) {
	c.t.Helper()
	c.post("/api/jobs", body).want(status).into(&d)
	return d
}

func TestHundredRacingSubmitsDecideOnce(t *testing.T) {
	t.Parallel()
	for policy, members := range map[string]string{
		"unique":    `"unique": {"key": "k", "for": "1h"}`,
		"singleton": `"singleton": {"key": "k", "else": "drop"}`,
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			body := with(members)
			var all answers
			atOnce(100, func(i int) {
				switch i % 4 {
				case 0:
					all.postBatch(h, body, body)
				case 1:
					all.event(h, fmt.Sprint(i), body)
				default:
					r := all.insist(func() *response { return h.post("/api/jobs", body) })
					all.add(r.status, r.jobID())
				}
			})
			if len(all.ids) != 1 || all.fresh > 1 || all.conflict > 0 || h.rows() != 1 {
				t.Errorf("%d jobs, %d times new, %d conflicts, %d rows", len(all.ids), all.fresh, all.conflict, h.rows())
			}
			h.broker.next(t)
			if len(h.broker.published) != 0 {
				t.Error("a job was published twice")
			}
		})
	}
}

func TestHundredRacingSubmitsReserveAStartEach(t *testing.T) {
	t.Parallel()
	h := open(t)
	var unsure answers
	atOnce(100, func(int) {
		unsure.insist(func() *response { return h.post("/api/jobs", with(`"throttle": {"key": "k", "perMs": 60000}`)) }).want(http.StatusAccepted)
	})
	var due []time.Time
	h.sql("select array_agg(coalesce(run_at, created_at) order by coalesce(run_at, created_at)) from jobs", &due)
	if len(due) < 100 || len(due) > 100+unsure.unsure {
		t.Fatalf("%d jobs", len(due))
	}
	for i := 1; i < len(due); i++ {
		if apart := due[i].Sub(due[i-1]); apart != time.Minute {
			t.Errorf("job %d is due %s after the one before", i, apart)
		}
	}
}

func TestHundredRacingSingletonsAreOneLine(t *testing.T) {
	t.Parallel()
	h := open(t)
	var unsure answers
	atOnce(100, func(int) {
		unsure.insist(func() *response { return h.post("/api/jobs", with(`"singleton": {"key": "k"}`)) }).want(http.StatusAccepted)
	})
	h.wantLine("\x01k", h.rows())
	created, err := jobevent.Decode[jobevent.Created](h.broker.next(t))
	if err != nil || created.OrderingKey != "\x01k" || created.OrderNumber == 0 {
		t.Errorf("published as %+v, %v", created, err)
	}
}

func TestAUniqueJobIsAcceptedAgainOnceItHasEnded(t *testing.T) {
	t.Parallel()
	h := open(t)
	active, waiting := with(`"unique": {"key": "k"}`), with(`"unique": {"key": "k", "while": "WAITING"}`)
	first := h.decide(active, http.StatusAccepted)
	if first.DecidedBy != "" {
		t.Errorf("the first is %+v", first)
	}
	if again := h.decide(active, http.StatusOK); again.JobID != first.JobID || again.DecidedBy != "unique" || again.Status != "PENDING" {
		t.Errorf("again it is %+v", again)
	}
	h.scheduler(first.JobID, 1, jobstate.Running, func(s *jobevent.Status) { s.Attempt = 1 })
	if again := h.decide(active, http.StatusOK); again.JobID != first.JobID || again.Status != "RUNNING" {
		t.Errorf("while it runs it is %+v", again)
	}
	second := h.decide(waiting, http.StatusAccepted)
	h.scheduler(second.JobID, 1, jobstate.Completed, func(s *jobevent.Status) { s.Attempt = 1 })
	if again := h.decide(active, http.StatusOK); again.JobID != first.JobID {
		t.Errorf("while the first runs it is %+v", again)
	}
	h.scheduler(first.JobID, 2, jobstate.Failed, func(s *jobevent.Status) { s.Attempt = 1 })
	h.decide(active, http.StatusAccepted)
}

// The results of a batch are in its order, and its jobs decide in that order.
func TestTheJobsOfABatchDecideInItsOrder(t *testing.T) {
	t.Parallel()
	h := open(t)
	u, s := `"unique": {"key": "k", "for": "1h"}`, `"singleton": {"key": "k", "else": "drop"}`
	var batch struct {
		Results []struct {
			Status    int
			JobID     uuid.UUID
			DecidedBy string
		}
	}
	h.post("/api/jobs/batch", fmt.Sprintf(`{"jobs": [%s, %s, %s, %s, {"jobType": "NO"}, %s]}`,
		with(u), with(s), with(u), with(s), with(u+`, "singleton": {"key": "other"}`))).want(http.StatusOK).into(&batch)
	r := batch.Results
	if r[0].Status != 202 || r[1].Status != 202 || r[2].Status != 200 || r[2].JobID != r[0].JobID || r[2].DecidedBy != "unique" ||
		r[3].Status != 200 || r[3].JobID != r[1].JobID || r[3].DecidedBy != "singleton" || r[4].Status != 400 || r[5].JobID != r[0].JobID {
		t.Errorf("got %+v", r)
	}
	if h.rows() != 2 {
		t.Errorf("%d jobs", h.rows())
	}
}

func TestOwnersHavePolicyKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	acme, other := h.as("acme", "submit", "read"), h.as("other", "submit", "read")
	for _, members := range []string{`"unique": {"key": "k"}`, `"singleton": {"key": "k", "else": "drop"}`} {
		mine := acme.decide(with(members), http.StatusAccepted)
		theirs := other.decide(with(members), http.StatusAccepted)
		if again := acme.decide(with(members), http.StatusOK); again.JobID != mine.JobID || theirs.JobID == mine.JobID {
			t.Errorf("%s: %v and %v", members, mine, theirs)
		}
	}
	for _, c := range []*client{acme, other} {
		if d := c.decide(with(`"throttle": {"key": "k", "perMs": 60000}`), http.StatusAccepted); d.Status != "PENDING" {
			t.Errorf("the first of an owner is %+v", d)
		}
	}
}

// An idempotency key is checked before the policies: the same request gets the same answer, even when its job has
// ended.
func TestAPolicyIsNotAskedForARepeatedRequest(t *testing.T) {
	t.Parallel()
	h := open(t)
	const u = `"unique": {"key": "k"}`
	first := h.decide(with(u+`, "idempotencyKey": "i"`), http.StatusAccepted)
	h.scheduler(first.JobID, 1, jobstate.Completed, nil)
	if again := h.decide(with(u+`, "idempotencyKey": "i"`), http.StatusOK); again.JobID != first.JobID || again.DecidedBy != "" {
		t.Errorf("repeated it is %+v", again)
	}
	second := h.decide(with(u+`, "idempotencyKey": "j"`), http.StatusAccepted)
	dropped := h.post("/api/jobs", with(u+`, "idempotencyKey": "l"`)).want(http.StatusOK)
	if dropped.jobID() != second.JobID || dropped.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("a duplicate is %s", dropped.body)
	}
	h.post("/api/jobs", with(`"unique": {"key": "m"}, "idempotencyKey": "j"`)).wantError(apierror.IdempotencyConflict)
}

func TestAJobShowsItsPolicies(t *testing.T) {
	t.Parallel()
	h := open(t)
	const policies = `"unique": {"key": "u", "for": "24h", "while": "ACTIVE"}, "throttle": {"key": "t", "perMs": 60000},
		"singleton": {"key": "s", "else": "queue"}`
	id := h.submit(with(policies))
	var got struct {
		OrderingKey                 *string
		Unique, Throttle, Singleton map[string]any
		BlockedBy                   []jobevent.Block
		RunAt                       *time.Time
	}
	h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&got)
	if got.OrderingKey != nil || fmt.Sprint(got.Unique, got.Throttle, got.Singleton) !=
		"map[for:24h key:u while:ACTIVE] map[key:t perMs:60000] map[else:queue key:s]" {
		t.Errorf("shows %+v", got)
	}
	again := h.post(runAgainPath(id), `{"throttle": null}`).want(http.StatusAccepted).jobID()
	got.Unique, got.Throttle = nil, nil
	h.get("/api/jobs/" + again.String()).want(http.StatusOK).into(&got)
	if got.Unique != nil || got.Throttle != nil || got.Singleton["key"] != "s" || !slices.Equal(got.BlockedBy, []jobevent.Block{{Kind: "singleton", ID: "s"}}) {
		t.Errorf("run again it shows %+v", got)
	}
	throttled := h.decide(with(`"throttle": {"key": "t", "perMs": 60000}`), http.StatusAccepted)
	h.get("/api/jobs/" + throttled.JobID.String()).want(http.StatusOK).into(&got)
	if throttled.Status != "SCHEDULED" || got.RunAt == nil || time.Until(*got.RunAt) > time.Minute {
		t.Errorf("throttled it is %+v, due at %v", throttled, got.RunAt)
	}
	var page struct {
		Jobs []struct{ OrderingKey *string }
	}
	h.get("/api/jobs").want(http.StatusOK).into(&page)
	for _, job := range page.Jobs {
		if job.OrderingKey != nil {
			t.Errorf("the list shows the ordering key %q", *job.OrderingKey)
		}
	}
}

func TestPoliciesThatExcludeOtherMembersAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	for members, path := range map[string]string{
		`"singleton": {"key": "s"}, "orderingKey": "s"`:                         "singleton",
		`"throttle": {"key": "t", "perMs": 1}, "runAt": "2030-01-01T00:00:00Z"`: "throttle",
		`"throttle": {"key": "t", "perMs": 1}, "delayMs": 1`:                    "throttle",
		`"unique": {"key": "u", "for": "1 day"}`:                                "unique.for",
		`"unique": {"key": "u", "while": "active"}`:                             "unique.while",
		`"singleton": {"key": "s", "else": "replace"}`:                          "singleton.else",
		`"throttle": {"key": "t"}`:                                              "throttle.perMs",
	} {
		h.post("/api/jobs", with(members)).wantError(apierror.InvalidJobRequest, path)
	}
	id := h.submit(with(`"unique": {"key": "u"}`))
	h.do(http.MethodPatch, "/api/jobs/"+id.String(), `{"unique": null}`, "Content-Type", "application/merge-patch+json").
		wantError(apierror.InvalidJobRequest, "unique")
}

func TestAScheduleRunsAUniqueJobOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.put("/api/schedules/s", `{"cron": "@yearly", "job": `+with(`"unique": {"key": "k"}`)+`}`).want(http.StatusCreated)
	first := h.post("/api/schedules/s/run", "").want(http.StatusAccepted).jobID()
	h.broker.next(t)
	var again decided
	r := h.post("/api/schedules/s/run", "").want(http.StatusOK)
	if r.into(&again); again.JobID != first || again.DecidedBy != "unique" || r.header.Get("Location") != "/api/jobs/"+first.String() {
		t.Errorf("again it is %s", r.body)
	}
	if len(h.broker.published) != 0 || h.rows() != 1 {
		t.Errorf("%d jobs, %d more published", h.rows(), len(h.broker.published))
	}
	var ticks struct{ Ticks []struct{ Outcome string } }
	h.get("/api/schedules/s/ticks").want(http.StatusOK).into(&ticks)
	if len(ticks.Ticks) != 2 || ticks.Ticks[0].Outcome != "skipped" || ticks.Ticks[1].Outcome != "fired" {
		t.Errorf("the ticks are %+v", ticks)
	}
}
