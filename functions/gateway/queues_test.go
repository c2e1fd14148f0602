package gateway_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
)

type queueBody struct {
	Queue, Origin, State  string
	Workers, CreatedBy    *string
	LiveWorkers           int
	Waiting, Running      int
	Paused                bool
	CreatedAt, RemovingAt *time.Time
}

func (c *client) createQueue(name, body string, status int) (q queueBody) {
	c.t.Helper()
	c.put("/api/queues/"+name, body).want(status).into(&q)
	return q
}

func (c *client) removeQueue(path string) (q queueBody) {
	c.t.Helper()
	c.do(http.MethodDelete, "/api/queues/"+path, "").want(http.StatusAccepted).into(&q)
	return q
}

func (c *client) queues() (names []string, found map[string]queueBody) {
	c.t.Helper()
	var body struct{ Queues []queueBody }
	c.get("/api/queues").want(http.StatusOK).into(&body)
	found = map[string]queueBody{}
	for _, q := range body.Queues {
		names, found[q.Queue] = append(names, q.Queue), q
	}
	return names, found
}

// settle has the removal of each queue go on now.
func (h *fixture) settle() {
	h.t.Helper()
	h.sql("update queues set removing_at = removing_at - interval '11 s' where state = 'REMOVING'", nil)
}

// eventually waits until a condition holds that only requests show.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for over := time.Now().Add(30 * time.Second); !holds(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(over) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func (h *fixture) awaitGone(name string) {
	h.t.Helper()
	eventually(h.t, "the queue is gone", func() bool { return h.get("/api/queues/"+name).status == http.StatusNotFound })
}

func mailJob(queue string) string {
	return fmt.Sprintf(`{"jobType": "MAIL", "payload": {}, "queue": %q}`, queue)
}

func TestAQueueIsCreatedUsedAndRemoved(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	h.post("/api/jobs", mailJob("reports")).wantError(apierror.InvalidJobRequest, "queue")
	made := h.createQueue("reports", "", http.StatusCreated)
	if made.Origin != "created" || made.State != "ACTIVE" || *made.Workers != "runjob" || *made.CreatedBy != "client" || made.CreatedAt == nil {
		t.Errorf("created %+v", made)
	}
	if again := h.createQueue("reports", `{"workers": "runjob"}`, http.StatusOK); !again.CreatedAt.Equal(*made.CreatedAt) {
		t.Errorf("created again %+v", again)
	}
	h.put("/api/queues/reports", `{"workers": "pull"}`).wantError(apierror.InvalidStateTransition)

	job := h.submit(mailJob("reports"))
	h.control(http.MethodPost, "queue/reports/pause", "")
	h.heartbeat(jobevent.Heartbeat{WorkerID: "w1", Slots: 4, Queues: []string{"default", "reports"}})
	eventually(t, "the statistics, which may be a second old, count the job", func() bool {
		_, found := h.queues()
		return found["reports"].Waiting == 1
	})
	names, found := h.queues()
	if want := []string{"default", "mail", "reports"}; !slices.Equal(names, want) {
		t.Errorf("listed %v, want %v", names, want)
	}
	got := found["reports"]
	if !got.Paused || got.Waiting != 1 || got.LiveWorkers != 1 || found["default"].LiveWorkers != 1 || found["default"].Origin != "setting" || found["mail"].Paused {
		t.Errorf("listed %+v", found)
	}

	r := h.do(http.MethodDelete, "/api/queues/reports", "")
	r.wantError(apierror.InvalidStateTransition)
	if message := r.error().Message; !strings.Contains(message, "1 job in it has not ended") {
		t.Errorf("refused with %q", message)
	}
	if q := h.removeQueue("reports?drain=true"); q.State != "REMOVING" || q.RemovingAt == nil || q.Waiting != 1 {
		t.Errorf("removing %+v", q)
	}
	h.removeQueue("reports") // the same again
	h.post("/api/jobs", mailJob("reports")).wantError(apierror.InvalidJobRequest, "queue")
	h.settle()
	h.scheduler(job, 1, jobstate.Completed, nil)
	h.get("/api/queues/reports").want(http.StatusOK) // a worker serves it
	h.heartbeat(jobevent.Heartbeat{WorkerID: "w1", Slots: 4, Queues: []string{"default"}})
	h.awaitGone("reports")
	h.do(http.MethodDelete, "/api/queues/reports", "").wantError(apierror.NotFound)
	var controls int
	h.sql("select count(*) from controls", &controls)
	if controls != 0 {
		t.Errorf("%d controls are left", controls)
	}

	// It comes back as a new queue.
	if again := h.createQueue("reports", `{"workers": "pull"}`, http.StatusCreated); *again.Workers != "pull" || again.Paused || !again.CreatedAt.After(*made.CreatedAt) {
		t.Errorf("created anew %+v", again)
	}
	h.submit(mailJob("reports"))
}

