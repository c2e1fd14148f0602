package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

type flowView struct {
	FlowID        uuid.UUID
	Name          *string
	Status        string
	Percent       *int
	Total         *int
	Counts        map[string]int
	FollowUpJobID *uuid.UUID
	OperationID   uuid.UUID
}

type madeFlow struct {
	FlowID uuid.UUID
	Jobs   map[string]uuid.UUID
}

type flowGraph struct {
	flowView

	Run         int
	EarlierRuns []struct{ Status string }
	Jobs        map[string]struct {
		JobID   uuid.UUID
		JobType string
		Status  *string
		After   []struct {
			Name, On string
			JobID    uuid.UUID
		}
		ForEach  *struct{ Path string }
		Elements *struct {
			Total  int
			Counts map[string]int
		}
		RunAgainOf uuid.UUID
	}
}

// flow submits a flow.
func (c *client) flow(body string) (f madeFlow) {
	c.t.Helper()
	r := c.post("/api/flows", body).want(http.StatusCreated)
	if r.into(&f); r.header.Get("Location") != "/api/flows/"+f.FlowID.String() {
		c.t.Errorf("it is at %s", r.header.Get("Location"))
	}
	return f
}

func (c *client) readFlow(id uuid.UUID, query string) (f flowGraph) {
	c.t.Helper()
	c.get("/api/flows/" + id.String() + query).want(http.StatusOK).into(&f)
	return f
}

const diamond = `{"name": "diamond", "jobs": {
	"a": {"jobType": "MAIL", "payload": 1},
	"b": {"jobType": "MAIL", "payload": {"n": {"$output": "a", "path": "$.n[0]"}}, "after": ["a"]},
	"c": {"jobType": "MAIL", "payload": 1, "after": [{"name": "a", "on": "failed"}]},
	"d": {"jobType": "MAIL", "payload": [{"$output": "b", "default": 7}], "after": [{"name": "b", "on": "ended"}, "c"], "onDependencyFailure": "run"}
}}`

func TestAFlowIsAcceptedWithItsGraph(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.flow(diamond)
	if len(made.Jobs) != 4 {
		t.Fatalf("it has the jobs %v", made.Jobs)
	}
	f := h.readFlow(made.FlowID, "")
	if f.Status != "RUNNING" || *f.Name != "diamond" || *f.Total != 4 || *f.Percent != 0 || f.Counts["PENDING"] != 4 {
		t.Errorf("it shows %+v", f.flowView)
	}
	for name, want := range map[string]string{"a": "", "b": "a completed", "c": "a failed", "d": "b ended, c ended"} {
		job := f.Jobs[name]
		var edges []string
		for _, e := range job.After {
			if edges = append(edges, e.Name+" "+e.On); e.JobID != made.Jobs[e.Name] {
				t.Errorf("%s is job %s", e.Name, e.JobID)
			}
		}
		if got := strings.Join(edges, ", "); got != want || job.JobID != made.Jobs[name] || job.JobType != "MAIL" || *job.Status != "PENDING" {
			t.Errorf("job %s is %+v", name, job)
		}
	}
	created := map[uuid.UUID]jobevent.Created{}
	for range 4 {
		e, err := jobevent.Decode[jobevent.Created](h.broker.next(t))
		if err != nil {
			t.Fatal(err)
		}
		created[e.JobID] = e
	}
	a, d := made.Jobs["a"], created[made.Jobs["d"]]
	if !slices.Equal(d.Conditions, []jobstate.Condition{jobstate.WhenEnded, jobstate.WhenEnded}) ||
		!slices.Equal(d.Inputs, []jobevent.Input{{Name: "b", JobID: made.Jobs["b"]}}) {
		t.Errorf("published is %+v", d)
	}
	if b := created[made.Jobs["b"]]; b.Conditions != nil || !slices.Equal(b.After, []uuid.UUID{a}) {
		t.Errorf("published is %+v", b)
	}
	var job struct {
		BatchID    uuid.UUID
		After      []uuid.UUID
		Conditions map[uuid.UUID]string
		BlockedBy  []jobevent.Block
		Payload    json.RawMessage
	}
	h.get("/api/jobs/" + made.Jobs["c"].String()).want(http.StatusOK).into(&job)
	if job.BatchID != made.FlowID || job.Conditions[a] != "failed" || len(job.BlockedBy) != 1 || job.BlockedBy[0].ID != a.String() {
		t.Errorf("a job shows %+v", job)
	}
	h.get("/api/jobs/" + made.Jobs["b"].String()).want(http.StatusOK).into(&job)
	if string(job.Payload) != `{"n":{"$output":"a","path":"$.n[0]"}}` && !strings.Contains(string(job.Payload), "$output") {
		t.Errorf("the payload is shown as %s", job.Payload)
	}
}

