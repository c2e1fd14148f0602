package gateway

import (
	"net/http"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

type commandBody struct {
	JobID   uuid.UUID `json:"jobId"`
	Command int       `json:"command"`
}

// anyone is who commands while there is no authentication.
const anyone = "client"

func (f *Function) cancel(c *gin.Context) error { return f.command(c, jobevent.CommandCancel) }

func (f *Function) retry(c *gin.Context) error { return f.command(c, jobevent.CommandRetry) }

// command keeps a command before it answers; whoever asks again gets the same number.
func (f *Function) command(c *gin.Context, command string) error {
	id, err := jobID(c)
	if err != nil {
		return err
	}
	ctx, cancel := patience(c)
	defer cancel()
	kept, err := f.store.KeepCommand(ctx, id, command, anyone)
	if err != nil {
		return ofJob{id, err}
	}
	e, err := kept.Event()
	if err != nil {
		return err
	}
	f.stage.add([]event.Event{e})
	c.JSON(http.StatusAccepted, commandBody{JobID: id, Command: kept.Number})
	return nil
}

// jobID is the path's; one that is no UUID names no job.
func jobID(c *gin.Context) (uuid.UUID, error) {
	text := c.Param("jobId")
	id, err := uuid.Parse(text)
	if err != nil || len(text) != len(uuid.Nil.String()) {
		return id, apidb.ErrNoJob
	}
	return id, nil
}
