package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

type operation struct {
	OperationID uuid.UUID
	Command     string
	RunAt       *time.Time
	Filter      json.RawMessage
	Jobs        *int
	Status      string
	FinishedAt  *time.Time
	Progress    struct {
		Matched, Asked, Applied, Refused, Skipped int
		Walked                                    bool
	}
	Reasons []struct {
		Reason string
		Jobs   int
	}
	SkippedJobs []struct {
		JobID  uuid.UUID
		Reason string
	}
}

func (h *fixture) operate(body string) (op operation) {
	h.t.Helper()
	r := h.post("/api/operations", body).want(http.StatusAccepted)
	if r.into(&op); r.header.Get("Location") != "/api/operations/"+op.OperationID.String() {
		h.t.Errorf("it is at %s", r.header.Get("Location"))
	}
	return op
}

func (h *fixture) operation(id uuid.UUID) (op operation) {
	h.t.Helper()
	h.get("/api/operations/" + id.String()).want(http.StatusOK).into(&op)
	return op
}

// work does a part of an operation, as the function bulk does.
func (h *fixture) work(id uuid.UUID) {
	h.t.Helper()
	if _, _, err := h.store.Operations.Operate(h.t.Context(), id); err != nil {
		h.t.Fatal(err)
	}
}

func TestOperationIsStoredShownAndListed(t *testing.T) {
	t.Parallel()
	h := open(t)
	failed := h.submit(plainJob)
	h.scheduler(failed, 1, jobstate.Failed, nil)
	running := h.submit(plainJob)
	h.scheduler(running, 1, jobstate.Running, nil)
	byList := h.operate(fmt.Sprintf(`{"command": "retry", "jobIds": [%q, %q]}`, failed, strings.ToUpper(running.String())))
	if byList.Status != "RUNNING" || byList.Command != "retry" || *byList.Jobs != 2 || string(byList.Filter) != "null" {
		t.Errorf("accepted as %+v", byList)
	}
	byFilter := h.operate(`{"command": "reschedule", "runAt": "2035-11-22T08:00:00Z", "filter": {"status": ["PENDING"], "type": "MAIL", "queue": "mail",
		"tag": "t", "since": "2026-01-01T00:00:00Z", "until": "2036-01-01T00:00:00Z", "orderingKey": "k", "ownerId": "o"}}`)
	if byFilter.Jobs != nil || byFilter.RunAt == nil || !strings.Contains(string(byFilter.Filter), `"orderingKey":"k"`) {
		t.Errorf("accepted as %+v", byFilter)
	}
	h.operate(`{"command": "reschedule", "delayMs": 1000, "filter": {"all": true}}`)
	h.work(byList.OperationID)
	got := h.operation(byList.OperationID)
	if p := got.Progress; p.Matched != 2 || p.Asked != 1 || p.Skipped != 1 || !p.Walked || got.FinishedAt != nil ||
		len(got.SkippedJobs) != 1 || got.SkippedJobs[0].JobID != running || got.SkippedJobs[0].Reason != "the job is RUNNING" || got.Reasons[0].Jobs != 1 {
		t.Errorf("under way it is %+v", got)
	}
	var page struct {
		Operations []operation
		NextCursor *string
	}
	seen := 0
	for cursor := ""; ; cursor = "&cursor=" + *page.NextCursor {
		h.get("/api/operations?limit=2" + cursor).want(http.StatusOK).into(&page)
		if seen += len(page.Operations); page.NextCursor == nil {
			break
		}
	}
	if seen != 3 || page.Operations[len(page.Operations)-1].OperationID != byList.OperationID {
		t.Errorf("listed %d, at last %+v", seen, page)
	}
}