func TestTheRemovalOfAQueueIsTakenBack(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	h.createQueue("reports", "", http.StatusCreated)
	h.removeQueue("reports")
	if q := h.createQueue("reports", "", http.StatusOK); q.State != "ACTIVE" || q.RemovingAt != nil {
		t.Errorf("taken back %+v", q)
	}
	h.submit(mailJob("reports"))
}

func TestQueuesAreRefused(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	admin, owner := h.as("", "admin"), h.as("acme", "admin")
	for _, name := range []string{"Reports", "a_b", "a.b", "a%20b", strings.Repeat("x", 64)} {
		admin.put("/api/queues/"+name, "").wantError(apierror.InvalidJobRequest, "queue")
		admin.get("/api/queues/"+name).wantError(apierror.InvalidJobRequest, "queue")
	}
	admin.put("/api/queues/reports", `{"workers": "go"}`).wantError(apierror.InvalidJobRequest, "workers")
	admin.put("/api/queues/reports", `{"partitions": 3}`).wantError(apierror.InvalidJobRequest, "partitions")
	admin.put("/api/queues/default", "").wantError(apierror.InvalidStateTransition)
	admin.do(http.MethodDelete, "/api/queues/default", "").wantError(apierror.InvalidStateTransition)
	admin.do(http.MethodDelete, "/api/queues/none", "").wantError(apierror.NotFound)
	admin.do(http.MethodDelete, "/api/queues/none?force=true", "").wantError(apierror.InvalidJobRequest, "force")
	admin.get("/api/queues/none").wantError(apierror.NotFound)
	for _, c := range []*client{owner, h.as("", "operate"), h.as("", "read")} {
		c.put("/api/queues/reports", "").wantError(apierror.Forbidden)
		c.do(http.MethodDelete, "/api/queues/reports", "").wantError(apierror.Forbidden)
	}
	if q := admin.createQueue("reports", "", http.StatusCreated); !strings.HasPrefix(*q.CreatedBy, "key:") {
		t.Errorf("created by %s", *q.CreatedBy)
	}
	admin.submitted()
	if _, found := owner.queues(); found["reports"].CreatedBy != nil || found["reports"].Origin != "created" || found["default"].Waiting != 0 {
		t.Errorf("the owner sees %+v", found)
	}
	admin.removeQueue("reports")
	h.sql("insert into queues (name, workers, created_by) select 'q' || n, 'runjob', 'me' from generate_series(1, 99) n", nil)
	admin.put("/api/queues/more", "").wantError(apierror.InvalidStateTransition)
	var actions []string
	for _, entry := range admin.log("") {
		if strings.HasPrefix(entry.Action, "queue.") {
			actions = append(actions, entry.Action+" "+*entry.Resource)
		}
	}
	if want := []string{"queue.remove queue/reports", "queue.create queue/reports"}; !slices.Equal(actions, want) {
		t.Errorf("audited %q, want %q", actions, want)
	}
}

func TestAQueueThatSchedulesAndBatchesNameIsNotRemoved(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.createQueue("reports", "", http.StatusCreated)
	h.put("/api/schedules/daily", `{"cron": "@daily", "job": `+mailJob("reports")+`}`).want(http.StatusCreated)
	batch := h.batch(`{"onComplete": ` + mailJob("reports") + `}`)
	r := h.do(http.MethodDelete, "/api/queues/reports?drain=true", "")
	r.wantError(apierror.InvalidStateTransition)
	if got := r.error().Message; !strings.Contains(got, "1 schedule names it, 1 batch that has not ended makes a job in it") {
		t.Errorf("refused with %q", got)
	}
	h.do(http.MethodDelete, "/api/schedules/daily", "").want(http.StatusNoContent)
	h.post("/api/batches/"+batch.BatchID.String()+"/cancel", "").want(http.StatusAccepted)
	h.sweep()
	h.removeQueue("reports")
	h.put("/api/schedules/daily", `{"cron": "@daily", "job": `+mailJob("reports")+`}`).wantError(apierror.InvalidJobRequest, "job.queue")
}

