package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// fanOut returns a flow with a fan-out that has further members.
func fanOut(payload, more string) string {
	return `{"jobs": {"list": {"jobType": "MAIL", "payload": 1},
		"each": {"jobType": "MAIL", "payload": ` + payload + `, "after": ["list"], "forEach": {"$output": "list", "path": "$.items"}` + more + `},
		"sum": {"jobType": "MAIL", "payload": {"$output": "each"}, "after": ["each"]}}}`
}

// nextCreated returns the next n jobs that are published, by their ids.
func (h *fixture) nextCreated(n int) map[uuid.UUID]jobevent.Created {
	h.t.Helper()
	created := map[uuid.UUID]jobevent.Created{}
	for range n {
		e, err := jobevent.DecodeAs[jobevent.Created](h.broker.next(h.t), jobevent.TypeCreated)
		if err != nil {
			h.t.Fatal(err)
		}
		created[e.JobID] = e
	}
	return created
}

// elements returns the jobs of a fan-out in the order of the elements.
func (h *fixture) elements(id uuid.UUID) (ids []uuid.UUID) {
	h.t.Helper()
	var texts []string
	h.sql("select coalesce(array_agg(job_id::text order by element), '{}') from jobs where fan_out_id = $1", &texts, id)
	for _, text := range texts {
		ids = append(ids, uuid.MustParse(text))
	}
	return ids
}

func completedWith(output json.RawMessage) func(*jobevent.Status) {
	return func(s *jobevent.Status) { s.Attempt, s.Output = 1, output }
}

func TestAFanOutBecomesAJobForEachElement(t *testing.T) {
	t.Parallel()
	h, sealer, _ := openSealed(t)
	made := h.flow(fanOut(`{"x": {"$item": "value", "path": "$.n"}, "i": {"$item": "index"}}`, `, "priority": 4, "orderingKey": "k", "tags": ["t"]`))
	list, each := made.Jobs["list"], made.Jobs["each"]
	accepted := h.nextCreated(3)[each]
	if !accepted.IsFanOut() || accepted.OrderingKey != "k" {
		t.Errorf("it is published as %+v", accepted)
	}
	h.scheduler(each, 1, jobstate.Waiting, func(s *jobevent.Status) { s.Attempt = 1 })
	if f := h.readFlow(made.FlowID, ""); f.Jobs["each"].ForEach.Path != "$.items" || f.Jobs["each"].Elements != nil || *f.Total != 3 {
		t.Errorf("before, the flow shows %+v", f.Jobs["each"])
	}
	h.scheduler(list, 1, jobstate.Completed, completedWith(sealer.Seal(sealing.OfAttempt(list, 1, sealing.Output), json.RawMessage(`{"items": [{"n": 7}, {"n": "x"}]}`))))
	created := h.nextCreated(2)
	ids := h.elements(each)
	if len(ids) != 2 {
		t.Fatalf("it has the jobs %v", ids)
	}
	for i, want := range []string{`{"x":7,"i":0}`, `{"x":"x","i":1}`} {
		job := created[ids[i]]
		payload, err := sealer.Open(sealing.OfJob(ids[i], sealing.Payload), job.Payload)
		if err != nil || string(payload) != want || job.Priority != 4 || job.OrderingKey != "k" || job.Queue != "default" || strings.Contains(string(job.Payload), "x") && job.Payload[0] == '{' {
			t.Errorf("element %d is published as %+v with %s, %v", i, job, payload, err)
		}
		if after := append([]uuid.UUID{each}, ids...)[i]; job.OrderNumber != accepted.OrderNumber-2+int64(i) || job.OrderNumber < 1 || *job.OrderAfter != after {
			t.Errorf("element %d has place %d after %s, its fan-out %d", i, job.OrderNumber, job.OrderAfter, accepted.OrderNumber)
		}
		var shown struct {
			BatchID uuid.UUID
			Element struct {
				FanOutID uuid.UUID
				Index    int
			}
		}
		if h.get("/api/jobs/" + ids[i].String()).want(http.StatusOK).into(&shown); shown.BatchID != made.FlowID || shown.Element.FanOutID != each || shown.Element.Index != i {
			t.Errorf("element %d shows %+v", i, shown)
		}
	}
	for i, output := range []string{`"b"`, `"a"`} { // in another order than the elements
		id := ids[1-i]
		h.scheduler(id, 1, jobstate.Completed, completedWith(sealer.Seal(sealing.OfAttempt(id, 1, sealing.Output), json.RawMessage(output))))
	}
	done, err := jobevent.DecodeAs[jobevent.Completed](h.broker.next(t), jobevent.TypeCompleted)
	if err != nil || done.JobID != each || done.Attempt != 1 {
		t.Fatalf("it ends with %+v, %v", done, err)
	}
	if output, err := sealer.Open(sealing.OfAttempt(each, 1, sealing.Output), done.Output); err != nil || string(output) != `["a","b"]` {
		t.Errorf("its output is %s, %v", output, err)
	}
	f := h.readFlow(made.FlowID, "")
	if e := f.Jobs["each"].Elements; e == nil || e.Total != 2 || e.Counts["COMPLETED"] != 2 || *f.Total != 5 || len(f.Jobs) != 3 {
		t.Errorf("the flow shows %+v", f)
	}
	h.post("/api/jobs/"+each.String()+"/run-again", "").wantError(apierror.InvalidStateTransition)
	h.post("/api/jobs/"+ids[0].String()+"/run-again", "").want(http.StatusAccepted)
}

func TestAFanOutWithoutElementsEndsAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.flow(fanOut(`1`, ""))
	h.nextCreated(3)
	h.scheduler(made.Jobs["list"], 1, jobstate.Completed, completedWith(json.RawMessage(`{"items": []}`)))
	done, err := jobevent.DecodeAs[jobevent.Completed](h.broker.next(t), jobevent.TypeCompleted)
	if err != nil || done.JobID != made.Jobs["each"] || string(done.Output) != "[]" {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestAFanOutFailsWithItsReason(t *testing.T) {
	t.Parallel()
	h := open(t)
	for output, c := range map[string]struct{ payload, why string }{
		"":                       {"1", "the output of list has no $.items"},
		`{"items": 5}`:           {"1", "$.items of the output of list is not an array"},
		`{"items": [1]}`:         {`{"$item": "value", "path": "$.x"}`, "payload: element 0 has no $.x"},
		`{"items": ["x", "yy"]}`: {`[{"$item": "value"}, "` + strings.Repeat("y", 400_000) + `"]`, ""},
		`{"items": [` + strings.Repeat("0,", 40) + `0]}`: {`[{"$item": "value"}, "` + strings.Repeat("y", 500_000) + `"]`, "together"},
	} {
		made := h.flow(fanOut(c.payload, ""))
		h.nextCreated(3)
		h.scheduler(made.Jobs["list"], 1, jobstate.Completed, completedWith(json.RawMessage(output)))
		if c.why == "" {
			h.nextCreated(2)
			continue
		}
		failed, err := jobevent.DecodeAs[jobevent.Failed](h.broker.next(t), jobevent.TypeFailed)
		if err != nil || failed.JobID != made.Jobs["each"] || failed.ErrorCode != string(apierror.InvalidFanOut) || failed.Retryable || !strings.Contains(failed.Message, c.why) {
			t.Errorf("%.30s: %+v, %v", output, failed, err)
		}
		if n := len(h.elements(made.Jobs["each"])); n > 0 {
			t.Errorf("%.30s: there are %d jobs", output, n)
		}
	}
}

func TestAFanOutEndsAsItsElementsDo(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, ends := range [][]jobstate.Status{{jobstate.Completed, jobstate.Failed, jobstate.Cancelled}, {jobstate.Completed, jobstate.Cancelled, jobstate.Completed}} {
		made := h.flow(fanOut(`1`, ""))
		h.nextCreated(3)
		each := made.Jobs["each"]
		h.scheduler(made.Jobs["list"], 1, jobstate.Completed, completedWith(json.RawMessage(`{"items": [1, 2, 3]}`)))
		h.nextCreated(3)
		for i, id := range h.elements(each) {
			h.scheduler(id, 1, ends[i], nil)
		}
		next := h.broker.next(t)
		if slices.Contains(ends, jobstate.Failed) {
			failed, err := jobevent.DecodeAs[jobevent.Failed](next, jobevent.TypeFailed)
			if err != nil || failed.JobID != each || failed.ErrorCode != string(apierror.ElementFailed) ||
				failed.Message != "of 3 jobs 1 failed and 1 were cancelled; the first is that of element 1" {
				t.Errorf("%+v, %v", failed, err)
			}
			continue
		}
		cancel, err := jobevent.DecodeAs[jobevent.Command](next, jobevent.TypeCommand)
		if err != nil || cancel.JobID != each || cancel.Command != jobevent.CommandCancel {
			t.Errorf("%+v, %v", cancel, err)
		}
	}
}

// A cancelled fan-out leaves none of its jobs behind, not even those that another gateway inserted meanwhile.
func TestTheJobsOfACancelledFanOutAreCancelled(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.flow(fanOut(`1`, ""))
	h.nextCreated(3)
	each := made.Jobs["each"]
	h.scheduler(made.Jobs["list"], 1, jobstate.Completed, completedWith(json.RawMessage(`{"items": [1, 2]}`)))
	h.nextCreated(2)
	h.scheduler(each, 1, jobstate.Cancelled, nil)
	var n int
	late := time.After(20 * time.Second)
	for n == 0 {
		h.sql("select count(*) from operations", &n)
		select {
		case <-late:
			t.Fatal("there is no operation")
		case <-time.After(50 * time.Millisecond):
		}
	}
	h.operateAll(t)
	for i, id := range h.elements(each) {
		var job struct{ CancelRequestedAt *string }
		if h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job); job.CancelRequestedAt == nil {
			t.Errorf("the job of element %d is not cancelled", i)
		}
	}
}

