package schedules

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/cronspec"
)

type timesBody struct {
	Upcoming []time.Time `json:"upcoming"`
}

// ListTimes is GET /api/schedule-times: when a schedule with a cron expression and a time zone would fire. It reads
// nothing.
func (a *API) ListTimes(c *gin.Context) error {
	q := edge.NewQuery(c)
	expression, name := q.One("cron"), q.One("timeZone")
	from, end := time.Now(), q.Instant("endAt")
	if start := q.Instant("startAt"); start != nil && start.After(from) {
		from = *start
	}
	if name == "" {
		name = "UTC"
	}
	var spec cronspec.Spec
	zone, err := cronspec.Zone(name)
	if err != nil {
		q.Bad("timeZone", "%s", err)
	} else if expression != "" {
		if spec, err = cronspec.Parse(expression, zone, from); err != nil {
			q.Bad("cron", "%s", err)
		}
	}
	if err := q.Close("cron", "timeZone", "startAt", "endAt"); err != nil {
		return err
	}
	if expression == "" {
		return badSchedule("cron", "is required")
	}
	body := timesBody{Upcoming: []time.Time{}}
	for next := spec.Next(from.Add(-time.Nanosecond)); len(body.Upcoming) < maxUpcoming; next = spec.Next(next) {
		if next.IsZero() || end != nil && next.After(*end) {
			break
		}
		body.Upcoming = append(body.Upcoming, next.UTC())
	}
	return edge.Answer(c, http.StatusOK, body)
}
