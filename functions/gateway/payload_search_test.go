package gateway_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func paying(payload string) string {
	return fmt.Sprintf(`{"jobType": "MAIL", "payload": %s}`, payload)
}

func TestJobsAreFoundByAValueInTheirPayload(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.notify()
	h.submit(plainJob)
	id := h.submit(paying(`{"order": {"id": "A-17", "total": 12.50}, "x": "\ud83d\ude00 \u20ac"}`))
	h.submit(paying(`{"order": {"id": "A-171"}}`))
	h.scheduler(id, 1, jobstate.Failed, nil)
	for _, path := range []string{"/api/jobs", "/api/jobs/dead"} {
		for condition, want := range map[string]int{
			"order.id:A-17": 1, "order.total:12.5": 1, "order.total:125e-1": 1, "order.id:a-17": 0, "order:A-17": 0, "x:😀 €": 1, "order.id[0]:A": 0,
		} {
			var page struct{ Jobs []struct{ JobID uuid.UUID } }
			h.get(path + "?payload=" + url.QueryEscape(condition)).want(http.StatusOK).into(&page)
			if len(page.Jobs) != want || want == 1 && page.Jobs[0].JobID != id {
				t.Errorf("%s: %s finds %v", path, condition, page.Jobs)
			}
		}
		for _, wrong := range []string{"", "order", "order.id:", ".:", "a:b&payload=c:d", "%ff:1"} {
			h.get(path+"?payload="+wrong).wantError(bad, "payload")
		}
	}
	for _, wrong := range []string{`""`, `"order"`, `17`} {
		h.post("/api/operations", `{"command": "retry", "filter": {"payload": `+wrong+`}}`).wantError(bad, "filter.payload")
	}
	op := h.operate(`{"command": "retry", "filter": {"payload": "order.id:A-17"}}`)
	h.operateAll(t)
	if op = h.operation(op.OperationID); op.Progress.Matched != 1 || op.Progress.Asked != 1 {
		t.Errorf("the operation is %+v", op)
	}
}

// The hub looks into the payloads of changed jobs only for streams that filter by them.
func TestStreamSendsJobsWithAValueInTheirPayload(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.notify()
	s := h.open("/api/stream?payload=order.id:17").watched()
	h.submit(plainJob)
	h.submit(paying(`{"order": {"id": 18}}`))
	id := h.submit(paying(`{"order": {"id": 17.0}}`))
	if job := s.next("job").into(t); job.JobID != id {
		t.Errorf("sent %+v", job)
	}
	h.get("/api/stream?payload=17").wantError(bad, "payload")
}

func TestSealedPayloadsCannotBeSearched(t *testing.T) {
	t.Parallel()
	cfg, _ := newSealer(t)
	h := openWith(t, func(c *gateway.Config) { c.Sealing = cfg })
	for _, path := range []string{"/api/jobs", "/api/jobs/dead", "/api/stream"} {
		h.get(path+"?payload=order.id:17").wantError(bad, "payload")
	}
	h.post("/api/operations", `{"command": "retry", "filter": {"payload": "order.id:17"}}`).wantError(bad, "filter.payload")
	h.operate(`{"command": "retry", "filter": {"tag": "a"}}`)
	for h, want := range map[*fixture]bool{h: true, open(t): false} {
		var me struct{ Sealing bool }
		if h.get("/api/me").want(http.StatusOK).into(&me); me.Sealing != want {
			t.Errorf("it seals: %t, want %t", me.Sealing, want)
		}
	}
}