func TestRequestThatWaitsForAnOperationGetsItsEnd(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.operate(`{"command": "cancel", "jobIds": ["` + uuid.NewString() + `"]}`).OperationID
	if r := h.get("/api/operations/" + id.String() + "?wait=50ms"); r.status != http.StatusOK {
		t.Errorf("answered %d", r.status)
	}
	ended := make(chan operation, 1)
	go func() {
		var op operation
		h.get("/api/operations/" + id.String() + "?wait=60s").into(&op)
		ended <- op
	}()
	h.work(id)
	select {
	case op := <-ended:
		if op.Status != "COMPLETED" || op.FinishedAt == nil {
			t.Errorf("it is %+v", op)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the waiting request got no answer")
	}
	h.post("/api/operations/"+id.String()+"/abort", "").wantError(apierror.InvalidStateTransition)
}

func TestAnOperationIsAborted(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.operate(`{"command": "cancel", "filter": {"all": true}}`).OperationID
	var op operation
	for range 2 {
		if h.post("/api/operations/"+id.String()+"/abort", "").want(http.StatusAccepted).into(&op); op.Status != "ABORTING" {
			t.Errorf("it is %+v", op)
		}
	}
	h.work(id)
	if got := h.operation(id); got.Status != "ABORTED" || got.FinishedAt == nil || got.Progress.Walked {
		t.Errorf("it is %+v", got)
	}
	h.post("/api/operations/"+id.String()+"/abort", "").want(http.StatusAccepted)
}

func TestTheSameKeyIsTheSameOperation(t *testing.T) {
	t.Parallel()
	h := open(t)
	a, b := uuid.NewString(), uuid.NewString()
	first := h.operate(`{"command": "cancel", "jobIds": ["` + a + `", "` + b + `"], "idempotencyKey": "k"}`)
	r := h.post("/api/operations", `{"idempotencyKey": "k", "jobIds": ["`+b+`", "`+a+`"], "command": "cancel"}`).want(http.StatusOK)
	var again operation
	if r.into(&again); again.OperationID != first.OperationID || r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again it is %+v", again)
	}
	h.post("/api/operations", `{"idempotencyKey": "k", "jobIds": ["`+b+`"], "command": "cancel"}`).wantError(apierror.IdempotencyConflict)
	h.operate(`{"command": "retry", "filter": {"status": ["FAILED", "CANCELLED"]}, "idempotencyKey": "f"}`)
	h.post("/api/operations", `{"command": "retry", "filter": {"status": ["CANCELLED", "FAILED"]}, "idempotencyKey": "f"}`).want(http.StatusOK)
}

func TestInvalidOperationIsRefused(t *testing.T) {
	t.Parallel()
	h := openCuttable(t, func(*gateway.Config) {})
	for body, at := range map[string]string{
		`{"command": "cancel", "filter": {}}`:                                                    "filter",
		`{"command": "cancel", "filter": {"all": true, "type": "A"}}`:                            "filter.all",
		`{"command": "cancel", "filter": {"status": ["HAPPY"]}}`:                                 "filter.status[0]",
		`{"command": "cancel", "filter": {"x": 1}}`:                                              "filter.x",
		`{"command": "cancel", "jobIds": ["x"]}`:                                                 "jobIds[0]",
		`{"command": "cancel"}`:                                                                  "filter",
		`{"command": "pause", "filter": {"all": true}}`:                                          "command",
		`{"command": "reschedule", "filter": {"all": true}}`:                                     "runAt",
		`{"command": "cancel", "filter": {"all": true}, "delayMs": 1}`:                           "runAt",
		`{"filter": {"all": true}}`:                                                              "command",
		`{"command": "cancel", "filter": {"all": true}, "jobIds": ["` + uuid.NewString() + `"]}`: "filter",
		`{"command": "cancel", "filter": {"all": true}, "idempotencyKey": ""}`:                   "idempotencyKey",
		`{"command": "cancel", "jobIds": [` + manyIDs(10_001) + `]}`:                             "jobIds",
	} {
		h.post("/api/operations", body).wantError(apierror.InvalidJobRequest, at)
	}
	var kept int
	if h.sql("select count(*) from operations", &kept); kept != 0 {
		t.Errorf("%d are kept", kept)
	}
	for _, none := range []string{uuid.NewString(), "x"} {
		h.get("/api/operations/" + none).wantError(apierror.NotFound)
		h.post("/api/operations/"+none+"/abort", "").wantError(apierror.NotFound)
	}
	h.get("/api/operations/"+uuid.NewString()+"?wait=1h").wantError(apierror.InvalidJobRequest, "wait")
	h.get("/api/operations?status=RUNNING").wantError(apierror.InvalidJobRequest, "status")
	h.cut()
	for range 2 {
		h.post("/api/operations", `{"command": "cancel", "filter": {"all": true}}`).wantError(apierror.Unavailable)
	}
}

