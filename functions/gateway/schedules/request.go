package schedules

import (
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/jobtypes"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

const maxBytes = jobspec.MaxJobBytes + 16<<10 // a job, and the other members of a schedule

// maker returns the owner of a schedule that a request makes or replaces: the installation may name another owner.
func maker(c *gin.Context, named *string) apidb.Owner {
	owner := edge.MakerOf(c)
	if named != nil && !owner.IsEveryone() && edge.OwnerOf(c).Sees(*named) {
		return apidb.OwnerOf(*named)
	}
	return owner
}

// read reads the schedule in a request, which belongs to an owner.
func (a *API) read(c *gin.Context, owner apidb.Owner) (apibody.Schedule, error) {
	asked, err := edge.ReadAs(c, maxBytes, apibody.DecodeSchedule)
	if err != nil {
		return asked, err
	}
	err = a.check(&asked, owner, a.Payloads.Check(c.Request.Context()))
	return asked, err
}

// check gives a schedule to its owner, and checks what Decode cannot know.
func (a *API) check(asked *apibody.Schedule, owner apidb.Owner, payload jobtypes.Check) error {
	if err := asked.Belong(owner.Names(asked.Job.OwnerID)); err != nil { // sealed values are bound to the owner
		return err
	}
	if err := asked.Validate(a.Rules); err != nil {
		return err
	}
	if err := edge.CheckFairnessKey(owner, asked.Job.FairnessKey); err != nil {
		return err
	}
	return apibody.OfJob(payload(&asked.Job))
}

// fires refuses a schedule that ends before its first tick.
func fires(asked apibody.Schedule) error {
	from := time.Now()
	if asked.StartAt != nil && asked.StartAt.After(from) {
		from = *asked.StartAt
	}
	spec, err := asked.Spec(from)
	if err != nil {
		return badSchedule("cron", err.Error())
	}
	if first := spec.Next(from.Add(-time.Nanosecond)); asked.EndAt != nil && first.After(*asked.EndAt) {
		return badSchedule("endAt", "is before the first tick, "+first.Format(time.RFC3339))
	}
	return nil
}

func badSchedule(path, message string) error {
	return apierror.Invalid("schedule", path, message)
}

// scheduleKey returns the key of the schedule in the path, and refuses unknown parameters.
func scheduleKey(c *gin.Context) (apidb.Key, error) {
	q := edge.NewQuery(c)
	key := q.Named(c)
	if err := q.Close("ownerId"); err != nil {
		return key, err
	}
	if !apibody.IsScheduleName(key.Name) {
		return key, schedulestore.ErrNone
	}
	return key, nil
}