func TestAFlowEndsWithItsJobs(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.flow(`{"onComplete": {"jobType": "MAIL", "payload": {"$batch": "summary"}}, ` + diamond[1:])
	first := h.get("/api/flows/" + made.FlowID.String()).want(http.StatusOK)
	h.get("/api/flows/"+made.FlowID.String(), "If-None-Match", first.header.Get("ETag")).want(http.StatusNotModified)
	ended := make(chan flowGraph, 1)
	go func() { ended <- h.readFlow(made.FlowID, "?wait=30s") }()
	for name, end := range map[string]jobstate.Status{
		"a": jobstate.Completed, "b": jobstate.Completed, "c": jobstate.Cancelled, "d": jobstate.Completed,
	} {
		h.scheduler(made.Jobs[name], 1, end, nil)
	}
	h.sweep()
	f := <-ended
	if f.Status != "COMPLETED" || *f.Percent != 100 || f.FollowUpJobID == nil || *f.Jobs["c"].Status != "CANCELLED" {
		t.Errorf("it has ended as %+v", f)
	}
	h.post("/api/flows/"+made.FlowID.String()+"/cancel", "").wantError(apierror.InvalidStateTransition)
	h.post("/api/flows/"+made.FlowID.String()+"/retry", "").wantError(apierror.InvalidStateTransition)
	h.post("/api/batches/"+made.FlowID.String()+"/retry", "").wantError(apierror.InvalidStateTransition)
}

func TestAFlowIsCancelledAsAWhole(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.flow(diamond)
	var op flowView
	r := h.post("/api/flows/"+made.FlowID.String()+"/cancel", "").want(http.StatusAccepted)
	if r.into(&op); op.FlowID != made.FlowID || r.header.Get("Location") != "/api/operations/"+op.OperationID.String() {
		t.Errorf("it is cancelled by %+v", op)
	}
	h.operateAll(t)
	var job struct{ CancelRequestedAt *string }
	for name, id := range made.Jobs {
		if h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job); job.CancelRequestedAt == nil {
			t.Errorf("job %s is not cancelled", name)
		}
	}
}

func TestAFlowIsRetriedAsAWhole(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.flow(`{"onFailure": {"jobType": "MAIL", "payload": 1}, ` + diamond[1:])
	for name, end := range map[string]jobstate.Status{"a": jobstate.Failed, "b": jobstate.Cancelled, "c": jobstate.Failed, "d": jobstate.Completed} {
		h.scheduler(made.Jobs[name], 1, end, nil)
	}
	h.sweep()
	if f := h.readFlow(made.FlowID, ""); f.Status != "FAILED" || f.FollowUpJobID == nil {
		t.Fatalf("it has ended as %+v", f)
	}
	at := "/api/flows/" + made.FlowID.String() + "/retry"
	var kept struct{ Jobs int }
	if h.post(at, "").want(http.StatusAccepted).into(&kept); kept.Jobs != 3 {
		t.Errorf("%d jobs run again", kept.Jobs)
	}
	h.post(at, "").wantError(apierror.InvalidStateTransition)
	if f := h.readFlow(made.FlowID, ""); f.Status != "RUNNING" || f.FollowUpJobID != nil {
		t.Errorf("it goes on as %+v", f)
	}
	h.post("/api/flows/"+made.FlowID.String()+"/cancel", "").want(http.StatusAccepted)
	h.sweep() // begins no retry after the cancel
	h.operateAll(t)
	h.sweep()
	if f := h.readFlow(made.FlowID, ""); f.Status != "FAILED" || f.FollowUpJobID == nil {
		t.Errorf("it has ended again as %+v", f)
	}
}

