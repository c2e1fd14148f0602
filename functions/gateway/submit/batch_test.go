package submit

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

func TestBatchResponseEqualsJSONMarshal(t *testing.T) {
	t.Parallel()
	id, about := uuid.New(), uuid.New()
	for _, results := range [][]batchResult{
		{},
		{{Status: 202, JobID: &id}},
		{{Status: 200, JobID: &id}, {Status: 400, Error: &edge.ErrorBody{
			Timestamp: time.Now().UTC(), Status: 400, ErrorCode: apierror.InvalidJobRequest, Message: `a "quoted" <ü>`,
			JobID: &about, TraceID: id, Details: []apierror.Detail{{Path: "jobs[1]", Message: "is odd"}},
		}}, {Status: 202, JobID: &about}},
	} {
		body := batchBody{Results: results}
		want, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := body.json(); err != nil || string(got) != string(want) {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
}
