// Package commands serves the commands for one job: cancel, retry, reschedule, change and delete.
package commands

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/changes"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/publishbuffer"
	"github.com/jobweaver/jobweaver/functions/gateway/submit"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

type commandBody struct {
	JobID   uuid.UUID `json:"jobId"`
	Command int       `json:"command"`
}

// API has the endpoints of commands.
type API struct {
	Store    *commandstore.Store
	Submit   *submit.API
	Hub      *changes.Hub
	Outgoing *publishbuffer.Buffer
	Limits   *edge.Limits
}

// Cancel is POST /api/jobs/{jobId}/cancel.
func (a *API) Cancel(c *gin.Context) error { return a.command(c, jobevent.CommandCancel) }

// Retry is POST /api/jobs/{jobId}/retry. It counts against the limit of submitted jobs, because the job runs again.
func (a *API) Retry(c *gin.Context) error {
	if err := a.Limits.AllowJobs(c, 1); err != nil {
		return err
	}
	return a.command(c, jobevent.CommandRetry)
}

// Delete is DELETE /api/jobs/{jobId}.
func (a *API) Delete(c *gin.Context) error { return a.command(c, jobevent.CommandDelete) }

// storeFor returns a store that keeps commands only for the version of a job that the request names.
func (a *API) storeFor(c *gin.Context) *commandstore.Store {
	return a.Store.If(edge.MatchJob(c.Request))
}

func (a *API) command(c *gin.Context, command string) error {
	return a.keep(c, func(ctx context.Context, id uuid.UUID) (commandstore.Command, error) {
		return a.storeFor(c).KeepCommand(ctx, audit.Entry(c), edge.OwnerOf(c), id, command, audit.Actor(c))
	})
}

// Reschedule is POST /api/jobs/{jobId}/reschedule.
func (a *API) Reschedule(c *gin.Context) error {
	if _, err := edge.JobID(c); err != nil {
		return err
	}
	body, err := edge.ReadJSON(c, apibody.MaxControlBytes)
	if err != nil {
		return err
	}
	when, err := apibody.DecodeWhen(body)
	if err != nil {
		return err
	}
	entry, err := audit.EntryOf(c, "", json.RawMessage(body))
	if err != nil {
		return err
	}
	return a.keep(c, func(ctx context.Context, id uuid.UUID) (commandstore.Command, error) {
		return a.storeFor(c).KeepReschedule(ctx, entry, edge.OwnerOf(c), id, when, audit.Actor(c))
	})
}

// keep stores a command before it answers. The same command again gets the same number.
func (a *API) keep(c *gin.Context, keep func(context.Context, uuid.UUID) (commandstore.Command, error)) error {
	id, err := edge.JobID(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	kept, err := keep(ctx, id)
	if err != nil {
		return edge.OfJob(id, err)
	}
	e, err := apievent.Command(kept)
	if err != nil {
		return err
	}
	telemetry.SetHere(c.Request.Context(), &e, jobevent.JobSpanID(id))
	a.Hub.Announce(apidb.ChangeStatus, id)
	a.Outgoing.Add([]jobevent.Item{e})
	edge.Locate(c, "/api/jobs/"+id.String()) // the job shows the result of the command
	return edge.Answer(c, http.StatusAccepted, commandBody{JobID: id, Command: kept.Number})
}
