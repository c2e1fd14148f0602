package kill

import (
	"encoding/json"
	"math/rand/v2"
	"time"
)

// shape is a sort of job: what it does, and how it may end.
type shape struct {
	name    string
	weight  int // how often it is submitted
	payload func(rnd *rand.Rand) map[string]any
	request map[string]any // besides jobType and payload

	builtin    string // a built-in job type, which the witness does not see
	mood       string // of the outside system, for EXTERNAL
	mayOutlive bool   // its handler may still run when its attempt is settled

	cancelIn time.Duration // a cancel is sent within this time; 0: none
	redrive  bool          // it is retried once it has failed
	operated bool          // an operation cancels it
	callBack bool          // an outside system calls back that it has completed, about each attempt that waits for it
	receives bool          // an event is sent for which it waits
	calls    int           // the jobs that it calls

	ends []string // the states in which it may end
	code string   // its error code if FAILED
}

const (
	completed = "COMPLETED"
	failed    = "FAILED"
	canceled  = "CANCELLED"
)

// countsTo is how far the jobs count that save checkpoints.
const countsTo = 25

var shapes = []*shape{
	{name: "at once", weight: 30, payload: works(0, 0), ends: one(completed)},
	{name: "short", weight: 25, payload: works(50, 500), ends: one(completed)},
	{
		name: "fails twice", weight: 8, payload: works(0, 50, "failAttempts", 2),
		request: retries(5, 100, 300), ends: one(completed),
	},
	{
		name: "fails for good", weight: 5, payload: works(0, 50, "failAttempts", 1000),
		request: retries(1, 200), ends: one(failed), code: "TEST.FAILED",
	},
	{
		name: "fails for good, twice", weight: 3, payload: works(0, 50, "failAttempts", 1000),
		request: retries(1, 200), redrive: true, ends: one(failed), code: "TEST.FAILED",
	},
	{
		name: "must not be retried", weight: 2, payload: works(0, 50, "failAttempts", 1000, "fatal", true),
		ends: one(failed), code: "TEST.FAILED",
	},
	{
		name: "panics", weight: 1, payload: works(0, 50, "panics", true),
		request: retries(1, 100), ends: one(failed), code: "WORKER.PANIC",
	},
	{
		name: "is cancelled midway", weight: 6, payload: works(1000, 6000), cancelIn: 3 * time.Second,
		ends: []string{completed, canceled},
	},
	{
		name: "is cancelled before its time", weight: 2, payload: works(0, 0),
		request: map[string]any{"delayMs": 3_600_000}, cancelIn: 2 * time.Second, ends: one(canceled),
	},
	{
		name: "comes later", weight: 6, payload: works(0, 50), request: map[string]any{"delayMs": 2500}, ends: one(completed),
	},
	{
		name: "takes too long", weight: 2, payload: works(60_000, 60_000),
		request: with(retries(0, 100), "timeoutMs", 400), ends: one(failed), code: "WORKER.TIMEOUT",
	},
	{
		name: "takes too long and does not listen", weight: 1, payload: works(2000, 2000, "deaf", true), mayOutlive: true,
		request: with(retries(1, 100), "timeoutMs", 400), ends: one(failed), code: "WORKER.TIMEOUT",
	},
	{name: "is called back", weight: 5, payload: works(0, 200, "waits", true), callBack: true, ends: one(completed)},
	{name: "snoozes", weight: 2, payload: works(0, 50, "snoozeAttempts", 1), ends: one(completed)},
	{
		name: "counts in its checkpoint", weight: 4, payload: works(0, 50, "counts", countsTo, "failAttempts", 1),
		request: retries(3, 100), ends: one(completed),
	},
	{
		name: "simulation", weight: 5, builtin: "SIMULATION", ends: one(completed),
		payload: steps(step("LOG", "message", "hi"), step("SLEEP", "durationMs", 100)),
	},
	{
		name: "simulation that fails", weight: 2, builtin: "SIMULATION", ends: one(failed), code: "DEMO", request: retries(1, 100),
		payload: steps(step("FAIL", "message", "no", "errorCode", "DEMO")),
	},
	{
		name: "is done outside", weight: 8, builtin: "EXTERNAL", mood: answers, ends: one(completed), request: retries(5, 200),
		payload: waits(60_000),
	},
	{
		name: "fails once outside", weight: 3, builtin: "EXTERNAL", mood: failsFirst, ends: one(completed), request: retries(5, 200),
		payload: waits(60_000),
	},
	{
		name: "is forgotten once outside", weight: 1, builtin: "EXTERNAL", mood: silentFirst, ends: one(completed),
		request: retries(5, 200), payload: waits(9000),
	},
	{
		name: "is cancelled outside", weight: 2, builtin: "EXTERNAL", mood: answers, cancelIn: 2 * time.Second,
		request: retries(5, 200), payload: waits(60_000), ends: []string{completed, canceled},
	},
}

// waits returns the payload of an EXTERNAL job, without its URL.
func waits(ms int) func(*rand.Rand) map[string]any {
	return func(*rand.Rand) map[string]any { return map[string]any{"callbackTimeoutMs": ms} }
}

// briefShapes end soon without faults.
var briefShapes = []*shape{
	{name: "at once", weight: 10, payload: works(0, 0), ends: one(completed)},
	{name: "short", weight: 5, payload: works(50, 500), ends: one(completed)},
	{name: "longer", weight: 3, payload: works(1500, 2000), ends: one(completed)},
}

// longerShapes keep as many jobs running as briefShapes, at half the rate.
var longerShapes = []*shape{
	{name: "at once", weight: 4, payload: works(0, 0), ends: one(completed)},
	{name: "short", weight: 5, payload: works(50, 500), ends: one(completed)},
	{name: "longer", weight: 5, payload: works(1500, 2000), ends: one(completed)},
}

func one(status string) []string { return []string{status} }

// works returns the payload of a WITNESS job that takes from to to milliseconds; more are further pairs.
func works(from, to int, more ...any) func(*rand.Rand) map[string]any {
	return func(rnd *rand.Rand) map[string]any {
		return with(map[string]any{"ms": from + rnd.IntN(to-from+1)}, more...)
	}
}

func steps(list ...map[string]any) func(*rand.Rand) map[string]any {
	return func(*rand.Rand) map[string]any { return map[string]any{"steps": list} }
}

func step(typ string, more ...any) map[string]any { return with(map[string]any{"type": typ}, more...) }

func retries(n int, delaysMs ...int) map[string]any {
	return map[string]any{"maxRetryCount": n, "retryPolicy": map[string]any{"type": "list", "delaysMs": delaysMs}}
}

func with(m map[string]any, more ...any) map[string]any {
	for i := 0; i+1 < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

// anyOf draws a shape by weight.
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

// body returns a JobRequest of the shape, tagged with its key. A keyed one can be submitted again. If delivered is
// set, its end is delivered to outside.
func (s *shape) body(rnd *rand.Rand, key string, keyed, delivered bool, outside string) json.RawMessage {
	payload := s.payload(rnd)
	request := map[string]any{"jobType": s.builtin, "payload": payload, "tags": []string{key}}
	if s.builtin == "" {
		request["jobType"], payload["key"] = "WITNESS", key
	}
	if s.mood != "" {
		payload["url"] = outside + "/attempts/" + s.mood
	}
	if keyed {
		request["idempotencyKey"] = key
	}
	if delivered {
		request["callbackUrl"] = outside + "/done"
	}
	for name, value := range s.request {
		request[name] = value
	}
	text, err := json.Marshal(request)
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return text
}
