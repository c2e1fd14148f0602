package interplay

import (
	"strings"
	"time"

	"github.com/google/uuid"
)

// In a request stand the ids of jobs and batches that earlier steps have made. Each wait until that step is answered.

// key returns a name that both owners of a program use: their keys, schedules and events are separate.
func (x *run) key(name string) string { return x.base + "-" + name }

// keyOf returns a key of a job. Jobs without an owner share their keys with those of all programs.
func (x *run) keyOf(j Job, name string) string {
	if j.Unowned {
		return x.own(name)
	}
	return x.key(name)
}

// own returns the name of what all owners share: a queue, a job type, a fairness key.
func (x *run) own(name string) string { return x.owner + "-" + name }

func (x *run) queue(j Job) string {
	switch {
	case j.Queue != "":
		return x.own(j.Queue)
	case j.Type == "PULL", j.Type == stepsType:
		return "pull"
	}
	return "default"
}

func (x *run) kind(j Job) string {
	if j.Type == "PULL" {
		return x.own("type")
	}
	return j.Type
}

// payload returns what a job gets. more has further members of its data.
func (x *run) payload(j Job, more map[string]any) any {
	if j.Type == "SIMULATION" {
		steps := []any{
			map[string]any{"type": "LOG", "message": j.Name}, map[string]any{"type": "SLEEP", "durationMs": j.Acts[0].Ms},
		}
		if j.Acts[0].Do == actFail {
			steps = append(steps, map[string]any{"type": "FAIL", "message": "once", "failAttempts": 1})
		}
		return map[string]any{"steps": steps}
	}
	switch j.Type {
	case emailType:
		return x.mailPayload(j)
	case reportType:
		return reportPayload(j)
	}
	data := map[string]any{"name": j.Name, "acts": j.Acts}
	for name, value := range more {
		data[name] = value
	}
	if j.Type == "PULL" {
		return data
	}
	return map[string]any{
		"url": x.Witness.URL + "/" + strings.Replace(strings.ToLower(j.Type), "steps", "function", 1) + "/" + x.owner, "data": data, "callbackTimeoutMs": max(j.WaitMs, 100),
	}
}

func policy(name string) map[string]any {
	switch name {
	case "fixed":
		return map[string]any{"type": "fixed", "delayMs": 100}
	case "list":
		return map[string]any{"type": "list", "delaysMs": []int{50, 200}}
	case "jitter":
		return map[string]any{"type": "fixed", "delayMs": 200, "jitter": 0.5}
	}
	return map[string]any{"type": "exponential", "baseMs": 50, "capMs": 300}
}

// delayOf returns the shortest time that a policy waits after the n-th failure.
func delayOf(name string, n int) time.Duration {
	var ms int
	switch name {
	case "fixed", "jitter": // half of 200 is random
		ms = 100
	case "list":
		ms = []int{50, 200}[min(n-1, 1)]
	default:
		ms = min(50<<n, 300)
	}
	return time.Duration(ms) * time.Millisecond
}

// options returns a request for a job, without what only some ways of submitting it allow.
func (x *run) options(j Job) map[string]any {
	req := map[string]any{
		"jobType": x.kind(j), "queue": x.queue(j), "tags": append([]string{x.owner}, j.Tags...),
		"retryPolicy": policy(j.Policy), "ownerId": x.owner,
	}
	set := func(name string, value any, when bool) {
		if when {
			req[name] = value
		}
	}
	set("priority", j.Priority, j.Priority > 0)
	set("timeoutMs", j.TimeoutMs, j.TimeoutMs > 0)
	if j.MaxRetries != nil {
		req["maxRetryCount"] = *j.MaxRetries
	}
	set("delayMs", j.DelayMs, j.DelayMs > 0 && !j.RunAt)
	set("runAt", instant(j.DelayMs), j.DelayMs > 0 && j.RunAt)
	set("expiresAt", instant(j.ExpiresMs), j.ExpiresMs > 0)
	set("orderingKey", x.keyOf(j, j.Ordering), j.Ordering != "")
	set("fairnessKey", x.owner, j.Fairness != "") // an owner names no other
	set("fairnessKey", x.own(j.Fairness), j.Fairness != "" && j.Unowned)
	set("callbackUrl", x.Witness.URL+"/end/"+x.owner+"/"+j.Callback, j.Callback != "")
	set("keepBuild", true, j.KeepBuild)
	set("idempotencyKey", x.keyOf(j, j.Idem), j.Idem != "")
	set("onDependencyFailure", "run", j.AnyEnd && len(j.After) > 0)
	set("ownerId", x.other.owner, j.Claims)
	x.policies(j, set)
	return req
}

