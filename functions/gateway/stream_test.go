package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

const streamPatience = 20 * time.Second

// sse is an event of a stream.
type sse struct{ id, name, data string }

// sseStream is an open stream of a client.
type sseStream struct {
	t      *testing.T
	close  context.CancelFunc
	header http.Header
	events chan sse // closed when the stream ends
	last   string   // id
}

// open opens a stream. Its events are buffered until the test reads them.
func (c *client) open(path string, headers ...string) *sseStream {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		c.t.Fatalf("%s: answered %d %v", path, res.StatusCode, res.Header)
	}
	s := &sseStream{t: c.t, close: cancel, header: res.Header, events: make(chan sse, 10_000)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer res.Body.Close()
		readEvents(bufio.NewScanner(res.Body), s.events)
	}()
	c.t.Cleanup(func() { cancel(); <-ended })
	return s
}

// readEvents parses events as the HTML standard has it.
func readEvents(lines *bufio.Scanner, events chan<- sse) {
	defer close(events)
	lines.Buffer(nil, 8<<20)
	var e sse
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			events <- e
			e = sse{id: e.id}
		case field == "id":
			e.id = value
		case field == "event":
			e.name = value
		case field == "data":
			e.data = value
		}
	}
}

// next returns the next event with one of these names, and skips others.
func (s *sseStream) next(names ...string) sse {
	s.t.Helper()
	over := time.After(streamPatience)
	for {
		select {
		case e, open := <-s.events:
			if !open {
				s.t.Fatalf("the stream ended before %v", names)
			}
			if e.id != "" {
				s.last = e.id
			}
			for _, name := range names {
				if e.name == name {
					return e
				}
			}
		case <-over:
			s.t.Fatalf("no event %v came", names)
		}
	}
}

type streamedJob struct {
	JobID   uuid.UUID
	Status  string
	Attempt int
	Version int64
	OwnerID *string
	Payload json.RawMessage
	Output  json.RawMessage
	Reason  string // of a reload

	CancelRequestedAt *time.Time
	BlockedBy         []struct{ Kind, ID string }
}

func (e sse) into(t *testing.T) (job streamedJob) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.data), &job); err != nil {
		t.Fatalf("%+v: %v", e, err)
	}
	return job
}

// job waits for an event of a job with a status.
func (s *sseStream) job(id uuid.UUID, status string) streamedJob {
	s.t.Helper()
	for {
		if job := s.next("job").into(s.t); job.JobID == id && job.Status == status {
			return job
		}
	}
}

// end waits until the stream ends.
func (s *sseStream) end() {
	s.t.Helper()
	over := time.After(2 * streamPatience)
	for {
		select {
		case _, open := <-s.events:
			if !open {
				return
			}
		case <-over:
			s.t.Fatal("the stream is still open")
		}
	}
}

// notify sends the notifications of a projection for changes that the test makes in place of the scheduler and the
// workers.
func (h *fixture) notify() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	listening, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.store.ListenWatchers(ctx, func() {
			select {
			case listening <- struct{}{}:
			default:
			}
		})
	}()
	h.t.Cleanup(func() { cancel(); <-ended })
	<-listening
}

// watched waits until the hub receives notifications, which the first reload event shows.
func (s *sseStream) watched() *sseStream {
	s.t.Helper()
	s.next("reload")
	return s
}

func TestStreamSendsJobsLikeTheList(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.notify()
	s := h.open("/api/stream").watched()
	id := h.submit(plainJob)
	if job := s.job(id, "PENDING"); job.Payload != nil || job.Version != 0 {
		t.Errorf("a new job is %+v", job)
	}
	h.scheduler(id, 1, jobstate.Running, func(s *jobevent.Status) { s.Attempt = 1 })
	s.job(id, "RUNNING")
	h.heartbeat(jobevent.Heartbeat{WorkerID: "w", Attempts: []jobevent.ListedAttempt{
		{JobID: id, Attempt: 1, Progress: &jobevent.Progress{Percent: 40, Message: "half"}},
	}})
	if e := s.next("progress"); e.data != `{"jobId":"`+id.String()+`","attempt":1,"percent":40,"message":"half"}` {
		t.Errorf("progress is %s", e.data)
	}
	h.scheduler(id, 2, jobstate.Completed, func(s *jobevent.Status) { s.Attempt, s.Output = 1, []byte(`{"n":1}`) })
	e := s.next("job")
	var page struct{ Jobs []json.RawMessage }
	if h.get("/api/jobs").into(&page); len(page.Jobs) != 1 || string(page.Jobs[0]) != e.data {
		t.Errorf("sent  %s\nshown %s", e.data, page.Jobs)
	}
	if e.id == "" || s.header.Get("Cache-Control") == "public" {
		t.Errorf("it is %+v, %v", e, s.header)
	}
}

