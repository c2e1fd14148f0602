package gateway_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// asked is the heartbeat of a function pull whose pull workers ask for types, each for one owner; empty: for all.
func asked(byType map[string]string) jobevent.Heartbeat {
	heartbeat := jobevent.Heartbeat{WorkerID: "pull", Queues: []string{"default"}, Demands: []jobevent.Demand{}}
	for name, owner := range byType {
		heartbeat.JobTypes = append(heartbeat.JobTypes, jobevent.JobType{Name: name})
		heartbeat.Demands = append(heartbeat.Demands, jobevent.Demand{Everyone: owner == "", OwnerID: owner, JobTypes: []string{name}, Slots: 3})
		heartbeat.Slots += 3
	}
	return heartbeat
}

func TestAPendingJobShowsThatNoPullWorkerAsksForIt(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.JobTypes = gateway.AuthOn, []string{"*"} })
	h.heartbeat(asked(map[string]string{"OWN": "acme", "EMAIL": ""}))
	acme, other := h.as("acme", "operate"), h.as("other", "operate")
	body := `{"jobType": "OWN", "payload": {}}`
	for _, test := range []struct {
		c     *client
		waits bool
	}{{acme, false}, {other, true}} {
		var job struct{ BlockedBy []jobevent.Block }
		test.c.get("/api/jobs/" + test.c.post("/api/jobs", body).want(http.StatusAccepted).jobID().String()).
			want(http.StatusOK).into(&job)
		lacks := slices.Equal(job.BlockedBy, []jobevent.Block{{Kind: "worker", ID: "OWN"}})
		if lacks != test.waits || !lacks && len(job.BlockedBy) > 0 {
			t.Errorf("waits for %v", job.BlockedBy)
		}
	}
}

func TestAnOwnerDoesNotLearnWhatThePullWorkersOfOthersAskFor(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.JobTypes = gateway.AuthOn, []string{"*"} })
	h.heartbeat(asked(map[string]string{"ACME_SECRET": "acme", "OTHERS_SECRET": "other", "SHARED": ""}))
	var body struct {
		Workers []struct {
			JobTypes []string
			Slots    int
		}
	}
	h.as("acme", "read").get("/api/workers").want(http.StatusOK).into(&body)
	got := body.Workers[0]
	if slices.Sort(got.JobTypes); !slices.Equal(got.JobTypes, []string{"ACME_SECRET", "SHARED"}) || got.Slots != 6 {
		t.Errorf("acme sees %+v", got)
	}
	var types struct{ JobTypes []struct{ Name string } }
	h.as("acme", "read").get("/api/job-types").want(http.StatusOK).into(&types)
	if slices.Contains(types.JobTypes, struct{ Name string }{"OTHERS_SECRET"}) ||
		!slices.Contains(types.JobTypes, struct{ Name string }{"ACME_SECRET"}) {
		t.Errorf("acme sees %+v", types.JobTypes)
	}
}

func TestWorkersAndHealthNameTheTypesWithoutAWorker(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth, cfg.JobTypes = gateway.AuthOn, []string{"*"} })
	h.heartbeat(asked(map[string]string{"EMAIL": ""}))
	h.as("acme", "operate").post("/api/jobs", `{"jobType": "OWN", "payload": {}}`).want(http.StatusAccepted)
	h.as("other", "operate").post("/api/jobs", plainJob).want(http.StatusAccepted)
	type unserved struct {
		Queue, JobType string
		Jobs           int
	}
	for owner, want := range map[string][]unserved{
		"": {{"default", "OWN", 1}, {"default", "SIMULATION", 1}}, "acme": {{"default", "OWN", 1}}, "third": {},
	} {
		var body struct{ WithoutWorker []unserved }
		h.as(owner, "admin").get("/api/workers").want(http.StatusOK).into(&body)
		if !slices.Equal(body.WithoutWorker, want) {
			t.Errorf("%q sees %+v, want %+v", owner, body.WithoutWorker, want)
		}
	}
	var health struct {
		Components struct {
			Job struct {
				Details struct{ JobTypesWithoutWorker int }
			}
		}
	}
	h.as("", "admin").get("/api/health").want(http.StatusOK).into(&health)
	if n := health.Components.Job.Details.JobTypesWithoutWorker; n != 2 {
		t.Errorf("the health counts %d types", n)
	}
}
