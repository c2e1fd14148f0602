package submit

import (
	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// Call is the request of a job that a handler calls.
type Call struct{ req jobspec.Request }

// DecodeCall reads the request of a call. What would let the child wait for its parent is refused: two jobs that wait
// for each other would do so for ever.
func (a *API) DecodeCall(body []byte) (Call, error) {
	req, err := jobspec.Decode(body)
	if err != nil {
		return Call{}, err
	}
	for _, member := range []struct {
		name  string
		given bool
	}{
		{"orderingKey", req.OrderingKey != ""}, {"after", len(req.After) > 0}, {"forEach", req.ForEach != nil},
		{"unique", req.Unique != nil}, {"debounce", req.Debounce != nil}, {"throttle", req.Throttle != nil},
		{"singleton", req.Singleton != nil}, {"idempotencyKey", req.IdempotencyKey != ""},
	} {
		if member.given {
			return Call{}, edge.Invalid(member.name, "is not for a job that a handler calls and waits for")
		}
	}
	return Call{req}, nil
}

// Child makes the job of a call. It belongs to the parent's owner and trace, and its event identifies the call.
func (a *API) Child(c *gin.Context, call Call, parent waitstore.Parent, source, id string) (jobstore.NewJob, error) {
	by := a.Requester(c)
	by.Owner, by.trace = apidb.OwnerOf(parent.OwnerID), parent.TraceID
	job, err := a.make(call.req, by)
	job.EventSource, job.EventID = source, id
	return job, err
}
