package gateway_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

const sealedCanary = "canary-in-a-coal-mine"

func newSealer(t *testing.T) (sealing.Config, *sealing.Sealer) {
	t.Helper()
	cfg := sealing.Config{File: filepath.Join(t.TempDir(), "keyset.json")}
	_, err := sealing.CreateKeyset(cfg.File)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := sealing.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, sealer
}

// openSealed opens a fixture with keys, and ways to seal the canary so that its gateway cannot open it.
func openSealed(t *testing.T) (*fixture, *sealing.Sealer, map[string]func(sealing.Place) string) {
	t.Helper()
	cfg, sealer := newSealer(t)
	_, other := newSealer(t)
	h := openWith(t, func(c *gateway.Config) { c.Sealing = cfg })
	return h, sealer, map[string]func(sealing.Place) string{
		"the key is gone": func(at sealing.Place) string { return other.SealText(at, `"`+sealedCanary+`"`) },
		"it was altered": func(at sealing.Place) string {
			text := []byte(sealer.SealText(at, `"`+sealedCanary+`"`))
			copy(text[len(text)-12:], "AAAAAAAA")
			return string(text)
		},
		"it was moved": func(sealing.Place) string {
			return sealer.SealText(sealing.OfJob(uuid.New(), sealing.Payload), `"`+sealedCanary+`"`)
		},
	}
}

type sealedJob struct {
	Payload, Output json.RawMessage
	LastError       *jobevent.Error
	Progress        *jobevent.Progress
	Attempts        []struct{ Message string }
	Logs            []struct{ Text string }
	Sealed          []string
}

func TestUnopenableValuesAreShownAsSealed(t *testing.T) {
	t.Parallel()
	h, _, ways := openSealed(t)
	for way, seal := range ways {
		id, running := h.submit(plainJob), h.submit(plainJob)
		payload := seal(sealing.OfJob(id, sealing.Payload))
		h.sql("update jobs set payload = to_json($1::text) where job_id = $2", nil, payload, id)
		h.run(t, running, seal(sealing.OfAttempt(running, 1, sealing.Progress)))
		output := `"` + seal(sealing.OfAttempt(id, 1, sealing.Output)) + `"`
		message := seal(sealing.OfJob(id, sealing.Message))
		h.scheduler(id, 3, jobstate.Completed, func(s *jobevent.Status) {
			s.Attempt, s.Output, s.LastError = 1, json.RawMessage(output), &jobevent.Error{ErrorCode: "OWN", Message: message}
			s.History = append(s.History, jobevent.Transition{
				At: time.Now(), From: "QUEUED", To: "RETRYING", Attempt: 1, By: "outcome", Outcome: "failed", WorkerID: "w", Message: message,
			})
		})
		line := jobevent.LogLine{At: time.Now(), Level: "INFO", Text: seal(sealing.OfAttempt(id, 1, sealing.LogLine))}
		if err := h.store.Logs.Add(t.Context(), []jobevent.AttemptLog{{JobID: id, Attempt: 1, Lines: []jobevent.LogLine{line}}}); err != nil {
			t.Fatal(err)
		}
		answers := []*response{
			h.get("/api/jobs/" + id.String()), h.get("/api/jobs/" + running.String()),
			h.get("/api/jobs"), h.get("/api/jobs/" + id.String() + "/logs"), h.get("/api/workers"),
		}
		for _, r := range answers {
			if r.want(http.StatusOK); bytes.Contains(r.body, []byte(jobevent.SealedPrefix)) || bytes.Contains(r.body, []byte(sealedCanary)) ||
				!bytes.Contains(r.body, []byte("sealed")) {
				t.Errorf("%s: shows %s", way, r.body)
			}
		}
		var job, other sealedJob
		answers[0].into(&job)
		answers[1].into(&other)
		if string(job.Payload) != "null" || string(job.Output) != "null" || job.LastError.Message != jobview.Closed ||
			job.Attempts[0].Message != jobview.Closed || job.Logs[0].Text != jobview.Closed ||
			!slices.Equal(job.Sealed, []string{"payload", "output", "lastError", "attempts", "logs"}) {
			t.Errorf("%s: shows %s", way, answers[0].body)
		}
		if other.Progress.Message != jobview.Closed || !slices.Equal(other.Sealed, []string{"progress"}) || string(other.Payload) == "null" {
			t.Errorf("%s: shows %s", way, answers[1].body)
		}
	}
}

