package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

func TestHeaderIdempotencyKeyIsTheKeyOfTheBody(t *testing.T) {
	t.Parallel()
	h := open(t)
	const header = "Idempotency-Key"
	first := h.post("/api/jobs", plainJob, header, "order-17").want(http.StatusAccepted)
	inBody := strings.Replace(plainJob, "{", `{"idempotencyKey": "order-17", `, 1)
	for name, again := range map[string]*response{
		"the header again":     h.post("/api/jobs", plainJob, header, "order-17"),
		"the header in quotes": h.post("/api/jobs", plainJob, header, `"order-17"`),
		"the body's":           h.post("/api/jobs", inBody),
		"both":                 h.post("/api/jobs", inBody, header, "order-17"),
	} {
		if again.want(http.StatusOK).jobID() != first.jobID() {
			t.Errorf("%s: another job", name)
		}
	}
	h.post("/api/jobs", inBody, header, "order-18").
		wantError(apierror.InvalidJobRequest, header)
	for _, key := range []string{`""`, "order\t17", "order\u0085", strings.Repeat("x", 256)} {
		h.post("/api/jobs", plainJob, header, key).wantError(apierror.InvalidJobRequest, header)
	}
	h.post("/api/jobs/batch", `{"jobs": [`+plainJob+`]}`, header, "order-17").wantError(apierror.InvalidJobRequest, header)
	if n := h.rows(); n != 1 {
		t.Errorf("%d jobs", n)
	}

	const operation = `{"command": "cancel", "filter": {"all": true}}`
	var one, two struct{ OperationID string }
	h.post("/api/operations", operation, header, "stop").want(http.StatusAccepted).into(&one)
	h.post("/api/operations", operation, header, "stop").want(http.StatusOK).into(&two)
	if one.OperationID == "" || one != two {
		t.Errorf("%v and again %v", one, two)
	}
}

func TestHeadIsRoutedLikeGet(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	for _, path := range []string{
		"/", "/api/health", "/api/jobs", "/api/jobs/" + id.String(), "/api/openapi.yaml", "/metrics", "/api/jobs/none",
	} {
		get, err := http.Get(h.base + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = get.Body.Close()
		head, err := http.Head(h.base + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = head.Body.Close()
		if head.StatusCode != get.StatusCode || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("%s: HEAD %d, GET %d", path, head.StatusCode, get.StatusCode)
		}
	}
	if res, err := http.Head(h.base + "/api/operations/none/abort"); err != nil || res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("HEAD where only POST is: %v, %v", res, err)
	}
}
