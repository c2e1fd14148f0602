package apibody

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// MaxBatchBytes bounds the body that creates a batch. It has room for as many jobs as a batch submit, and for the two
// follow-up jobs.
const MaxBatchBytes = jobspec.MaxBatchBytes + 2*jobspec.MaxJobBytes

// Batch is a request for a batch.
type Batch struct {
	Name           string // empty: none
	OwnerID        string
	Jobs           []json.RawMessage // each as sent, for jobspec.Decode
	Closed         bool              // it takes no jobs but these
	OnComplete     json.RawMessage   // job requests as sent; nil: none
	OnFailure      json.RawMessage
	ExpiresAt      *time.Time
	IdempotencyKey string // empty: none
}

// FollowUps calls do for each follow-up job with its member's name, until an error, which it returns with the path of
// the job in the batch.
func (b *Batch) FollowUps(do func(member string, job *json.RawMessage) error) error {
	for member, job := range map[string]*json.RawMessage{"onComplete": &b.OnComplete, "onFailure": &b.OnFailure} {
		if *job == nil {
			continue
		}
		if err := do(member, job); err != nil {
			return AtJob(member, err)
		}
	}
	return nil
}

// AtJob prefixes the paths in an error about a job with the job's place in the body. Other errors are unchanged.
func AtJob(path string, err error) error {
	var refused *apierror.Error
	if !errors.As(err, &refused) {
		return err
	}
	moved := apierror.Error{Code: refused.Code, Message: path + ": " + refused.Message}
	for _, d := range refused.Details {
		moved.Details = append(moved.Details, apierror.Detail{
			Path: strings.TrimSuffix(path+"."+d.Path, "."), Message: d.Message,
		})
	}
	return &moved
}

// DecodeBatch reads a batch, without checking its jobs: jobspec.Decode and DecodeFollowUp do that. The error is an
// *apierror.Error.
func DecodeBatch(body []byte) (Batch, error) {
	r := newReader(body)
	var b Batch
	r.Object(func() {
		switch string(r.Name) {
		case "jobs":
			r.Array(jobspec.MaxBatchJobs, func(int) { b.Jobs = append(b.Jobs, json.RawMessage(r.Raw())) })
		case "closed":
			b.Closed = r.Boolean()
		default:
			if !r.batchMember(&b) {
				r.Unknown()
			}
		}
	})
	p := r.Close()
	return b, p.Err("job request")
}

// batchMember reads one of the members that batches and flows share, and reports whether it is one.
func (r reader) batchMember(b *Batch) bool {
	switch string(r.Name) {
	case "name":
		b.Name = r.Label(jobspec.MaxKey)
	case "ownerId":
		b.OwnerID = r.Label(jobspec.MaxKey)
	case "onComplete":
		b.OnComplete = json.RawMessage(r.Raw())
	case "onFailure":
		b.OnFailure = json.RawMessage(r.Raw())
	case "expiresAt":
		b.ExpiresAt = r.Instant()
	case "idempotencyKey":
		b.IdempotencyKey = r.Label(jobspec.MaxKey)
	default:
		return false
	}
	return true
}

// CheckExpiry checks expiresAt at an instant. The error is an *apierror.Error.
func (b *Batch) CheckExpiry(now time.Time) error {
	var p strictjson.Problems
	switch {
	case b.ExpiresAt == nil:
	case !b.ExpiresAt.After(now):
		p.Add("expiresAt", "must not be over")
	case b.ExpiresAt.Sub(now) > jobspec.MaxAhead:
		p.Add("expiresAt", fmt.Sprintf("must be at most %d days ahead", jobspec.MaxAhead/(24*time.Hour)))
	}
	return p.Err("job request")
}

// notOfFollowUps are the members of a job request that make no sense for a follow-up job, which is made once, when a
// batch has ended.
var notOfFollowUps = []string{
	"runAt", "expiresAt", "idempotencyKey", "jobId", "after", "onDependencyFailure", "batchId", "debounce",
}

// DecodeFollowUp reads the request of a job that follows a batch, with the batch's summary in its payload.
func DecodeFollowUp(body json.RawMessage, summary any) (jobspec.Request, error) {
	var members map[string]json.RawMessage
	if len(body) > jobspec.MaxJobBytes || json.Unmarshal(body, &members) != nil || members == nil {
		return jobspec.Decode(body) // returns what is wrong
	}
	var p strictjson.Problems
	for _, name := range notOfFollowUps {
		if members[name] != nil {
			p.Add(name, "is not for a job that follows a batch")
		}
	}
	if payload := members["payload"]; payload != nil {
		filled, wrong := jobspec.FillInSummary(payload, summary)
		p.AddAll(wrong)
		members["payload"] = filled
	}
	if err := p.Err("job request"); err != nil {
		return jobspec.Request{}, err
	}
	filled, err := jobevent.Encode(members)
	if err != nil {
		return jobspec.Request{}, fmt.Errorf("write the job that follows a batch: %w", err)
	}
	return jobspec.Decode(filled)
}