func (x *run) policies(j Job, set func(string, any, bool)) {
	if j.Singleton != "" {
		set("singleton", map[string]any{"key": x.keyOf(j, j.Singleton), "else": map[bool]string{true: "drop", false: "queue"}[j.Drop]}, true)
	}
	if j.Unique != "" {
		u := map[string]any{"key": x.keyOf(j, j.Unique)}
		if j.While != "" {
			u["while"] = j.While
		}
		set("unique", u, true)
	}
	set("throttle", map[string]any{"key": x.keyOf(j, j.Throttle), "perMs": j.PerMs}, j.Throttle != "")
	set("debounce", map[string]any{
		"key": x.keyOf(j, j.Debounce), "delayMs": j.HoldMs, "maxDelayMs": j.MaxHoldMs,
	}, j.Debounce != "")
}

func instant(ms int) string {
	return time.Now().Add(time.Duration(ms) * time.Millisecond).UTC().Format(time.RFC3339Nano)
}

// request returns the whole request of a job outside a flow. ok is false if what it needs was not made.
func (x *run) request(j Job) (req map[string]any, ok bool) {
	req = x.options(j)
	req["payload"] = x.payload(j, nil)
	var after []any
	for _, need := range j.After {
		id := x.id(need.Of)
		if id == "" {
			return nil, false
		}
		if need.On == "" {
			after = append(after, id)
		} else {
			after = append(after, map[string]any{"jobId": id, "on": need.On})
		}
	}
	if after != nil {
		req["after"] = after
	}
	if j.Batch != "" {
		id := x.id(j.Batch)
		if id == "" {
			return nil, false
		}
		req["batchId"] = id
	}
	if j.OwnID {
		req["jobId"] = uuid.Must(uuid.NewV7()).String()
		delete(req, "idempotencyKey")
	}
	return req, true
}

// flowRequest returns the job of a flow.
func (x *run) flowRequest(j Job, fanOuts map[string]bool) (req map[string]any, ok bool) {
	req = x.options(j)
	delete(req, "ownerId")
	more := map[string]any{}
	if j.Uses != "" {
		output := map[string]any{"$output": flowName(j.Uses)}
		if j.Default {
			output["default"] = "none"
		}
		more["in"] = output
	}
	if j.ForEach != "" {
		each := map[string]any{"$output": flowName(j.ForEach), "path": "$.list"}
		if fanOuts[j.ForEach] {
			delete(each, "path")
		}
		req["forEach"] = each
		more["item"], more["index"] = map[string]any{"$item": "value"}, map[string]any{"$item": "index"}
	}
	req["payload"] = x.payload(j, more)
	var after []any
	for _, need := range j.After {
		entry := map[string]any{}
		if x.inFlow(need.Of, j.Name) {
			entry["name"] = flowName(need.Of)
		} else if id := x.id(need.Of); id != "" {
			entry["jobId"] = id
		} else {
			return nil, false
		}
		if need.On != "" {
			entry["on"] = need.On
		}
		after = append(after, entry)
	}
	if after != nil {
		req["after"] = after
	}
	return req, true
}

// inFlow reports whether two jobs are of one flow: s4.1 and s4.2 are.
func (x *run) inFlow(one, other string) bool {
	a, _, _ := strings.Cut(one, ".")
	b, _, found := strings.Cut(other, ".")
	return found && a == b
}

func flowName(name string) string { return strings.ReplaceAll(name, ".", "_") }

func (x *run) followUp(of, kind string) map[string]any {
	j := Job{Name: of + "+" + kind, Type: "FUNCTION", Acts: []Act{{Do: actOK}}}
	return map[string]any{
		"jobType": "FUNCTION", "tags": []string{x.owner, "follows-" + of, kind},
		"payload": x.payload(j, map[string]any{"in": map[string]string{"$batch": "summary"}}),
	}
}

// patch returns the merge patch of a change.
func (x *run) patch(j *Job, kind string) map[string]any {
	if j == nil {
		return map[string]any{}
	}
	change := map[string]any{}
	if j.Priority > 0 {
		change["priority"] = j.Priority
	}
	if j.Tags != nil {
		change["tags"] = append([]string{x.owner}, j.Tags...)
	}
	if j.DelayMs > 0 {
		change["delayMs"] = j.DelayMs
	}
	if j.MaxRetries != nil {
		change["maxRetryCount"] = *j.MaxRetries
	}
	if j.ExpiresMs > 0 {
		change["expiresAt"] = instant(j.ExpiresMs)
	}
	switch acts := map[string]any{"acts": j.Acts}; {
	case j.Acts == nil:
	case kind == "PULL":
		change["payload"] = acts
	case unseen(kind) || kind == "EXTERNAL":
		change["priority"] = 2
	default:
		change["payload"] = map[string]any{"data": acts}
	}
	return change
}