func TestARepeatedFlowIsTheSame(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.post("/api/flows", diamond, "Idempotency-Key", "k").want(http.StatusCreated)
	var made, again madeFlow
	first.into(&made)
	r := h.post("/api/flows", diamond, "Idempotency-Key", "k").want(http.StatusOK)
	if r.into(&again); again.FlowID != made.FlowID || fmt.Sprint(again.Jobs) != fmt.Sprint(made.Jobs) || r.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("it is %+v, and then %+v", made, again)
	}
	h.post("/api/flows", strings.Replace(diamond, `"payload": 1`, `"payload": 2`, 1), "Idempotency-Key", "k").wantError(apierror.IdempotencyConflict)
	if n := h.rows(); n != 4 {
		t.Errorf("%d jobs are stored", n)
	}
}

func TestABadFlowIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	h := open(t)
	existing := h.post("/api/jobs", `{"jobType": "MAIL", "payload": 1}`).want(http.StatusAccepted).jobID()
	job := func(more string) string { return `{"jobType": "MAIL", "payload": 1` + more + `}` }
	refs := func(ref string) string {
		return `{"jobs": {"a": ` + job("") + `, "b": {"jobType": "MAIL", "payload": {"x": [` + ref + `]}, "after": ["a"]}}}`
	}
	for body, path := range map[string]string{
		`{}`:                                 "jobs",
		`{"jobs": {}}`:                       "jobs",
		`{"jobs": []}`:                       "jobs",
		`{"jobs": {"a b": ` + job("") + `}}`: "jobs[\"a b\"]",
		`{"jobs": {"a": ` + job(`, "after": ["b"]`) + `}}`: "jobs.a.after[0]",
		`{"jobs": {"a": ` + job(`, "after": ["a"]`) + `}}`: "jobs.a.after",
		`{"jobs": {"a": ` + job(`, "after": ["c"]`) + `, "b": ` + job(`, "after": ["a"]`) + `, "c": ` + job(`, "after": ["b"]`) + `}}`: "jobs.a.after",
		`{"jobs": {"a": ` + job("") + `, "b": ` + job(`, "after": ["a", {"name": "a", "on": "failed"}]`) + `}}`:                        "jobs.b.after[1]",
		`{"jobs": {"a": ` + job("") + `, "b": ` + job(`, "after": [{"name": "a", "on": "done"}]`) + `}}`:                               "jobs.b.after[0].on",
		`{"jobs": {"a": ` + job("") + `, "b": ` + job(`, "after": [{"on": "failed"}]`) + `}}`:                                          "jobs.b.after[0]",
		`{"jobs": {"a": ` + job(`, "after": [{"jobId": "`+uuid.NewString()+`"}]`) + `}}`:                                               "jobs.a.after[0]",
		`{"jobs": {"a": ` + job(`, "idempotencyKey": "k"`) + `}}`:                                                                      "jobs.a.idempotencyKey",
		`{"jobs": {"a": ` + job(`, "jobId": "`+uuid.Must(uuid.NewV7()).String()+`"`) + `}}`:                                            "jobs.a.jobId",
		`{"jobs": {"a": ` + job(`, "batchId": "`+uuid.NewString()+`"`) + `}}`:                                                          "jobs.a.batchId",
		`{"jobs": {"a": ` + job(`, "unique": {"key": "k"}`) + `}}`:                                                                     "jobs.a.unique",
		`{"jobs": {"a": ` + job(`, "singleton": {"key": "k", "else": "drop"}`) + `}}`:                                                  "jobs.a.singleton.else",
		`{"jobs": {"a": {"jobType": "NO", "payload": 1}}}`:                                                                             "jobs.a.jobType",
		`{"jobs": {"a": {"jobType": "SIMULATION", "payload": {"steps": []}}}}`:                                                         "jobs.a.payload.steps",
		`{"jobs": {"a": ` + job("") + `}, "closed": true}`:                                                                             "closed",
		refs(`{"$output": "z"}`):                                            "jobs.b.payload",
		refs(`{"$output": 5}`):                                              "jobs.b.payload.x[0][\"$output\"]",
		refs(`{"$output": "a", "path": "a.b"}`):                             "jobs.b.payload.x[0].path",
		refs(`{"$output": "a", "path": "$..b"}`):                            "jobs.b.payload.x[0].path",
		refs(`{"$output": "a", "path": "$[*]"}`):                            "jobs.b.payload.x[0].path",
		refs(`{"$output": "a", "extra": 1}`):                                "jobs.b.payload.x[0].extra",
		`{"jobs": {"a": {"jobType": "MAIL", "payload": {"$output": "a"}}}}`: "jobs.a.payload",
	} {
		h.post("/api/flows", body).wantError(apierror.InvalidJobRequest, path)
	}
	if n := h.rows(); n != 1 {
		t.Errorf("%d jobs are stored, want only %s", n, existing)
	}
	h.flow(`{"jobs": {"a": ` + job(`, "after": [{"jobId": "`+existing.String()+`", "on": "ended"}]`) + `}}`)
	for _, path := range []string{"x", uuid.NewString(), h.batch(`{}`).BatchID.String()} {
		h.get("/api/flows/" + path).wantError(apierror.FlowNotFound)
		h.post("/api/flows/"+path+"/cancel", "").wantError(apierror.FlowNotFound)
		h.post("/api/flows/"+path+"/retry", "").wantError(apierror.FlowNotFound)
	}
}

