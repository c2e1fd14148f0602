package callbacks

import (
	"encoding/json"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/aliases"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
)

// openCallback reports whether a callback needs neither attempt nor secret.
func (a *API) openCallback(c *gin.Context) bool { return aliases.Used(c) && a.OpenAliases }

// withAttempt adds the last attempt of the job to a callback without one.
func (a *API) withAttempt(c *gin.Context, body []byte) ([]byte, error) {
	var callback map[string]json.RawMessage
	var id uuid.UUID
	if !a.openCallback(c) || json.Unmarshal(body, &callback) != nil || callback["attempt"] != nil ||
		json.Unmarshal(callback["jobId"], &id) != nil {
		return body, nil
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	job, err := a.Store.Job(ctx, apidb.Everyone, id)
	if err != nil {
		return nil, edge.OfJob(id, err)
	}
	callback["attempt"] = strconv.AppendInt(nil, int64(max(job.Attempt, 1)), 10)
	changed, err := json.Marshal(callback)
	if err != nil || len(changed) > apibody.MaxCallbackBytes {
		return body, nil //nolint:nilerr // the decoder returns the error
	}
	return changed, nil
}
