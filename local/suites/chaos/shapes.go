package main

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/local/suites/chaos/pulled"
	"github.com/jobweaver/jobweaver/shared/client"
)

// shape is a sort of job: its request, and how it may end.
type shape struct {
	name      string
	weight    int  // how often it is submitted by itself; 0: only by its own function
	brisk     bool // it is done at once unless a server is down, so its ends measure the recovery
	request   func(rnd *rand.Rand, key, witness string) map[string]any
	ends      []string // the statuses in which it may end
	code      string   // its error code if FAILED
	cancel    bool     // it is cancelled soon after it was accepted
	delivered bool     // some of its jobs have a callbackUrl
	unseen    bool     // its calls name no attempt
	delay     time.Duration
	mayNever  bool // it may end without having started
	pulled    bool // a pull worker runs it
}

const (
	completed = "COMPLETED"
	failed    = "FAILED"
	cancelled = "CANCELLED"
)

const (
	limit    = 3 // jobs of the limited queue that may run at once
	tomorrow = 24 * time.Hour
	always   = 1000 // all attempts fail
	countsTo = 4    // by checkpoints
)

var shapes = []*shape{
	{name: "plain", weight: 30, brisk: true, delivered: true, request: works(0, 300), ends: one(completed)},
	{name: "retrying", weight: 8, request: works(0, 100, "failAttempts", 2), ends: one(completed)},
	{
		name: "failing", weight: 3, delivered: true, request: works(0, 100, "failAttempts", always),
		ends: one(failed), code: installation.FailedCode,
	},
	{name: "delayed", weight: 8, request: works(0, 100), delay: 3 * time.Second, ends: one(completed)},
	{name: "counting", weight: 5, request: works(0, 200, "counts", countsTo), ends: one(completed)},
	{name: "limited", weight: 8, request: works(100, 400, "queue", installation.LimitedQueue), ends: one(completed)},
	{name: "external", weight: 6, delivered: true, request: external, ends: one(completed)},
	{name: "simulation", weight: 4, unseen: true, request: simulation, ends: one(completed)},
	{
		name: "cancelled midway", weight: 5, request: works(4000, 8000), cancel: true, mayNever: true,
		ends: []string{completed, cancelled},
	},
	{
		name: "cancelled before its time", weight: 3, request: works(0, 0), delay: tomorrow, cancel: true, mayNever: true,
		ends: one(cancelled),
	},
}

// The shapes that are submitted by functions of their own.
var (
	batchShape   = &shape{name: "batch", brisk: true, delivered: true, request: works(0, 200), ends: one(completed)}
	orderedShape = &shape{name: "ordered", request: works(0, 100), ends: one(completed)}
	parentShape  = &shape{name: "parent", request: works(0, 500), ends: one(completed)}
	badParent    = &shape{
		name: "failing parent", request: works(0, 500, "failAttempts", always, "maxRetryCount", 0),
		ends: one(failed), code: installation.FailedCode,
	}
	childShape  = &shape{name: "dependent", request: works(0, 100), ends: one(completed)}
	orphanShape = &shape{name: "dependent on a failure", request: works(0, 100), ends: one(cancelled), mayNever: true}
	outputShape = &shape{name: "dependent with an output", request: works(0, 100), ends: one(completed)}
	undoShape   = &shape{name: "run after a failure", request: works(0, 100), ends: one(completed)}
	// It would run after a failure, and there is none.
	skippedShape = &shape{name: "skipped", request: works(0, 100), ends: one(cancelled), mayNever: true}
	memberShape  = &shape{name: "member of a batch", request: works(0, 400), ends: one(completed)}
	badMember    = &shape{
		name: "failing member of a batch", request: works(0, 400, "failAttempts", always, "maxRetryCount", 0),
		ends: one(failed), code: installation.FailedCode,
	}
	nextShape = &shape{name: "run after a batch", request: works(0, 100), ends: one(completed)}
	bulkShape = &shape{name: "bulk", request: works(0, 0), delay: tomorrow, ends: one(cancelled), mayNever: true}
)

