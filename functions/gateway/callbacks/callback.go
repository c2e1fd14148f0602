// Package callbacks serves POST /api/jobs/callback, by which outside systems report on attempts.
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

// API has the endpoint of callbacks.
type API struct {
	Store     *jobstore.Store
	Callbacks *callbackstore.Store
	Keys      *webhook.CallbackKeys
	Hub       *changes.Hub
	Outgoing  *publishbuffer.Buffer
	Limits    *edge.Limits
	Sealer    *sealing.Sealer

	OpenAliases bool // a callback to an alias needs neither attempt nor secret
}

type callbackBody struct {
	JobID   uuid.UUID `json:"jobId"`
	Attempt int       `json:"attempt"`
}

// Receive is POST /api/jobs/callback. A sender without a valid secret learns nothing about any job: the attempt's
// secret is derived from the ids in the body, and no row is read before the secret is checked.
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
	callback, wrong := apibody.DecodeCallback(body)
	signedID, known := a.verify(c.Request.Header, body, callback)
	release()
	if proved && !known {
		return a.Limits.CountFailure(c, errNoCallbackSecret)
	}
	if err := edge.LoadOf(c).Take(int64(len(body))); err != nil {
		return err
	}
	if wrong != nil {
		return wrong
	}
	if err := a.Limits.AllowProgress(callback); err != nil {
		return edge.OfJob(callback.JobID, err)
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	taken, err := a.Callbacks.KeepAs(ctx, callback, a.seal(callback), signedID)
	if err != nil {
		return edge.OfJob(callback.JobID, err)
	}
	if taken.Before {
		c.Header("Idempotent-Replayed", "true")
	}
	if taken.Callback != nil {
		e, err := apievent.Callback(*taken.Callback)
		if err != nil {
			return err
		}
		telemetry.SetHere(c.Request.Context(), &e, jobevent.SpanID(jobevent.AttemptToken(callback.JobID, callback.Attempt)))
		a.Outgoing.Add([]jobevent.Item{e})
	}
	if callback.Status == apibody.CallbackProgress {
		a.Hub.Announce(apidb.ChangeProgress, callback.JobID)
	}
	return edge.Answer(c, http.StatusOK, callbackBody{JobID: callback.JobID, Attempt: callback.Attempt})
}

var errNoCallbackSecret = apierror.New(apierror.Unauthorized,
	"a callback needs the secret of its jobId and attempt in %s, or its signature", edge.CallbackSecretHeader)

// verify reports whether a callback has the secret or a valid signature of its attempt, or of the installation.
// signedID is the id of a signed message.
func (a *API) verify(h http.Header, body []byte, callback apibody.Callback) (signedID string, known bool) {
	token := jobevent.AttemptToken(callback.JobID, callback.Attempt)
	if given := h.Get(edge.CallbackSecretHeader); given != "" && a.Keys.CheckSecret(token, given) {
		return "", true
	}
	id, err := a.Keys.Verify(token, h, body, time.Now())
	return id, err == nil
}

// seal returns the callback in the form in which it is stored, sealed as a worker would seal an outcome.
func (a *API) seal(callback apibody.Callback) apibody.Callback {
	if a.Sealer == nil {
		return callback
	}
	callback.Output = a.Sealer.Seal(sealing.OfAttempt(callback.JobID, callback.Attempt, sealing.Output), callback.Output)
	message := jobevent.CleanMessage(callback.Message)
	callback.Message = a.Sealer.SealText(sealing.OfJob(callback.JobID, sealing.Message), message)
	callback.Progress.Message = a.Sealer.SealText(
		sealing.OfAttempt(callback.JobID, callback.Attempt, sealing.Progress), callback.Progress.Message)
	return callback
}