func TestStreamOfOneJobBeginsWithItAndHasItsLog(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.notify()
	id, other := h.submit(plainJob), h.submit(plainJob)
	h.log(id, 1, 0, "before")
	s := h.open("/api/stream?jobId=" + id.String())
	if job := s.next("job").into(t); job.JobID != id || job.Status != "PENDING" {
		t.Errorf("it begins with %+v", job)
	}
	list := h.open("/api/stream").watched()
	h.scheduler(other, 1, jobstate.Running, nil)
	h.log(other, 1, 0, "not mine")
	h.log(id, 1, 1, "after")
	var got struct {
		JobID uuid.UUID
		Logs  []struct {
			Attempt     int
			At          time.Time
			Level, Text string
		}
	}
	if err := json.Unmarshal([]byte(s.next("log").data), &got); err != nil {
		t.Fatal(err)
	}
	if got.JobID != id || len(got.Logs) != 1 || got.Logs[0].Text != "after" || got.Logs[0].Attempt != 1 {
		t.Errorf("sent %+v", got)
	}
	h.scheduler(id, 1, jobstate.Completed, nil)
	if job := s.next("job", "stats").into(t); job.JobID != id || job.Status != "COMPLETED" {
		t.Errorf("sent %+v", job)
	}
	list.job(id, "COMPLETED")
	for len(list.events) > 0 {
		if e := <-list.events; e.name == "log" {
			t.Errorf("a stream of a list sends %+v", e)
		}
	}
	if _, err := h.store.Statuses.ForgetJobs(t.Context(), []statusstore.Gone{{JobID: id, Version: 2}}); err != nil {
		t.Fatal(err)
	}
	if gone := s.next("reload").into(t); gone.Reason != "the job is deleted" {
		t.Errorf("sent %+v", gone)
	}
}