func TestTheJobsOfAFanOutAreListedAndCancelled(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.flow(fanOut(`1`, ""))
	h.nextCreated(3)
	each := made.Jobs["each"]
	h.scheduler(made.Jobs["list"], 1, jobstate.Completed, completedWith(json.RawMessage(`{"items": [1, 2, 3]}`)))
	h.nextCreated(3)
	ids := h.elements(each)
	h.scheduler(ids[1], 1, jobstate.Failed, func(s *jobevent.Status) { s.Attempt = 1 })
	list := func(query string) (found []uuid.UUID, next *string) {
		t.Helper()
		var page struct {
			Jobs       []struct{ JobID uuid.UUID }
			NextCursor *string
		}
		h.get("/api/jobs?fanOutId=" + query).want(http.StatusOK).into(&page)
		for _, job := range page.Jobs {
			found = append(found, job.JobID)
		}
		return found, page.NextCursor
	}
	newest := slices.SortedFunc(slices.Values(ids), func(a, b uuid.UUID) int { return strings.Compare(b.String(), a.String()) })
	if found, next := list(each.String()); !slices.Equal(found, newest) || next != nil {
		t.Errorf("it lists %v, %v, want %v", found, next, newest)
	}
	first, next := list(each.String() + "&limit=2")
	if rest, end := list(each.String() + "&limit=2&cursor=" + *next); !slices.Equal(slices.Concat(first, rest), newest) || end != nil {
		t.Errorf("it lists %v, then %v", first, rest)
	}
	for query, want := range map[string]int{
		each.String() + "&status=FAILED": 1, each.String() + "&batchId=" + made.FlowID.String(): 3,
		each.String() + "&tag=none": 0, each.String() + "&q=" + ids[0].String(): 1, made.Jobs["list"].String(): 0, uuid.NewString(): 0,
	} {
		if found, _ := list(query); len(found) != want {
			t.Errorf("%s lists %v", query, found)
		}
	}
	h.get("/api/jobs?fanOutId=x").wantError(apierror.InvalidJobRequest, "fanOutId")
	h.post("/api/operations", `{"command": "cancel", "filter": {"fanOutId": "x"}}`).wantError(apierror.InvalidJobRequest, "filter.fanOutId")

	op := h.operate(fmt.Sprintf(`{"command": "cancel", "filter": {"fanOutId": %q}}`, each))
	h.operateAll(t)
	if op = h.operation(op.OperationID); op.Progress.Matched != 2 {
		t.Errorf("the operation is %+v", op)
	}
}

func TestABadFanOutIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	flow := func(each string) string {
		return `{"jobs": {"list": {"jobType": "MAIL", "payload": 1}, "each": {"jobType": "MAIL", ` + each + `}}}`
	}
	many := `{"jobs": {"list": {"jobType": "MAIL", "payload": 1}`
	for i := range 101 {
		many += fmt.Sprintf(`, "each%d": {"jobType": "MAIL", "payload": 1, "after": ["list"], "forEach": {"$output": "list"}}`, i)
	}
	for body, path := range map[string]string{
		flow(`"payload": 1, "forEach": {"$output": "list"}`):                                                    "jobs.each.forEach",
		flow(`"payload": 1, "after": ["list"], "forEach": {"$output": "other"}`):                                "jobs.each.forEach",
		flow(`"payload": 1, "after": ["list"], "forEach": "list"`):                                              "jobs.each.forEach",
		flow(`"payload": 1, "after": ["list"], "forEach": {"$output": "list", "path": "items"}`):                "jobs.each.forEach.path",
		flow(`"payload": 1, "after": ["list"], "forEach": {"$output": "list", "default": []}`):                  "jobs.each.forEach",
		flow(`"payload": 1, "after": ["list"], "forEach": {"$output": "list", "x": 1}`):                         "jobs.each.forEach.x",
		flow(`"payload": 1, "after": [{"name": "list", "on": "failed"}], "forEach": {"$output": "list"}`):       "jobs.each.forEach",
		flow(`"payload": {"$item": "key"}, "after": ["list"], "forEach": {"$output": "list"}`):                  "jobs.each.payload[\"$item\"]",
		flow(`"payload": {"$item": "index", "path": "$.x"}, "after": ["list"], "forEach": {"$output": "list"}`): "jobs.each.payload",
		flow(`"payload": {"$item": "value", "path": "x"}, "after": ["list"], "forEach": {"$output": "list"}`):   "jobs.each.payload.path",
		many + `}}`: "jobs",
	} {
		h.post("/api/flows", body).wantError(apierror.InvalidJobRequest, path)
	}
	h.post("/api/jobs", `{"jobType": "MAIL", "payload": 1, "forEach": {"$output": "list"}}`).wantError(apierror.InvalidJobRequest, "forEach")
	// Without forEach it is a payload like any other.
	h.post("/api/jobs", `{"jobType": "MAIL", "payload": {"$item": "key"}}`).want(http.StatusAccepted)
}

func TestTheQueueOfFanOutsIsReserved(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.post("/api/jobs", `{"jobType": "MAIL", "payload": 1, "queue": "-fan-out"}`).wantError(apierror.InvalidJobRequest, "queue")
	if err := jobspec.CheckQueues([]string{"-fan-out"}); err == nil {
		t.Error("QUEUES may have it")
	}
}
