package monitor

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

type sharesBody struct {
	Queue      string         `json:"queue"`
	At         time.Time      `json:"at"`
	Complete   bool           `json:"complete"`
	Keys       int            `json:"keys"`
	Waiting    int64          `json:"waiting"`
	Running    int64          `json:"running"`
	Shares     []client.Share `json:"shares"`
	NextCursor *string        `json:"nextCursor"`
}

// GetShares is GET /api/queues/{queue}/shares.
// Why no index serves this: docs/decisions/dispatch.md#shares-are-counted-when-they-are-asked-for
func (a *API) GetShares(c *gin.Context) error {
	queue := c.Param("queue")
	if wrong := jobspec.WrongQueue(queue); wrong != "" {
		return edge.Invalid("queue", wrong)
	}
	q := edge.NewQuery(c)
	after, limit := q.KeyPlace("cursor"), q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit)
	wanted := strings.ToLower(q.Label("q"))
	if err := q.Close("q", "cursor", "limit"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	owner := edge.OwnerOf(c)
	counts, err := a.Stats.Keys(ctx, owner, queue)
	if err != nil {
		return err
	}
	controlOf, err := a.Controls.OfKeys(ctx)
	if err != nil {
		return err
	}
	body := sharesBody{
		Queue: queue, At: counts.At.UTC(), Complete: counts.Complete, Keys: len(counts.Keys), Shares: []client.Share{},
	}
	weights := 0 // of the keys that compete
	for _, key := range counts.Keys {
		body.Waiting += key.Waiting
		body.Running += key.Running
		if control := controlOf(key.Key); competes(key, control) {
			weights += control.Weight
		}
	}
	more := false
	for i, key := range counts.Keys {
		if after != nil && after.Compare(key) >= 0 || !strings.Contains(counts.Lower[i], wanted) {
			continue
		}
		if more = len(body.Shares) == limit; more {
			break
		}
		control := controlOf(key.Key)
		share := newShare(key, control)
		if owner.IsEveryone() {
			share.DueShare, share.RunningShare = new(float64), new(float64)
			if competes(key, control) {
				*share.DueShare = float64(control.Weight) / float64(weights)
			}
			if body.Running > 0 {
				*share.RunningShare = float64(key.Running) / float64(body.Running)
			}
		}
		body.Shares = append(body.Shares, share)
	}
	body.NextCursor = edge.NextCursor(more, func() string {
		last := body.Shares[limit-1]
		return fmt.Sprintf("%d:%s", last.Waiting, last.FairnessKey)
	})
	return edge.Answer(c, http.StatusOK, body)
}

// competes reports whether the next starts of the queue may be the key's.
func competes(key statstore.KeyCount, control controlstore.Control) bool {
	return key.Waiting > 0 && !control.Stops()
}

func newShare(key statstore.KeyCount, control controlstore.Control) client.Share {
	return client.Share{
		FairnessKey: key.Key, Weight: control.Weight, Waiting: key.Waiting, Running: key.Running, Paused: control.Stops(),
		MaxRunning: control.MaxRunning, StartsPerSecond: control.StartsPerSecond,
	}
}