// log stores a line of an attempt's log, as from a worker.
func (h *fixture) log(id uuid.UUID, attempt, line int, text string) {
	h.t.Helper()
	err := h.store.Logs.Add(h.t.Context(), []jobevent.AttemptLog{{
		JobID: id, Attempt: attempt, FirstLine: line, Lines: []jobevent.LogLine{{At: time.Now(), Level: "INFO", Text: text}},
	}})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestStreamSendsJobsThatMatchOrLeaveItsFilter(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.notify()
	failed := h.open("/api/stream?status=FAILED").watched()
	tagged := h.open("/api/stream?tag=a&queue=default&type=SIMULATION")
	all := h.open("/api/stream")
	mine, other := h.submit(with(`"tags": ["a"]`)), h.submit(with(`"tags": ["b"]`))
	move := func(version int64, from, to jobstate.Status) {
		h.scheduler(mine, version, to, func(s *jobevent.Status) {
			s.History = []jobevent.Transition{{At: time.Now(), From: string(from), To: string(to), By: "test"}}
		})
	}
	h.scheduler(other, 1, jobstate.Completed, nil)
	all.job(other, "COMPLETED")
	move(1, jobstate.Running, jobstate.Failed)
	if job := failed.next("job").into(t); job.JobID != mine || job.Status != "FAILED" {
		t.Errorf("sent first %+v", job)
	}
	move(2, jobstate.Failed, jobstate.Pending)
	if job := failed.next("job").into(t); job.JobID != mine || job.Status != "PENDING" {
		t.Errorf("a job that leaves is %+v", job)
	}
	move(3, jobstate.Running, jobstate.Completed)
	all.job(mine, "COMPLETED")
	for status := ""; status != "COMPLETED"; {
		job := tagged.next("job").into(t)
		if status = job.Status; job.JobID != mine {
			t.Errorf("sent %+v", job)
		}
	}
	for len(failed.events) > 0 {
		if e := <-failed.events; e.name == "job" {
			t.Errorf("sent %s", e.data)
		}
	}
}

func TestStreamSendsOnlyItsOwnersJobs(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	h.notify()
	acme := h.as("acme", "read")
	s := acme.open("/api/stream").watched()
	all := h.as("", "operate").open("/api/stream?ownerId=acme")
	theirs, mine := h.accept("other"), h.accept("acme")
	h.scheduler(theirs, 1, jobstate.Running, nil)
	h.scheduler(mine, 1, jobstate.Running, nil)
	if job := s.next("job").into(t); job.JobID != mine {
		t.Errorf("sent %+v", job)
	}
	h.heartbeat(jobevent.Heartbeat{WorkerID: "w", Attempts: []jobevent.ListedAttempt{
		{JobID: theirs, Attempt: 0, Progress: &jobevent.Progress{Percent: 1}}, {JobID: mine, Attempt: 0, Progress: &jobevent.Progress{Percent: 2}},
	}})
	if e := s.next("progress"); !strings.Contains(e.data, mine.String()) {
		t.Errorf("sent %s", e.data)
	}
	r := acme.get("/api/stream?jobId=" + theirs.String())
	r.wantError(apierror.JobNotFound)
	acme.get("/api/stream?jobId=" + uuid.NewString()).wantError(apierror.JobNotFound)
	h.as("acme", "submit").get("/api/stream").wantError(apierror.Forbidden)
	acme.open("/api/stream?ownerId=other") // a stream that shows no owner's jobs
	h.scheduler(mine, 2, jobstate.Completed, nil)
	s.job(mine, "COMPLETED")
	for len(all.events) > 0 { // without an owner, the key sees no owner's jobs, as in the list
		if e := <-all.events; e.name == "job" {
			t.Errorf("sent %s", e.data)
		}
	}
}

func TestAStreamSendsStatistics(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.open("/api/stream")
	var got statsBody
	if err := json.Unmarshal([]byte(s.next("stats").data), &got); err != nil || got.Throughput.Days == nil {
		t.Errorf("sent %+v, %v", got, err)
	}
}

func TestReconnectedStreamMissesNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.notify()
	s, stays := h.open("/api/stream").watched(), h.open("/api/stream")
	first, second := h.submit(plainJob), h.submit(plainJob)
	h.scheduler(first, 1, jobstate.Completed, nil)
	s.job(first, "COMPLETED")
	s.close()
	h.scheduler(second, 1, jobstate.Completed, nil)
	stays.job(second, "COMPLETED")
	again := h.open("/api/stream", "Last-Event-ID", s.last)
	for {
		e := again.next("job", "reload")
		if e.name == "reload" {
			t.Fatalf("it has missed something: %+v", e)
		}
		if job := e.into(t); job.JobID == second && job.Status == "COMPLETED" {
			break
		}
	}
	for _, unknown := range []string{"none", "-", "0123456789ab-7", s.last + "9999", strings.Split(s.last, "-")[0] + "-0"} {
		if e := h.open("/api/stream", "Last-Event-ID", unknown).next("job", "progress", "reload"); e.name != "reload" || e.id == "" {
			t.Errorf("after %s it begins with %+v", unknown, e)
		}
	}
}

// Changes that the stream does not send one by one become a reload event.
func TestManyChangesAtOnceAreAReload(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.notify()
	id := h.submit(plainJob)
	one := h.open("/api/stream?jobId=" + id.String())
	list := h.open("/api/stream").watched()
	h.scheduler(id, 1, jobstate.Running, nil)
	one.job(id, "RUNNING")
	words := make([]statusstore.PublishedStatus, 800) // of jobs that do not exist
	for i := range words {
		words[i] = statusstore.PublishedStatus{JSON: []byte(`{"history": []}`), Status: jobevent.Status{
			JobID: uuid.Must(uuid.NewV7()), Version: 1, Status: "COMPLETED", UpdatedAt: time.Now(),
		}}
	}
	words[0].JobID, words[0].Version = id, 2
	if _, err := h.store.Statuses.ApplyStatuses(t.Context(), words); err != nil {
		t.Fatal(err)
	}
	list.next("reload")
	one.job(id, "COMPLETED") // the hub reads this job by itself
}

func TestAStreamHasALimit(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) {
		cfg.Auth, cfg.Limits.StreamLimit, cfg.Limits.StreamLimitTotal = gateway.AuthOn, 1, 2
	})
	acme, other, third := h.as("acme", "read"), h.as("other", "read"), h.as("third", "read")
	s := acme.open("/api/stream")
	acme.get("/api/stream").wantSlower()
	acme.do(http.MethodHead, "/api/stream", "").want(http.StatusOK) // a HEAD request does not count as a stream
	other.open("/api/stream")
	third.get("/api/stream").wantSlower()
	s.close()
	for third.get("/api/stream").status != http.StatusOK {
		if t.Context().Err() != nil {
			t.Fatal("its place stays taken")
		}
	}
}

