package commands

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

const patchType = "application/merge-patch+json"

// changeTries limits how often a change is checked again because the job got another command in the meantime.
const changeTries = 3

// Change is PATCH /api/jobs/{jobId}. The new values are checked here, together with the old ones. They take effect when
// the scheduler has applied them.
// Why a change is a command: docs/decisions/scheduling.md#a-change-of-a-job-is-a-command
func (a *API) Change(c *gin.Context) error {
	if _, err := edge.JobID(c); err != nil {
		return err
	}
	if err := edge.RequireType(c, patchType); err != nil {
		return err
	}
	body, err := edge.ReadBody(c, jobspec.MaxJobBytes)
	if err != nil {
		return err
	}
	patch, err := jobspec.DecodeChange(body)
	if err != nil {
		return err
	}
	entry, err := audit.EntryOf(c, "", patch.Public())
	if err != nil {
		return err
	}
	hash := sha256.Sum256(body)
	return a.keep(c, func(ctx context.Context, id uuid.UUID) (kept commandstore.Command, err error) {
		for range changeTries {
			change, err := a.changeOf(c, id, patch)
			if err != nil {
				return kept, err
			}
			change.Hash = hash[:]
			kept, err = a.storeFor(c).KeepChange(ctx, entry, edge.OwnerOf(c), id, change, audit.Actor(c))
			if !errors.Is(err, commandstore.ErrChanged) {
				return kept, err
			}
		}
		return kept, apierror.New(apierror.InvalidStateTransition, "%s: try again", commandstore.ErrChanged)
	})
}

// errThrottled: the next job of a throttle key is due some time after the runAt of the last one.
var errThrottled error = &apierror.Error{
	Code: apierror.InvalidJobRequest, Message: "invalid job request: runAt is the start that throttle has reserved",
	Details: []apierror.Detail{{Path: "runAt", Message: "is the start that throttle has reserved: reschedule it instead"}},
}

// changeOf applies a patch to the request of a job, checks the result like a submit, and returns the members that
// differ.
func (a *API) changeOf(c *gin.Context, id uuid.UUID, patch jobspec.Patch) (commandstore.JobChange, error) {
	old, command, err := a.Submit.Jobs.Request(c, id)
	if err != nil {
		return commandstore.JobChange{}, err
	}
	if old.Throttle != nil && patch.Names("runAt", "delayMs") {
		return commandstore.JobChange{}, errThrottled
	}
	old.Policies = jobspec.Policies{} // they have decided
	req, err := patch.Apply(old)
	if err != nil {
		return commandstore.JobChange{}, err
	}
	if _, err := a.Submit.Validate(&req, false, a.Submit.Payloads.Check(c.Request.Context())); err != nil {
		return commandstore.JobChange{}, err
	}
	a.Submit.Defaults.FillIn(&req)
	change := commandstore.JobChange{After: command}
	change.Spec = req.Members(func(name string) bool { return patch.Names(name) })
	for _, field := range []struct {
		names []string
		set   func()
	}{
		{[]string{"queue"}, func() { change.Queue = req.Queue }},
		{[]string{"expiresAt"}, func() { change.ExpiresAt, change.NeverExpires = req.ExpiresAt, req.ExpiresAt == nil }},
		{[]string{"tags"}, func() { tags := append([]string{}, req.Tags...); change.Tags = &tags }},
		{[]string{"payload"}, func() {
			change.Payload = a.Submit.Sealer.Seal(sealing.OfJob(id, sealing.Payload), req.Payload)
		}},
		{[]string{"runAt", "delayMs"}, func() {
			if change.RunAt = req.RunAt; req.RunAt == nil {
				change.Delay = &req.Delay // no delay: now
			}
		}},
	} {
		if patch.Names(field.names...) {
			field.set()
		}
	}
	return change, nil
}