func TestUnopenableScheduleIsShownAndNotRun(t *testing.T) {
	t.Parallel()
	h, sealer, ways := openSealed(t)
	body := `{"cron": "@yearly", "job": ` + logJob + `}`
	for way, seal := range ways {
		h.put("/api/schedules/s", body)
		var kept string
		h.sql("select job #>> '{}' from schedules", &kept)
		if plain, err := sealer.OpenText(sealing.OfSchedule("s", ""), kept); !jobevent.IsSealed(kept) || plain != logJob || err != nil {
			t.Fatalf("keeps %s: %s, %v", kept, plain, err)
		}
		h.sql("update schedules set job = to_json($1::text)", nil, seal(sealing.OfSchedule("s", "")))
		var shown struct {
			Job    json.RawMessage
			Sealed []string
		}
		h.get("/api/schedules/s").want(http.StatusOK).into(&shown)
		if string(shown.Job) != "null" || !slices.Equal(shown.Sealed, []string{"job"}) {
			t.Errorf("%s: shows %+v", way, shown)
		}
		h.post("/api/schedules/s/run", "").wantError(apierror.Sealed)
		h.post("/api/schedules/s/pause", "").want(http.StatusOK)
	}
	h.put("/api/schedules/s", body).want(http.StatusOK) // a PUT replaces the job that cannot be opened
	id := h.post("/api/schedules/s/run", "").want(http.StatusAccepted).jobID()
	var kept string
	h.sql("select payload::text from jobs where job_id = $1", &kept, id)
	if !strings.HasPrefix(kept, `"`+jobevent.SealedPrefix) {
		t.Errorf("keeps %s", kept)
	}
}

// The request hash covers the plain request, so a repeated submit is recognised although its sealed form differs.
func TestRepeatOfASealedJobIsRecognised(t *testing.T) {
	t.Parallel()
	h, _, _ := openSealed(t)
	body := strings.Replace(plainJob, "{", `{"idempotencyKey": "one", `, 1)
	id := h.submit(body)
	if again := h.post("/api/jobs", body); again.jobID() != id || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %d %s", again.status, again.body)
	}
	h.post("/api/jobs", strings.Replace(body, "hi", "ho", 1)).want(http.StatusConflict)
}

func TestCallbackIsStoredAndPublishedSealed(t *testing.T) {
	t.Parallel()
	h, sealer, _ := openSealed(t)
	id := h.waiting(1, time.Hour)
	h.callBack(id, 1, `"status": "PROGRESS", "progress": {"percent": 5, "message": "`+sealedCanary+`"}`).want(http.StatusOK)
	h.callBack(id, 1, `"status": "COMPLETED", "output": "`+sealedCanary+`"`).want(http.StatusOK)
	completed, err := jobevent.Decode[jobevent.Completed](h.broker.next(t))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sealer.Open(sealing.OfAttempt(id, 1, sealing.Output), completed.Output); string(got) != `"`+sealedCanary+`"` || err != nil ||
		bytes.Contains(completed.Output, []byte(sealedCanary)) {
		t.Errorf("got %s: %s, %v", completed.Output, got, err)
	}
	if n := h.sqlInt(`select count(*) from jobs left join callbacks using (job_id)
		where jobs::text || coalesce(callbacks::text, '') like '%' || $1 || '%'`, sealedCanary); n != 0 {
		t.Error("it is kept in plain")
	}
	h.callBack(id, 1, `"status": "COMPLETED", "output": "`+sealedCanary+`"`).want(http.StatusOK) // the same callback again
}