func TestStreamEndsWhenItsKeyIsRevoked(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	key := h.key(keystore.Key{OwnerID: "acme", Roles: []string{"read"}})
	s := (&client{t: t, base: h.base, key: key.Reveal()}).open("/api/stream")
	s.next("stats")
	h.as("", "admin").do(http.MethodDelete, "/api/keys/"+key.ID(), "").want(http.StatusOK)
	s.end()
}

func TestAStopEndsStreamsAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	streams := []*sseStream{h.open("/api/stream"), h.open("/api/stream?jobId=" + id.String())}
	began := time.Now()
	h.stop()
	for _, s := range streams {
		s.end()
	}
	if took := time.Since(began); took > streamPatience/2 {
		t.Errorf("they ended after %s", took)
	}
}

func TestStreamGetsChangesFromAllGateways(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.notify()
	other := h.beside()
	here, there := h.open("/api/stream").watched(), other.open("/api/stream").watched()
	id := other.post("/api/jobs", plainJob).want(http.StatusAccepted).jobID()
	here.job(id, "PENDING")
	there.job(id, "PENDING")
	h.scheduler(id, 1, jobstate.Completed, nil)
	here.job(id, "COMPLETED")
	there.job(id, "COMPLETED")
	if e := other.open("/api/stream", "Last-Event-ID", here.last).next("job", "reload"); e.name != "reload" {
		t.Errorf("another gateway goes on with %+v", e)
	}
}

// beside returns a client of another gateway that runs on the same database.
func (h *fixture) beside(change ...func(*gateway.Config)) *client {
	h.t.Helper()
	own, err := apidb.Open(h.t.Context(), pgtest.As(h.dbURL, gateway.Name))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(own.Close)
	cfg := gateway.Config{Auth: gateway.AuthOff, Queues: []string{"default"}, Broker: h.broker.ask}
	for _, c := range change {
		c(&cfg)
	}
	g := mustNew(h.t, cfg, own).Host()
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, h.broker.publish) }()
	h.t.Cleanup(func() {
		cancel()
		g.HTTPEnded()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
	server := httptest.NewServer(g.HTTP)
	h.t.Cleanup(server.Close)
	return &client{t: h.t, base: server.URL}
}

// A job that one gateway accepts is announced to the streams of another at once, even if the first has no streams.
func TestStreamGetsJobsAcceptedByAGatewayWithoutStreams(t *testing.T) {
	t.Parallel()
	h := open(t)
	other := h.beside()
	s := h.open("/api/stream").watched()
	h.awaitWatched(other)
	id := other.post("/api/jobs", with(`"delayMs": 3600000`)).want(http.StatusAccepted).jobID()
	s.job(id, "SCHEDULED") // the scheduler publishes nothing about it for an hour
	other.post("/api/jobs/"+id.String()+"/cancel", "").want(http.StatusAccepted)
	for s.next("job").into(t).CancelRequestedAt == nil {
	}
}

// awaitWatched waits until another gateway knows that a stream is open: it then announces the jobs that it accepts.
func (h *fixture) awaitWatched(other *client) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), streamPatience)
	defer cancel()
	got := make(chan struct{})
	listening := make(chan struct{})
	go func() {
		defer close(got)
		_ = h.store.ListenChanges(ctx, func() { close(listening) }, func(c apidb.Change) {
			if c.Kind == apidb.ChangeStatus {
				cancel()
			}
		})
	}()
	<-listening
	for ctx.Err() == nil {
		other.post("/api/jobs", plainJob).want(http.StatusAccepted)
		select {
		case <-got:
		case <-time.After(20 * time.Millisecond):
		}
	}
	<-got
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		h.t.Fatal("the other gateway announces nothing")
	}
}

// A job with dependencies or an ordering key shows what it still waits for when one of those jobs has ended, although
// its own row has not changed.
func TestStreamSendsWaitingJobsWhenADependencyEnds(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.notify()
	first, second := h.submit(plainJob), h.submit(with(`"orderingKey": "k"`))
	tied := h.submit(with(`"after": ["` + first.String() + `", "` + second.String() + `"]`))
	inLine := h.submit(with(`"orderingKey": "k"`))
	s := h.open("/api/stream").watched()
	one := h.open("/api/stream?jobId=" + tied.String())
	if job := one.job(tied, "PENDING"); len(job.BlockedBy) != 2 {
		t.Errorf("it waits for %+v", job.BlockedBy)
	}
	waits := func(s *sseStream, id uuid.UUID, blocks int) {
		t.Helper()
		for {
			if job := s.next("job").into(t); job.JobID == id && len(job.BlockedBy) == blocks {
				return
			}
		}
	}
	h.scheduler(first, 1, jobstate.Completed, nil)
	waits(s, tied, 1)
	waits(one, tied, 1)
	h.scheduler(second, 1, jobstate.Completed, nil)
	list := map[uuid.UUID]bool{}
	for len(list) < 2 {
		if job := s.next("job").into(t); (job.JobID == tied || job.JobID == inLine) && len(job.BlockedBy) == 0 {
			list[job.JobID] = true
		}
	}
	waits(one, tied, 0)
	h.post("/api/controls/queue/default/pause", "").want(http.StatusOK)
	waits(one, tied, 1)
	s.next("reload")
}