func manyIDs(n int) string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = `"` + uuid.NewString() + `"`
	}
	return strings.Join(ids, ",")
}

// The decoder accepts exactly the bodies that match the contract.
func TestTheContractAndTheDecodersOfCommandsAgree(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine: there is nothing to race")
	}
	schemas := loadContract(t).Components.Schemas
	hold := func(schema, body string, byCode error) {
		t.Helper()
		var value any
		if err := json.Unmarshal([]byte(body), &value); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		byContract := schemas[schema].Value.VisitJSON(value, openapi3.EnableJSONSchema2020(), openapi3.VisitAsRequest(),
			openapi3.EnableFormatValidation())
		if (byContract == nil) != (byCode == nil) {
			t.Errorf("%.200s\nby the contract: %v\nby the code: %v", body, byContract, byCode)
		}
	}
	for _, body := range []string{
		`{}`, `{"runAt": "2026-11-22T08:00:00Z"}`, `{"delayMs": 0}`, `{"delayMs": 315360000001}`, `{"runAt": 1}`, `null`,
		`{"runAt": "2026-11-22T08:00:00Z", "delayMs": 0}`, `{"delayMs": 0, "x": 0}`,
	} {
		_, err := apibody.DecodeWhen([]byte(body))
		hold("When", body, err)
	}
	id := `"` + uuid.NewString() + `"`
	for _, fields := range []string{
		``, `"jobIds": [` + id + `]`, `"jobIds": [` + id + `, ` + id + `]`, `"jobIds": []`, `"jobIds": ["x"]`, `"jobIds": null`,
		`"filter": {"all": true}`, `"filter": {"all": false}`, `"filter": {"all": true, "tag": "a"}`, `"filter": {}`, `"filter": []`,
		`"filter": {"status": ["FAILED", "CANCELLED"]}`, `"filter": {"status": []}`, `"filter": {"status": ["FAILED", "FAILED"]}`,
		`"filter": {"status": "FAILED"}`, `"filter": {"type": "A", "queue": "a", "tag": "t", "ownerId": "o", "orderingKey": "k"}`,
		`"filter": {"queue": "A"}`, `"filter": {"type": "1"}`, `"filter": {"tag": ""}`, `"filter": {"since": "now"}`,
		`"filter": {"since": "2026-11-22T08:00:00Z", "until": "2026-11-22T08:00:00Z"}`, `"filter": {"all": true}, "x": 1`,
		`"filter": {"all": true}, "jobIds": [` + id + `]`, `"filter": {"all": true}, "idempotencyKey": "` + strings.Repeat("ü", 256) + `"`,
		`"filter": {"all": true}, "runAt": "2026-11-22T08:00:00Z"`, `"filter": {"all": true}, "delayMs": 1`,
		`"filter": {"all": true}, "delayMs": 1, "runAt": "2026-11-22T08:00:00Z"`,
	} {
		for _, command := range []string{"cancel", "reschedule", "delete", "report"} {
			body := strings.TrimSuffix(`{"command": "`+command+`", `+fields, ", ") + "}"
			_, err := apibody.DecodeOperation([]byte(body))
			hold("OperationRequest", body, err)
		}
	}
}
