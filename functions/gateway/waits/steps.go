package waits

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// pageBytes is about the most bytes of results in a page of steps. It may be exceeded by one result.
const pageBytes = 1 << 20

type step struct {
	Name    string          `json:"name"`
	Result  json.RawMessage `json:"result"`
	Until   *time.Time      `json:"until"`
	Attempt int             `json:"attempt"`
	TookMs  *int64          `json:"tookMs"`
	SavedAt time.Time       `json:"savedAt"`
}

type stepPage struct {
	Steps []step  `json:"steps"`
	Next  *string `json:"next"`
}

// SaveStep is POST /api/workers/steps: it keeps what a step of an attempt returned, and answers with the step as it is
// stored.
func (a *API) SaveStep(c *gin.Context) error {
	asked, at, err := read(a, c, apibody.MaxStepBytes, apibody.DecodeWorkStep)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	stored, err := a.Store.KeepStep(ctx, at.Owner, at.JobID, waitstore.Step{
		Name: asked.Name, Attempt: at.Attempt, Until: asked.Until, TookMs: asked.TookMs, Bytes: len(asked.Result),
		Sealed: string(a.Sealer.Seal(sealing.OfStep(at.JobID, asked.Name), asked.Result)),
	})
	switch {
	case errors.Is(err, waitstore.ErrStepsFull):
		return edge.Invalid("steps", err.Error())
	case err != nil:
		return edge.OfJob(at.JobID, err)
	}
	shown, err := a.step(at.JobID, &stored)
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, shown, pullwire.Unescaped)
}

// ReadSteps is POST /api/workers/steps/read: it answers with what the steps of earlier attempts returned.
func (a *API) ReadSteps(c *gin.Context) error {
	asked, at, err := read(a, c, apibody.MaxStepReadBytes, apibody.DecodeWorkStepsRead)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	stored, more, err := a.Store.StepsAfter(ctx, at.Owner, at.JobID, asked.After, pageBytes)
	if err != nil {
		return err
	}
	page := stepPage{Steps: make([]step, len(stored))}
	for i := range stored {
		if page.Steps[i], err = a.step(at.JobID, &stored[i]); err != nil {
			return err
		}
	}
	if more {
		page.Next = &stored[len(stored)-1].Name
	}
	return edge.Answer(c, http.StatusOK, page, pullwire.Unescaped)
}

// step shows a stored step. A handler must not run it again because its result cannot be opened.
func (a *API) step(job uuid.UUID, s *waitstore.Step) (step, error) {
	result, err := a.Sealer.Open(sealing.OfStep(job, s.Name), json.RawMessage(s.Sealed))
	if err != nil {
		return step{}, apierror.New(apierror.Unavailable, "the result of step %q is sealed, and cannot be opened", s.Name)
	}
	return step{
		Name: s.Name, Result: result, Until: jobview.UTC(s.Until), Attempt: s.Attempt, TookMs: s.TookMs,
		SavedAt: s.SavedAt.UTC(),
	}, nil
}