func TestFlowsAreListedApartFromBatches(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.batch(`{"name": "batch"}`)
	var ids []uuid.UUID
	for range 3 {
		ids = append(ids, h.flow(diamond).FlowID)
	}
	var page struct {
		Flows      []flowView
		Batches    []batchView
		NextCursor *string
	}
	h.get("/api/flows?limit=2").want(http.StatusOK).into(&page)
	if len(page.Flows) != 2 || page.Flows[0].FlowID != ids[2] || page.NextCursor == nil {
		t.Fatalf("the first page is %+v", page)
	}
	h.get("/api/flows?limit=2&cursor=" + *page.NextCursor).want(http.StatusOK).into(&page)
	if len(page.Flows) != 1 || page.Flows[0].FlowID != ids[0] || page.NextCursor != nil {
		t.Errorf("the second page is %+v", page)
	}
	if h.get("/api/batches").want(http.StatusOK).into(&page); len(page.Batches) != 1 || *page.Batches[0].Name != "batch" {
		t.Errorf("the batches are %+v", page.Batches)
	}
}

func TestAFlowHasTenThousandJobsAndNoMore(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one request: there is nothing to race, and under the race detector it may take longer than a request may")
	}
	h := open(t)
	var body strings.Builder
	body.WriteString(`{"jobs": {"j0": {"jobType": "MAIL", "payload": 0}`)
	for i := 1; i < 10_000; i++ {
		fmt.Fprintf(&body, `, "j%d": {"jobType": "MAIL", "payload": {"x": {"$output": "j%d"}}, "after": ["j%d"]}`, i, i/2, i/2)
	}
	made := h.flow(body.String() + `}}`)
	if f := h.readFlow(made.FlowID, ""); *f.Total != 10_000 || len(f.Jobs) != 10_000 || f.Jobs["j9999"].After[0].Name != "j4999" {
		t.Errorf("it has %d jobs, and shows %d", *f.Total, len(f.Jobs))
	}
	h.post("/api/flows", body.String()+`, "more": {"jobType": "MAIL", "payload": 0}}}`).wantError(apierror.InvalidJobRequest)
}

func TestAJobHasConditions(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.post("/api/jobs", `{"jobType": "MAIL", "payload": 1}`).want(http.StatusAccepted).jobID()
	body := func(on string) string {
		return fmt.Sprintf(`{"jobType": "MAIL", "payload": 1, "after": [{"jobId": %q, "on": %q}], "idempotencyKey": "k"}`, first, on)
	}
	id := h.post("/api/jobs", body("failed")).want(http.StatusAccepted).jobID()
	h.post("/api/jobs", body("failed")).want(http.StatusOK)
	h.post("/api/jobs", body("ended")).wantError(apierror.IdempotencyConflict)
	h.post("/api/jobs", body("never")).wantError(apierror.InvalidJobRequest)
	h.post("/api/jobs", fmt.Sprintf(`{"jobType": "MAIL", "payload": 1, "after": [{"name": %q}]}`, first)).wantError(apierror.InvalidJobRequest)
	var shown struct{ Conditions map[uuid.UUID]string }
	if h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&shown); shown.Conditions[first] != "failed" {
		t.Errorf("it shows %+v", shown)
	}
}

