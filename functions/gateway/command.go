package gateway

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

type commandBody struct {
	JobID   uuid.UUID `json:"jobId"`
	Command int       `json:"command"`
}

// anyone is who commands while there is no authentication.
const anyone = "client"

func (f *Function) cancel(c *gin.Context) error { return f.command(c, jobevent.CommandCancel) }

// retry counts as a job: it is run again.
func (f *Function) retry(c *gin.Context) error {
	if err := f.limits.AllowJobs(c, 1); err != nil {
		return err
	}
	return f.command(c, jobevent.CommandRetry)
}

func (f *Function) remove(c *gin.Context) error { return f.command(c, jobevent.CommandDelete) }

func (f *Function) command(c *gin.Context, command string) error {
	return f.keep(c, func(ctx context.Context, id uuid.UUID) (commandstore.Command, error) {
		return f.store.commands.KeepCommand(ctx, edge.OwnerOf(c), id, command, by(c))
	})
}

// reschedule is POST /api/jobs/{jobId}/reschedule.
func (f *Function) reschedule(c *gin.Context) error {
	if _, err := jobID(c); err != nil {
		return err
	}
	body, err := edge.ReadJSON(c, jobspec.MaxControlBytes)
	if err != nil {
		return err
	}
	when, err := jobspec.DecodeWhen(body)
	if err != nil {
		return err
	}
	if err := detail(c, "", json.RawMessage(body)); err != nil {
		return err
	}
	return f.keep(c, func(ctx context.Context, id uuid.UUID) (commandstore.Command, error) {
		return f.store.commands.KeepReschedule(ctx, edge.OwnerOf(c), id, when, by(c))
	})
}

// keep has a command kept before it answers; whoever asks again gets the same number.
func (f *Function) keep(c *gin.Context, keep func(context.Context, uuid.UUID) (commandstore.Command, error)) error {
	id, err := jobID(c)
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
	f.hub.accept(apidb.ChangeStatus, id)
	f.outgoing.Add([]jobevent.Item{e})
	c.Header("Location", "/api/jobs/"+id.String()) // where it shows what became of the command
	c.JSON(http.StatusAccepted, commandBody{JobID: id, Command: kept.Number})
	return nil
}

// jobID is the path's; one that is no UUID names no job.
func jobID(c *gin.Context) (uuid.UUID, error) {
	id, ok := edge.ParseID(c.Param("jobId"))
	if !ok {
		return id, apidb.ErrNoJob
	}
	return id, nil
}
