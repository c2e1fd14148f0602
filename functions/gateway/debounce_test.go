package gateway_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

type heldBody struct {
	Status   string
	Held     bool
	RunAt    *time.Time
	Priority int
	Debounce *struct {
		Key                 string
		DelayMs, MaxDelayMs int64
	}
}

func debouncedJob(payload, members string) string {
	return fmt.Sprintf(`{"jobType": "MAIL", "payload": %s, %s}`, payload, members)
}

func TestABurstOfDebouncedRequestsIsOneJobWithTheLastPayload(t *testing.T) {
	t.Parallel()
	h, sealer, _ := openSealed(t)
	const policy = `"debounce": {"key": "k", "delayMs": 3600000, "maxDelayMs": 7200000}`
	first := h.decide(debouncedJob(`"first"`, policy), http.StatusAccepted)
	if first.Status != "SCHEDULED" || first.DecidedBy != "" {
		t.Errorf("the first: %+v", first)
	}
	atOnce(50, func(i int) {
		if d := h.decide(debouncedJob(fmt.Sprint(i), policy), http.StatusAccepted); d.JobID != first.JobID || d.DecidedBy != "debounce" {
			t.Errorf("a further one: %+v", d)
		}
	})
	var batch struct {
		Results []struct {
			Status    int
			JobID     uuid.UUID
			DecidedBy string
		}
	}
	h.post("/api/jobs/batch", `{"jobs": [`+debouncedJob(`1`, policy)+`, `+debouncedJob(`2`, policy+`, "priority": 7`)+`]}`).want(http.StatusOK).into(&batch)
	for _, result := range batch.Results {
		if result.Status != http.StatusAccepted || result.JobID != first.JobID || result.DecidedBy != "debounce" {
			t.Errorf("in a batch: %+v", result)
		}
	}
	var job heldBody
	h.get("/api/jobs/" + first.JobID.String()).want(http.StatusOK).into(&job)
	if job.Status != "SCHEDULED" || !job.Held || job.RunAt == nil || job.Priority != 7 || job.Debounce.DelayMs != 3600000 || job.Debounce.MaxDelayMs != 7200000 {
		t.Errorf("the job: %+v", job)
	}
	last := h.decide(debouncedJob(`"last"`, `"debounce": {"key": "k", "delayMs": 1}, "priority": 6`), http.StatusAccepted)
	if last.JobID != first.JobID || last.DecidedBy != "debounce" {
		t.Errorf("the last: %+v", last)
	}
	created, err := jobevent.Decode[jobevent.Created](h.broker.next(t))
	if err != nil || created.JobID != first.JobID || created.Priority != 6 || created.RunAt == nil || time.Now().Before(*created.RunAt) {
		t.Fatalf("published %+v, %v", created, err)
	}
	if payload, err := sealer.Open(sealing.OfJob(first.JobID, sealing.Payload), created.Payload); err != nil || string(payload) != `"last"` {
		t.Errorf("published the payload %s, %v", payload, err)
	}
	h.get("/api/jobs/" + first.JobID.String()).want(http.StatusOK).into(&job)
	if job.Held || job.Debounce == nil || h.rows() != 1 {
		t.Errorf("released: %+v, %d rows", job, h.rows())
	}
	if next := h.decide(debouncedJob(`1`, policy), http.StatusAccepted); next.JobID == first.JobID || next.DecidedBy != "" {
		t.Errorf("after the release: %+v", next)
	}
}

func TestOwnersDebounceApart(t *testing.T) {
	t.Parallel()
	h := open(t)
	const policy = `"debounce": {"key": "k", "delayMs": 60000}`
	a, b := h.decide(debouncedJob(`1`, policy+`, "ownerId": "a"`), http.StatusAccepted), h.decide(debouncedJob(`1`, policy+`, "ownerId": "b"`), http.StatusAccepted)
	if a.JobID == b.JobID {
		t.Error("two owners share a job")
	}
}

