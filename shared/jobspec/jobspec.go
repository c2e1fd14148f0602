// Package jobspec is what a client may ask for: the job request, its limits, and the steps of a simulation. It reads
// hostile input and reports everything that is wrong with it, by JSON path.
package jobspec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Limits of a request. Lengths of text are in characters.
const (
	MaxJobBytes    = 512 << 10 // one job's JSON, whitespace included
	MaxBatchBytes  = 16 << 20  // of a whole batch; the gateway checks it
	MaxBatchJobs   = 1_000
	MaxJobType     = 100
	MaxQueue       = 63
	MaxKey         = 255 // idempotencyKey, orderingKey, fairnessKey, ownerId, those of policies
	MaxAfter       = 10_000
	MaxTags        = 16
	MaxTag         = 64
	MaxCallbackURL = 2_000 // bytes
	MaxRetryCount  = jobevent.MaxRetryCount
	MaxPriority    = jobevent.MaxPriority
	MaxTimeout     = jobevent.MaxTimeout
	MaxIDAhead     = 24 * time.Hour         // of the time in a jobId
	MaxAhead       = 3_650 * 24 * time.Hour // of runAt and delayMs, and of expiresAt from there: ten years
	MaxMessage     = 4_096                  // of a failure
	MaxErrorCode   = 64
	maxNamed       = 20 // job types or queues named in one answer
)

// AnyType stands for every name in Rules.JobTypes.
const AnyType = "*"

// What holds where a request is silent.
const (
	DefaultQueue         = "default"
	DefaultMaxRetryCount = 3
	DefaultTimeout       = 10 * time.Minute
)

// Rules is what this installation allows.
type Rules struct {
	Queues   []string
	JobTypes []string  // beside the built-in ones, and those that workers have run; AnyType allows every name
	Now      time.Time // from which runAt may be MaxAhead away; zero: the present

	// Created is asked about a queue that Queues lacks. It returns the created queues that take jobs, in any order, and
	// whether the named one is being removed. nil: there are none.
	Created func(queue string) (active []string, removing bool, err error)

	// Learned is asked about a job type that JobTypes lacks: whether workers of the owner, or of all owners, have run it.
	// It returns the names of those that they have run, in any order. nil: they have run none.
	Learned func(owner, jobType string) (is bool, names []string, err error)

	// CheckURL refuses an address that could never be called; its error is a sentence without a subject. nil: none is.
	CheckURL func(string) error
}

// accepts reports whether jobs of a type are taken, even if no worker has ever run it.
func (r *Rules) accepts(jobType string) bool {
	return jobType == Simulation || slices.Contains(Builtin(), jobType) || slices.Contains(r.JobTypes, jobType) ||
		slices.Contains(r.JobTypes, AnyType)
}

// wrongType refuses a job type that is not taken, and lists those that are, as a sentence without its subject.
func (r *Rules) wrongType(owner, jobType string) (wrong string, err error) {
	if r.accepts(jobType) {
		return "", nil
	}
	known := slices.Concat(Builtin(), r.JobTypes)
	if r.Learned != nil {
		is, names, err := r.Learned(owner, jobType)
		if is || err != nil {
			return "", err
		}
		known = append(known, names...)
	}
	slices.Sort(known)
	known, more := slices.Compact(known), ""
	if n := len(known) - maxNamed; n > 0 {
		known, more = known[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("is not known, since no worker has run it yet: %q; the job types are %s%s",
		jobType, strings.Join(known, ", "), more), nil
}

// wrongQueue refuses a queue that Queues lacks, unless it was created, as a sentence without its subject.
func (r *Rules) wrongQueue(queue string) (wrong string, err error) {
	var created []string
	if r.Created != nil {
		active, removing, err := r.Created(queue)
		switch {
		case err != nil || slices.Contains(active, queue):
			return "", err
		case removing:
			return fmt.Sprintf("is being removed and takes no new jobs: %q", queue), nil
		}
		slices.Sort(active)
		created = active
	}
	known, more := slices.Concat(r.Queues, created), ""
	if n := len(known) - maxNamed; n > 0 {
		known, more = known[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("is not one of the queues of this installation: %q; they are %s%s",
		queue, strings.Join(known, ", "), more), nil
}

// Validate checks what Decode cannot know. The error is an *apierror.Error.
func (r *Request) Validate(rules Rules) error {
	var p strictjson.Problems
	wrong, err := rules.wrongType(r.OwnerID, r.JobType)
	if err != nil {
		return err
	}
	if wrong != "" {
		p.Add("jobType", wrong)
	}
	if !slices.Contains(rules.Queues, r.Queue) {
		wrong, err := rules.wrongQueue(r.Queue)
		if err != nil {
			return err
		}
		if wrong != "" {
			p.Add("queue", wrong)
		}
	}
	if r.CallbackURL != "" && rules.CheckURL != nil {
		if err := rules.CheckURL(r.CallbackURL); err != nil {
			p.Add("callbackUrl", err.Error())
		}
	}
	p.AddAll(r.checkTarget(rules))
	now := rules.Now
	if now.IsZero() {
		now = time.Now()
	}
	if r.RunAt != nil && r.RunAt.Sub(now) > MaxAhead {
		p.Add("runAt", fmt.Sprintf("must be at most %d days ahead", MaxAhead/(24*time.Hour)))
	}
	if s, ns := r.JobID.Time().UnixTime(); r.JobID != uuid.Nil && time.Unix(s, ns).Sub(now) > MaxIDAhead {
		p.Add("jobId", fmt.Sprintf("must be at most %d hours ahead of time", MaxIDAhead/time.Hour))
	}
	if r.ExpiresAt != nil {
		if wrong := checkExpiry(*r.ExpiresAt, r.DueAt(now)); wrong != "" {
			p.Add("expiresAt", wrong)
		}
	}
	return p.Err("job request")
}

// checkTarget looks at the URL that a job of a type that calls one is to call.
func (r *Request) checkTarget(rules Rules) (p strictjson.Problems) {
	if rules.CheckURL == nil || r.JobType != External && r.JobType != FunctionCall {
		return nil
	}
	var payload struct {
		URL *string `json:"url"`
	}
	// Decode has refused a payload that is no object or has no url.
	if err := json.Unmarshal(r.Payload, &payload); err != nil || payload.URL == nil {
		return nil
	}
	if err := rules.CheckURL(*payload.URL); err != nil {
		p.Add("payload.url", err.Error())
	}
	return p
}
