package gateway

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

type callbackBody struct {
	JobID   uuid.UUID `json:"jobId"`
	Attempt int       `json:"attempt"`
}

// callback is POST /api/jobs/callback. Who cannot say whose word it is learns nothing of any job: whose secret it must
// be follows from the body, and no row is read before.
func (f *Function) callback(c *gin.Context) error {
	proved := c.GetHeader(edge.CallbackSecretHeader) != "" || c.GetHeader(edge.CallbackSignatureHeader) != ""
	if !proved && !f.openCallback(c) {
		return errNoCallbackSecret
	}
	if err := edge.RequireJSON(c); err != nil {
		return err
	}
	body, release, err := f.limits.ReadUnknownSender(c, jobspec.MaxCallbackBytes)
	if err != nil {
		return err
	}
	defer release()
	if body, err = f.withAttempt(c, body); err != nil {
		return err
	}
	said, wrong := jobspec.DecodeCallback(body)
	signedID, known := f.knows(c.Request.Header, body, said)
	release()
	if proved && !known {
		return f.limits.CountFailure(c, errNoCallbackSecret)
	}
	if err := edge.LoadOf(c).Take(c, int64(len(body))); err != nil {
		return err
	}
	if wrong != nil {
		return wrong
	}
	if err := f.limits.AllowProgress(said); err != nil {
		return edge.OfJob(said.JobID, err)
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	taken, err := f.store.callbacks.KeepAs(ctx, said, f.sealCallback(said), signedID)
	if err != nil {
		return edge.OfJob(said.JobID, err)
	}
	if taken.Before {
		c.Header("Idempotent-Replayed", "true")
	}
	if taken.Callback != nil {
		e, err := apievent.Callback(*taken.Callback)
		if err != nil {
			return err
		}
		telemetry.SetHere(c.Request.Context(), &e, jobevent.SpanID(jobevent.AttemptToken(said.JobID, said.Attempt)))
		f.outgoing.Add([]jobevent.Item{e})
	}
	if said.Status == jobspec.CallbackProgress {
		f.hub.accept(apidb.ChangeProgress, said.JobID)
	}
	c.JSON(http.StatusOK, callbackBody{JobID: said.JobID, Attempt: said.Attempt})
	return nil
}

var errNoCallbackSecret = apierror.New(apierror.Unauthorized,
	"a callback needs the secret of its jobId and attempt in %s, or its signature", edge.CallbackSecretHeader)

// knows says whether a callback comes from somebody who has the secret of its attempt, or one of the installation's
// own. signedID is the id of a message that is known by its signature.
func (f *Function) knows(h http.Header, body []byte, said jobspec.Callback) (signedID string, known bool) {
	token := jobevent.AttemptToken(said.JobID, said.Attempt)
	if given := h.Get(edge.CallbackSecretHeader); given != "" && f.callbackKeys.CheckSecret(token, given) {
		return "", true
	}
	id, err := f.callbackKeys.Verify(token, h, body, time.Now())
	return id, err == nil
}