func TestACommandReleasesADebouncedJob(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]func(*fixture, uuid.UUID){
		"cancel": func(h *fixture, id uuid.UUID) {
			h.post("/api/jobs/"+id.String()+"/cancel", "").want(http.StatusAccepted)
		},
		"reschedule": func(h *fixture, id uuid.UUID) {
			h.post("/api/jobs/"+id.String()+"/reschedule", `{"delayMs": 0}`).want(http.StatusAccepted)
		},
		"change": func(h *fixture, id uuid.UUID) {
			h.do(http.MethodPatch, "/api/jobs/"+id.String(), `{"priority": 3}`, "Content-Type", "application/merge-patch+json").want(http.StatusAccepted)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			const policy = `"debounce": {"key": "k", "delayMs": 3600000}`
			id := h.decide(debouncedJob(`1`, policy), http.StatusAccepted).JobID
			h.decide(debouncedJob(`2`, policy), http.StatusAccepted)
			command(h, id)
			if next := h.decide(debouncedJob(`3`, policy), http.StatusAccepted); next.JobID == id {
				t.Error("a further request has changed the job")
			}
			var created, released bool
			for !created || !released {
				switch e := h.broker.next(t); e.Type() {
				case jobevent.TypeCreated:
					job, err := jobevent.Decode[jobevent.Created](e)
					if created = err == nil && job.JobID == id && string(job.Payload) == "2"; !created {
						t.Fatalf("published %+v, %v", job, err)
					}
				case jobevent.TypeCommand:
					c, err := jobevent.Decode[jobevent.Command](e)
					if err != nil || c.JobID != id || c.Command != name {
						t.Fatalf("published %+v, %v", c, err)
					}
					released = created // a command is published at once, and again after its job
				}
			}
		})
	}
}

// The policy has decided at the submit, which also determined the job's present runAt.
func TestAThrottledJobCanBeChanged(t *testing.T) {
	t.Parallel()
	h := open(t)
	const policy = `"throttle": {"key": "k", "perMs": 3600000}`
	h.decide(debouncedJob(`1`, policy), http.StatusAccepted)
	second := h.decide(debouncedJob(`1`, policy), http.StatusAccepted)
	h.do(http.MethodPatch, "/api/jobs/"+second.JobID.String(), `{"priority": 3}`, "Content-Type", "application/merge-patch+json").want(http.StatusAccepted)
}

func TestDebounceIsRefusedWhereItCannotHold(t *testing.T) {
	t.Parallel()
	h := open(t)
	for members, path := range map[string]string{
		`"debounce": {"key": "k"}`:                                                                                                    "debounce.delayMs",
		`"debounce": {"delayMs": 5}`:                                                                                                  "debounce.key",
		`"debounce": {"key": "k", "delayMs": 0}`:                                                                                      "debounce.delayMs",
		`"debounce": {"key": "k", "delayMs": 86400001}`:                                                                               "debounce.delayMs",
		`"debounce": {"key": "k", "delayMs": 5, "maxDelayMs": 4}`:                                                                     "debounce.maxDelayMs",
		`"debounce": {"key": "k", "delayMs": 5, "perMs": 4}`:                                                                          "debounce.perMs",
		`"debounce": {"key": "k", "delayMs": 5}, "delayMs": 5`:                                                                        "debounce",
		`"debounce": {"key": "k", "delayMs": 5}, "runAt": "2035-01-01T00:00:00Z"`:                                                     "debounce",
		`"debounce": {"key": "k", "delayMs": 5}, "unique": {"key": "u"}`:                                                              "debounce",
		`"debounce": {"key": "k", "delayMs": 5}, "throttle": {"key": "u", "perMs": 5}`:                                                "debounce",
		`"debounce": {"key": "k", "delayMs": 5}, "after": ["01936f3e-5f3e-7cc0-8000-0123456789ab"]`:                                   "debounce",
		`"debounce": {"key": "k", "delayMs": 5}, "batchId": "01936f3e-5f3e-7cc0-8000-0123456789ab"`:                                   "debounce",
		`"debounce": {"key": "k", "delayMs": 60000}, "expiresAt": "` + time.Now().Add(time.Minute/2).UTC().Format(time.RFC3339) + `"`: "expiresAt",
	} {
		h.post("/api/jobs", debouncedJob(`1`, members)).wantError(apierror.InvalidJobRequest, path)
	}
	const policy = `"debounce": {"key": "k", "delayMs": 60000}, `
	h.decide(debouncedJob(`1`, policy+`"singleton": {"key": "s"}`), http.StatusAccepted)
	h.post("/api/jobs", debouncedJob(`1`, policy+`"singleton": {"key": "other"}`)).wantError(apierror.InvalidJobRequest, "debounce")
	h.post("/api/schedules", `{"name": "n", "cron": "0 0 * * *", "job": `+debouncedJob(`1`, policy+`"priority": 1`)+`}`).wantError(apierror.InvalidJobRequest, "job.debounce")
	h.post("/api/batches", `{"jobs": [`+debouncedJob(`1`, policy+`"priority": 1`)+`]}`).wantError(apierror.InvalidJobRequest)
	h.post("/api/batches", `{"closed": true, "onComplete": `+debouncedJob(`1`, policy+`"priority": 1`)+`}`).wantError(apierror.InvalidJobRequest)
}