// The hub reads the dependencies of changed jobs only for streams that filter by them.
func TestStreamSendsDependentsOfAJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.notify()
	first, second := h.submit(plainJob), h.submit(plainJob)
	after := func(ids ...uuid.UUID) uuid.UUID {
		t.Helper()
		named, err := json.Marshal(ids)
		if err != nil {
			t.Fatal(err)
		}
		return h.submit(with(`"after": ` + string(named)))
	}
	all := h.open("/api/stream").watched()
	s := h.open("/api/stream?after=" + first.String())
	after(second)
	tied := after(second, first)
	got := func(s *sseStream, names ...string) streamedJob {
		t.Helper()
		job := s.next(names...).into(t)
		if job.JobID != tied {
			t.Fatalf("sent %+v", job)
		}
		return job
	}
	got(s, "job")
	s.close()
	h.scheduler(tied, 1, jobstate.Cancelled, nil)
	all.job(tied, "CANCELLED")
	again := h.open("/api/stream?after="+first.String(), "Last-Event-ID", s.last)
	for got(again, "job", "reload").Status != "CANCELLED" {
	}
	if e := h.open("/api/stream?after="+second.String(), "Last-Event-ID", s.last).next("job", "reload"); e.name != "reload" {
		t.Errorf("a stream without recorded events begins with %+v", e)
	}
}

// A projection that starts does not wait until the gateway announces again that it watches.
func TestStartingProjectionNotifiesAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.open("/api/stream").watched() // the gateway listens, and no projection notifies
	began := time.Now()
	h.notify()
	s.watched()
	id := h.submit(plainJob)
	h.scheduler(id, 1, jobstate.Completed, nil)
	s.job(id, "COMPLETED")
	if took := time.Since(began); took > apidb.WatchEvery/2 {
		t.Errorf("it took %s", took)
	}
}

// Changes that could not be read while the database was away become a reload event when it is back.
func TestAStreamSurvivesTheLossOfTheDatabase(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.notify()
	id := h.submit(plainJob)
	list, one := h.open("/api/stream").watched(), h.open("/api/stream?jobId="+id.String())
	one.next("job")
	h.sql(`select pg_terminate_backend(pid) from pg_stat_activity
		where query like 'LISTEN "jobweaver_changes"%' and datname = current_database()`, nil)
	for _, s := range []*sseStream{list, one} {
		for !strings.Contains(s.next("reload").data, "lost its connection") {
		}
	}
	h.scheduler(id, 1, jobstate.Completed, nil)
	list.job(id, "COMPLETED")
	one.job(id, "COMPLETED")
}

func TestStreamTakesOnlyTheFiltersOfTheList(t *testing.T) {
	t.Parallel()
	h := open(t)
	for query, wrong := range map[string]string{
		"limit=5": "limit", "cursor=" + uuid.NewString(): "cursor", "status=GONE": "status", "jobId=x": "jobId",
		"jobId=" + uuid.NewString() + "&tag=a": "tag", "since=yesterday": "since", "x=1": "x",
	} {
		h.get("/api/stream?"+query).wantError(bad, wrong)
	}
	id := h.submit(plainJob)
	for path, status := range map[string]int{"": 200, "?status=FAILED&status=RUNNING": 200, "?jobId=" + id.String(): 200, "?jobId=" + uuid.NewString(): 404, "?x=1": 400} {
		r := h.raw(http.MethodHead, "/api/stream"+path).want(status)
		if status == http.StatusOK && (r.header.Get("Content-Type") != "text/event-stream" || len(r.body) > 0) {
			t.Errorf("%s: HEAD is answered %v", path, r.header)
		}
	}
}

func TestAStreamIsNotCompressed(t *testing.T) {
	t.Parallel()
	h := open(t)
	if s := h.open("/api/stream", "Accept-Encoding", "gzip"); s.header.Get("Content-Encoding") != "" {
		t.Errorf("answered %v", s.header)
	}
}
