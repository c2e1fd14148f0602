package gateway_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/typestore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

type workerBody struct {
	WorkerID          string
	Live, Stopping    bool
	Draining, Drained bool
	Slots, Free, Busy int
	Queues, JobTypes  []string
	Partitions        map[string][]int32
	Attempts          []struct {
		JobID            uuid.UUID
		JobType, OwnerID *string
		RanBy            *string
		Tags             []string
		StartedAt        *time.Time
		Progress         *struct{ Percent int }
	}
}

func (h *fixture) heartbeat(heartbeats ...jobevent.Heartbeat) {
	h.t.Helper()
	rows := make([]workerstore.Heartbeat, len(heartbeats))
	for i, heartbeat := range heartbeats {
		body, err := json.Marshal(heartbeat)
		if err != nil {
			h.t.Fatal(err)
		}
		rows[i] = workerstore.Heartbeat{Heartbeat: heartbeat, JSON: body}
	}
	err := h.store.Workers.See(h.t.Context(), rows)
	if err == nil {
		err = typestore.New(h.store.Store).Learn(h.t.Context(), rows) // as projection does
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *fixture) workers() []workerBody {
	h.t.Helper()
	var body struct{ Workers []workerBody }
	h.get("/api/workers").want(http.StatusOK).into(&body)
	return body.Workers
}

func TestWorkersShowTheirHeartbeats(t *testing.T) {
	t.Parallel()
	h := open(t)
	if none := h.workers(); none == nil || len(none) != 0 {
		t.Errorf("without any: %v", none)
	}
	started := time.Now()
	running := jobevent.ListedAttempt{JobID: uuid.New(), Attempt: 2, StartedAt: &started, Progress: &jobevent.Progress{Percent: 40}}
	h.heartbeat(
		jobevent.Heartbeat{WorkerID: "b", Version: "v1", Queues: []string{"default"}, JobTypes: []jobevent.JobType{{Name: "MAIL"}},
			Partitions: map[string][]int32{"default": {0, 3}}, Slots: 8, Free: 6, Rate: 12.5,
			Attempts: []jobevent.ListedAttempt{running, {JobID: uuid.New(), Attempt: 1}}},
		jobevent.Heartbeat{WorkerID: "c", Slots: 8, Stopping: true, Attempts: []jobevent.ListedAttempt{running}},
		jobevent.Heartbeat{WorkerID: "a", Slots: 4, Free: 4, Partitions: map[string][]int32{"mail": nil}},
	)
	h.sql("update workers set seen_at = now() - interval '11 s' where worker_id = 'a'", nil)
	got := h.workers()
	if len(got) != 3 || got[0].WorkerID != "a" || got[0].Live || got[0].Busy != 0 {
		t.Fatalf("got %+v", got)
	}
	if b := got[1]; b.WorkerID != "b" || !b.Live || b.Stopping || b.Free != 6 || b.Busy != 2 || b.JobTypes[0] != "MAIL" ||
		len(b.Partitions["default"]) != 2 || b.Attempts[0].JobID != running.JobID || b.Attempts[0].Progress.Percent != 40 ||
		b.Attempts[0].StartedAt == nil || b.Attempts[1].StartedAt != nil || b.Attempts[1].Progress != nil {
		t.Errorf("b: %+v", b)
	}
	if c := got[2]; !c.Stopping || c.Busy != 1 || c.Free != 0 {
		t.Errorf("c: %+v", c)
	}
	h.heartbeat(jobevent.Heartbeat{WorkerID: "c", Slots: 8, Stopping: true})
	if got = h.workers(); len(got) != 2 {
		t.Errorf("one that has stopped is still there: %+v", got)
	}
}

func TestTheAttemptsOfAWorkerShowTheirJobsAndPullWorkers(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := h.submit(strings.TrimSuffix(logJob, "}") + `, "tags": ["order:17"]}`)
	gone := jobevent.ListedAttempt{JobID: uuid.New(), Attempt: 1}
	h.heartbeat(jobevent.Heartbeat{WorkerID: "pull-1", Slots: 2, Attempts: []jobevent.ListedAttempt{
		{JobID: job, Attempt: 1, RanBy: "eu-west-1a/resizer-x2x9q"}, gone,
	}})
	got := h.workers()[0].Attempts
	if len(got) != 2 || got[0].JobType == nil || *got[0].JobType != "SIMULATION" || !slices.Equal(got[0].Tags, []string{"order:17"}) ||
		got[0].RanBy == nil || *got[0].RanBy != "eu-west-1a/resizer-x2x9q" {
		t.Errorf("of a job: %+v", got)
	}
	if len(got) != 2 || got[1].JobID != gone.JobID || got[1].JobType != nil || got[1].OwnerID != nil || got[1].RanBy != nil || got[1].Tags == nil {
		t.Errorf("of a job that is not there: %+v", got)
	}
}

func TestAPendingJobShowsThatNoWorkerRunsItsType(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		workers []jobevent.Heartbeat
		want    []jobevent.Block
	}{
		"no worker":     {nil, nil},
		"an older one":  {[]jobevent.Heartbeat{advertising("a", "MAIL", "")}, nil},
		"another queue": {[]jobevent.Heartbeat{only(jobevent.Heartbeat{WorkerID: "a", Queues: []string{"mail"}})}, nil},
		"other types":   {[]jobevent.Heartbeat{only(advertising("a", "MAIL", ""))}, []jobevent.Block{{Kind: "worker", ID: "SIMULATION"}}},
		"one of two":    {[]jobevent.Heartbeat{only(advertising("a", "MAIL", "")), only(advertising("b", "SIMULATION", ""))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.heartbeat(c.workers...)
			var job struct{ BlockedBy []jobevent.Block }
			h.get("/api/jobs/" + h.submit(plainJob).String()).want(http.StatusOK).into(&job)
			if !slices.Equal(job.BlockedBy, c.want) {
				t.Errorf("waits for %v, want %v", job.BlockedBy, c.want)
			}
		})
	}
}

// only returns the heartbeat of a worker that runs only the advertised types.
func only(heartbeat jobevent.Heartbeat) jobevent.Heartbeat {
	heartbeat.OnlyTypes = true
	return heartbeat
}