// A job that comes after all, from a process that stood still, brings the removal back to its beginning.
func TestAJobInARemovedQueueStillRuns(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	h.createQueue("reports", "", http.StatusCreated)
	failed := h.submit(mailJob("reports"))
	h.scheduler(failed, 1, jobstate.Failed, nil)
	h.removeQueue("reports")
	h.post("/api/jobs/"+failed.String()+"/retry", "").wantError(apierror.InvalidStateTransition)
	h.settle()
	h.awaitGone("reports")
	h.post("/api/jobs/"+failed.String()+"/retry", "").wantError(apierror.InvalidStateTransition)
	op := h.operate(fmt.Sprintf(`{"command": "retry", "jobIds": [%q]}`, failed))
	h.work(op.OperationID)
	if op = h.operation(op.OperationID); op.Progress.Skipped != 1 {
		t.Errorf("the operation %+v", op)
	}

	late := h.submit(mailJob("mail"))
	h.sql("update jobs set queue = 'reports' where job_id = $1", nil, late)
	var census statstore.Census
	if _, err := h.store.Stats.CountJobs(t.Context(), &census, time.Now()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the queue comes back", func() bool { return h.get("/api/queues/reports").status == http.StatusOK })
	var served string
	h.sql("select workers from controls where kind = 'createdQueue'", &served)
	h.scheduler(late, 1, jobstate.Completed, nil)
	h.sql("delete from job_counts", nil)
	h.settle()
	h.awaitGone("reports")
}

func TestManyCreateAQueueAtOnce(t *testing.T) {
	t.Parallel()
	kafka := kafkaevent.Config{Brokers: kafkatest.Brokers(t)}
	topics := funchost.NewQueueTopics(funchost.Config{Kafka: kafka})
	with := func(cfg *gateway.Config) { cfg.Topics, cfg.JobTypes = topics, []string{"MAIL"} }
	h := openWith(t, func(cfg *gateway.Config) { with(cfg); cfg.RetryPolicies = "" })
	h.follow()
	other := h.beside(with)
	name := kafkatest.Prefix() + "q"
	other.post("/api/jobs", mailJob(name)).wantError(apierror.InvalidJobRequest, "queue")
	statuses := make(chan int, 8)
	var group sync.WaitGroup
	for range cap(statuses) {
		group.Go(func() { statuses <- h.put("/api/queues/"+name, "").status })
	}
	group.Wait()
	close(statuses)
	created := 0
	for status := range statuses {
		if status == http.StatusCreated {
			created++
		} else if status != http.StatusOK {
			t.Errorf("answered %d", status)
		}
	}
	if created != 1 {
		t.Errorf("created %d times", created)
	}
	if !slices.Contains(topicsOn(t, kafka), jobevent.RunTopic(name)) {
		t.Error("the topic is missing")
	}
	// The other gateway looks again for an unknown name, once a second.
	eventually(t, "the other gateway accepts the queue", func() bool {
		return other.post("/api/jobs", mailJob(name)).status == http.StatusAccepted
	})
	var job uuid.UUID
	h.sql("select job_id from jobs", &job)
	h.scheduler(job, 1, jobstate.Completed, nil)
	h.removeQueue(name)
	eventually(t, "the other gateway refuses the queue", func() bool {
		return other.post("/api/jobs", mailJob(name)).status == http.StatusBadRequest
	})
	h.scheduler(job, 2, jobstate.Completed, nil)
	h.sql("update jobs set status = 'CANCELLED', version = 1, snapshot = '{}' where status = 'PENDING'", nil)
	h.settle()
	h.awaitGone(name)
	if slices.Contains(topicsOn(t, kafka), jobevent.RunTopic(name)) {
		t.Error("the topic is still there")
	}
	if err := topics.Create(t.Context(), name); err != nil { // as a worker does that stood still meanwhile
		t.Fatal(err)
	}
	eventually(t, "the topic has gone again", func() bool {
		return !slices.Contains(topicsOn(t, kafka), jobevent.RunTopic(name))
	})
}

func topicsOn(t *testing.T, kafka kafkaevent.Config) []string {
	t.Helper()
	admin, err := sarama.NewClusterAdmin(kafka.Brokers, sarama.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	topics, err := admin.ListTopics()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(maps.Keys(topics))
}