func TestACycleIsNamed(t *testing.T) {
	t.Parallel()
	h := open(t)
	e := h.post("/api/flows", `{"jobs": {"root": {"jobType": "MAIL", "payload": 1}, "z": {"jobType": "MAIL", "payload": 1, "after": ["y"]},
		"x": {"jobType": "MAIL", "payload": 1, "after": ["root", "y"]}, "y": {"jobType": "MAIL", "payload": 1, "after": ["x"]}}}`).error()
	if want := "the jobs wait for each other: y → x → y"; len(e.Details) != 1 || e.Details[0].Message != want {
		t.Errorf("it is refused with %+v", e)
	}
}

const shop = `{"name": "shop", "onFailure": {"jobType": "MAIL", "payload": 1}, "jobs": {
	"charge": {"jobType": "MAIL", "payload": {"cents": 1970670598291982290}, "tags": ["a"], "priority": 7},
	"pack": {"jobType": "MAIL", "after": ["charge"], "forEach": {"$output": "charge", "path": "$.items"}, "callbackUrl": "https://example.org/packed",
		"payload": {"sku": {"$item": "value"}, "receipt": {"$output": "charge", "path": "$.receipt"}}},
	"ship": {"jobType": "MAIL", "after": ["pack"], "payload": {"boxes": {"$output": "pack"}}},
	"refund": {"jobType": "MAIL", "payload": {"of": {"$output": "charge"}}, "after": ["charge", {"name": "ship", "on": "failed"}]}
}}`

func TestAFlowWhoseCompensationHasRunMustSayWhatRunsAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.flow(shop)
	retry := "/api/flows/" + made.FlowID.String() + "/retry"
	for name, state := range map[string]jobstate.Status{
		"charge": jobstate.Completed, "pack": jobstate.Failed, "ship": jobstate.Cancelled, "refund": jobstate.Completed,
	} {
		h.scheduler(made.Jobs[name], 1, state, nil)
	}
	h.sweep()
	h.post(retry, "").wantError(apierror.FlowCompensated)
	h.post(retry, "{}").wantError(apierror.FlowCompensated)
	h.post(retry, `{"all": false}`).wantError(apierror.FlowCompensated)
	for _, wrong := range []string{`{"from": []}`, `{"from": ["nobody"]}`, `{"from": "charge"}`, `{"from": ["ship"], "all": true}`, `{"name": 1}`, `[]`} {
		h.post(retry, wrong).wantError(apierror.InvalidJobRequest)
	}
	h.post(retry, `{"from": ["pack"]}`).want(http.StatusAccepted)
	second := h.readFlow(made.FlowID, "")
	if second.Run != 2 || second.Status != "RUNNING" || *second.Total != 4 || second.EarlierRuns[0].Status != "FAILED" {
		t.Errorf("the flow is %+v", second)
	}
	for name, job := range second.Jobs {
		again := name != "charge"
		if again != (job.JobID != made.Jobs[name]) || again != (job.RunAgainOf == made.Jobs[name]) {
			t.Errorf("%s is the job %s, which was %s, in place of %s", name, job.JobID, made.Jobs[name], job.RunAgainOf)
		}
		var was, is struct {
			Payload     json.RawMessage
			ForEach     *struct{ Path string }
			CallbackURL string
		}
		h.get("/api/jobs/" + made.Jobs[name].String()).want(http.StatusOK).into(&was)
		h.get("/api/jobs/" + job.JobID.String()).want(http.StatusOK).into(&is)
		if !reflect.DeepEqual(was, is) {
			t.Errorf("the new job of %s is %+v, the old one %+v", name, is, was)
		}
	}
	h.post(retry, `{"all": true}`).wantError(apierror.InvalidStateTransition)
}
