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

// withAttempt gives a callback without an attempt the last one of its job.
func (a *API) withAttempt(c *gin.Context, body []byte) ([]byte, error) {
	var said map[string]json.RawMessage
	var id uuid.UUID
	if !a.openCallback(c) || json.Unmarshal(body, &said) != nil || said["attempt"] != nil ||
		json.Unmarshal(said["jobId"], &id) != nil {
		return body, nil
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	job, err := a.Store.Job(ctx, apidb.Everyone, id)
	if err != nil {
		return nil, edge.OfJob(id, err)
	}
	said["attempt"] = strconv.AppendInt(nil, int64(max(job.Attempt, 1)), 10)
	changed, err := json.Marshal(said)
	if err != nil || len(changed) > apibody.MaxCallbackBytes {
		return body, nil //nolint:nilerr // the decoder says what is wrong with it
	}
	return changed, nil
}