// The shapes of the pull workers' jobs.
var (
	waitingShape = &shape{
		name: "waiting", pulled: true, delivered: true, ends: one(completed),
		request: pulls(pulled.Waiting.Type, 200, pulled.Work{}),
	}
	calledShape = &shape{name: "called", pulled: true, ends: one(completed)} // by the handlers of the former
	// The jobs that it calls are due tomorrow, so they end only with it.
	forsakenShape = &shape{
		name: "cancelled while it waits", pulled: true, cancel: true, mayNever: true, ends: one(cancelled),
		request: pulls(pulled.Waiting.Type, 200, pulled.Work{Tomorrow: true}),
	}
	leftShape = &shape{name: "called by a cancelled job", pulled: true, mayNever: true, ends: one(cancelled)}
	// Its jobs come together to one handler.
	togetherShape = &shape{
		name: "together", pulled: true, delivered: true, ends: one(completed),
		request: pulls(pulled.Together.Type, 500, pulled.Work{}),
	}
)

func one(status string) []string { return []string{status} }

// works returns the request of a FUNCTION job that takes from to to milliseconds. more are further pairs of the
// request; failAttempts, counts and kills are pairs of the task.
func works(from, to int, more ...any) func(*rand.Rand, string, string) map[string]any {
	return func(rnd *rand.Rand, key, witness string) map[string]any {
		t := installation.Task{Key: key, MS: from + rnd.IntN(to-from+1)}
		request := retries(30, 200)
		for i := 0; i < len(more); i += 2 {
			switch name := more[i].(string); name {
			case "failAttempts":
				if t.FailAttempts = more[i+1].(int); t.FailAttempts == always {
					request = retries(1, 200)
				}
			case "counts":
				t.Counts = more[i+1].(int)
			case "kills":
				t.Kills = true
			default:
				request[name] = more[i+1]
			}
		}
		request["jobType"], request["payload"] = "FUNCTION", map[string]any{"url": witness + "/work", "data": t}
		return request
	}
}

// pulls returns the request of a job for pull workers. In some a handler fails once.
func pulls(jobType string, to int, work pulled.Work) func(*rand.Rand, string, string) map[string]any {
	return func(rnd *rand.Rand, key, _ string) map[string]any {
		request := retries(30, 200)
		request["jobType"], request["queue"] = jobType, client.TaskQueue
		work := work
		work.Key, work.MS, work.FailAttempts = key, rnd.IntN(to), rnd.IntN(4)/3
		request["payload"] = work
		return request
	}
}

func external(rnd *rand.Rand, key, witness string) map[string]any {
	request := retries(30, 500)
	t := installation.Task{Key: key, MS: 200 + rnd.IntN(1500)}
	request["jobType"] = "EXTERNAL"
	request["payload"] = map[string]any{"url": witness + "/outside", "data": t, "callbackTimeoutMs": 60_000}
	return request
}

func simulation(_ *rand.Rand, key, witness string) map[string]any {
	request := retries(30, 200)
	request["jobType"] = "SIMULATION"
	request["payload"] = map[string]any{"steps": []any{
		map[string]any{"type": "LOG", "message": "hello"},
		map[string]any{"type": "HTTP_CALL", "url": witness + "/call/" + key},
	}}
	return request
}

func retries(n, delayMs int) map[string]any {
	return map[string]any{"maxRetryCount": n, "retryPolicy": map[string]any{"type": "fixed", "delayMs": delayMs}}
}

// body returns a JobRequest, which can be submitted again with its key. more are further pairs of it.
func (s *shape) body(rnd *rand.Rand, key, witness string, delivered bool, tags []string, more ...any) json.RawMessage {
	request := s.request(rnd, key, witness)
	request["idempotencyKey"], request["tags"] = key, append([]string{key}, tags...)
	if s.delay > 0 {
		request["delayMs"] = s.delay.Milliseconds()
	}
	if delivered {
		request["callbackUrl"] = witness + "/delivered"
	}
	for i := 0; i < len(more); i += 2 {
		request[more[i].(string)] = more[i+1]
	}
	text, err := json.Marshal(request)
	if err != nil {
		panic(err) // maps of texts and numbers
	}
	return text
}

// anyOf draws a shape by its weight.
func anyOf(list []*shape, rnd *rand.Rand) *shape {
	total := 0
	for _, s := range list {
		total += s.weight
	}
	n := rnd.IntN(total)
	for _, s := range list {
		if n -= s.weight; n < 0 {
			return s
		}
	}
	panic("weights do not add up")
}
