package jobspec

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// Decode reads one job request and fills in its defaults. It returns all that is wrong as an *apierror.Error, except
// what depends on the installation, which Validate checks.
func Decode(body []byte) (Request, error) {
	if err := checkSize(body); err != nil {
		return Request{}, err
	}
	return decode(body)
}

// decode is Decode of a request whose size has been checked.
func decode(body []byte) (Request, error) {
	if p := scanProblems(body, ""); p != nil {
		return Request{}, p.err()
	}
	r := newReader(body, "")
	req, complete := r.request()
	p := r.close()
	if complete {
		p.addAll(checkPayload(req))
	}
	if err := p.err(); err != nil {
		return Request{}, err
	}
	return req, nil
}

// DecodeBatch splits {"jobs": […]} into its jobs, each as sent, for Decode. What is wrong inside a
// job is left to Decode, so that it does not spoil the others; broken JSON spoils them all.
func DecodeBatch(body []byte) ([]json.RawMessage, error) {
	r := newReader(body, "", jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var jobs []json.RawMessage
	seen := false
	ok := r.object(func() {
		if string(r.name) != "jobs" {
			r.unknown()
			return
		}
		if seen {
			r.badAt("jobs", "is there twice")
		}
		seen = true
		r.array(MaxBatchJobs, func(int) { jobs = append(jobs, json.RawMessage(r.raw())) })
	})
	switch {
	case ok && !seen:
		r.badAt("jobs", "is required")
	case ok && len(jobs) == 0 && len(r.problems) == 0:
		r.badAt("jobs", "must have at least one job")
	}
	if p := r.close(); len(p) > 0 {
		return nil, p.err()
	}
	return jobs, nil
}

func checkSize(job []byte) error {
	if len(job) <= MaxJobBytes {
		return nil
	}
	return apierror.New(apierror.PayloadTooLarge,
		"a job may have at most %d bytes, this one has %d", MaxJobBytes, len(job))
}

func scanProblems(doc []byte, prefix string) problems {
	offset, message := scan(doc)
	if offset < 0 {
		return nil
	}
	return problems{{Path: locate(doc, prefix, offset), Message: message}}
}

func checkPayload(req Request) problems {
	if req.JobType == Simulation {
		_, p := parseSimulation(req.Payload)
		return p
	}
	schema := builtinSchema()[req.JobType]
	if schema == nil {
		return nil
	}
	p, err := schema.check(context.Background(), req.Payload) // a schema of ours waits for nobody
	if err != nil {
		p.add("payload", err.Error())
	}
	return p
}

// request reads the members of a request; complete: its payload can be looked at.
func (r *reader) request() (req Request, complete bool) {
	req = silent()
	var hasType, hasPayload, hasDelay, hasAfter, hasOnFailure bool
	complete = r.object(func() {
		switch string(r.name) {
		case "jobType":
			hasType = true
			req.JobType = r.checked(checkJobType)
		case "payload":
			hasPayload = true
			req.Payload = json.RawMessage(r.raw())
		case "maxRetryCount":
			req.MaxRetryCount, req.Silent.MaxRetryCount = int(r.integer(0, MaxRetryCount)), false
		case "retryPolicy":
			req.RetryPolicy, req.Silent.RetryPolicy = r.policy(), false
		case "queue":
			req.Queue = r.checked(checkQueue)
		case "priority":
			req.Priority = int(r.integer(0, MaxPriority))
		case "runAt":
			req.RunAt = r.instant()
		case "delayMs":
			hasDelay = true
			req.Delay = r.millis(0, MaxAhead)
		case "timeoutMs":
			req.Timeout, req.Silent.Timeout = r.millis(time.Millisecond, MaxTimeout), false
		case "idempotencyKey":
			req.IdempotencyKey = r.label(MaxKey)
		case "jobId":
			req.JobID = r.givenID()
		case "tags":
			req.Tags = r.tags()
		case "ownerId":
			req.OwnerID = r.label(MaxKey)
		case "expiresAt":
			req.ExpiresAt = r.instant()
		case "orderingKey":
			req.OrderingKey = r.label(MaxKey)
		case "after":
			hasAfter = true
			req.After = r.after()
		case "onDependencyFailure":
			hasOnFailure = true
			req.RunAnyway = r.onDependencyFailure()
		case "callbackUrl":
			req.CallbackURL = r.checked(checkCallbackURL)
		default:
			r.unknown()
		}
	})
	if complete && !hasType {
		r.badAt("jobType", "is required")
	}
	if complete && !hasPayload {
		r.badAt("payload", "is required")
	}
	if req.RunAt != nil && hasDelay {
		r.badAt("delayMs", bothTimes)
	}
	if req.JobID != uuid.Nil {
		if req.IdempotencyKey != "" {
			r.badAt("jobId", "and idempotencyKey exclude each other")
		}
		req.IdempotencyKey = req.JobID.String()
	}
	if complete && hasOnFailure && !hasAfter {
		r.badAt("onDependencyFailure", onlyWithAfter)
	}
	req.RunAnyway = req.RunAnyway && len(req.After) > 0
	return req, complete && hasPayload
}

const (
	bothTimes     = "and runAt exclude each other"
	onlyWithAfter = "goes only with after"
)

// silent is a request of which nothing has been read.
func silent() Request {
	return Request{
		Queue: DefaultQueue, MaxRetryCount: DefaultMaxRetryCount, Timeout: DefaultTimeout,
		Silent: Silent{MaxRetryCount: true, RetryPolicy: true, Timeout: true},
	}
}

// checked reads a string and has check say what is wrong with it.
func (r *reader) checked(check func(string) string) string {
	s, ok := r.text(MaxJobBytes)
	if ok {
		r.note(check(s))
	}
	return s
}

// givenID reads the id of a job that the client has made.
func (r *reader) givenID() uuid.UUID {
	s, ok := r.text(MaxJobBytes)
	if !ok {
		return uuid.Nil
	}
	id, err := uuid.Parse(s)
	if err != nil || id.String() != s || id.Version() != 7 || id.Variant() != uuid.RFC4122 {
		r.note("must be a UUID of version 7, as 01936f3e-5f3e-7cc0-8000-0123456789ab")
		return uuid.Nil
	}
	return id
}

// millis reads a duration in milliseconds.
func (r *reader) millis(least, most time.Duration) time.Duration {
	return time.Duration(r.integer(least.Milliseconds(), most.Milliseconds())) * time.Millisecond
}

func (r *reader) instant() *time.Time {
	s, ok := r.text(MaxJobBytes)
	if !ok {
		return nil
	}
	t, wrong := parseInstant(s)
	r.note(wrong)
	return &t
}

func (r *reader) tags() []string {
	var tags []string
	r.array(MaxTags, func(int) {
		if tag := r.label(MaxTag); tag != "" && slices.Contains(tags, tag) {
			r.bad("is there twice")
		} else {
			tags = append(tags, tag)
		}
	})
	return tags
}
