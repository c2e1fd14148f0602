// Package callbacks serves POST /api/jobs/callback, by which outside systems report on waiting attempts.
package callbacks

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/changes"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/publishbuffer"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/callbackstore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// API is the endpoint of callbacks.
type API struct {
	Store     *jobstore.Store
	Callbacks *callbackstore.Store
	Keys      *webhook.CallbackKeys
	Hub       *changes.Hub
	Outgoing  *publishbuffer.Buffer
	Limits    *edge.Limits
	Sealer    *sealing.Sealer

	OpenAliases bool // a callback by an alias needs neither attempt nor secret
}

type callbackBody struct {
	JobID   uuid.UUID `json:"jobId"`
	Attempt int       `json:"attempt"`
}

// Receive is POST /api/jobs/callback. Who cannot say whose word it is learns nothing of any job: whose secret it must
// be follows from the body, and no row is read before.
func (a *API) Receive(c *gin.Context) error {
	proved := c.GetHeader(edge.CallbackSecretHeader) != "" || c.GetHeader(edge.CallbackSignatureHeader) != ""
	if !proved && !a.openCallback(c) {
		return errNoCallbackSecret
	}
	if err := edge.RequireJSON(c); err != nil {
		return err
	}
	body, release, err := a.Limits.ReadUnknownSender(c, apibody.MaxCallbackBytes)
	if err != nil {
		return err
	}
	defer release()
	if body, err = a.withAttempt(c, body); err != nil {
		return err
	}
	said, wrong := apibody.DecodeCallback(body)
	signedID, known := a.knows(c.Request.Header, body, said)
	release()
	if proved && !known {
		return a.Limits.CountFailure(c, errNoCallbackSecret)
	}
	if err := edge.LoadOf(c).Take(c, int64(len(body))); err != nil {
		return err
	}
	if wrong != nil {
		return wrong
	}
	if err := a.Limits.AllowProgress(said); err != nil {
		return edge.OfJob(said.JobID, err)
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	taken, err := a.Callbacks.KeepAs(ctx, said, a.seal(said), signedID)
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
		a.Outgoing.Add([]jobevent.Item{e})
	}
	if said.Status == apibody.CallbackProgress {
		a.Hub.Announce(apidb.ChangeProgress, said.JobID)
	}
	c.JSON(http.StatusOK, callbackBody{JobID: said.JobID, Attempt: said.Attempt})
	return nil
}

var errNoCallbackSecret = apierror.New(apierror.Unauthorized,
	"a callback needs the secret of its jobId and attempt in %s, or its signature", edge.CallbackSecretHeader)

// knows reports whether a callback comes from somebody who has the secret of its attempt, or one of the installation's
// own. signedID is the id of a message that is known by its signature.
func (a *API) knows(h http.Header, body []byte, said apibody.Callback) (signedID string, known bool) {
	token := jobevent.AttemptToken(said.JobID, said.Attempt)
	if given := h.Get(edge.CallbackSecretHeader); given != "" && a.Keys.CheckSecret(token, given) {
		return "", true
	}
	id, err := a.Keys.Verify(token, h, body, time.Now())
	return id, err == nil
}

// seal returns what is kept of a callback, as a worker would have said it.
func (a *API) seal(said apibody.Callback) apibody.Callback {
	if a.Sealer == nil {
		return said
	}
	said.Output = a.Sealer.Seal(sealing.OfAttempt(said.JobID, said.Attempt, sealing.Output), said.Output)
	said.Message = a.Sealer.SealText(sealing.OfJob(said.JobID, sealing.Message), jobevent.CleanMessage(said.Message))
	said.Progress.Message = a.Sealer.SealText(
		sealing.OfAttempt(said.JobID, said.Attempt, sealing.Progress), said.Progress.Message)
	return said
}
