package gateway_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestRequestsAreMeasuredByTheirRoutes(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(`{"jobType":"SIMULATION","payload":{"steps":[{"type":"LOG","message":"hi"}]}}`)
	h.do(http.MethodGet, "/api/jobs/"+id.String()+"?wait=1ms", "")
	h.do(http.MethodGet, "/nothing/"+id.String(), "")
	got := string(h.do(http.MethodGet, "/metrics", "").body)
	for _, want := range []string{
		`jobweaver_http_requests_total{code="202",function="gateway",method="POST",route="/api/jobs"} `,
		`jobweaver_http_requests_total{code="200",function="gateway",method="GET",route="/api/jobs/{jobId}"} `,
		`jobweaver_http_requests_total{code="404",function="gateway",method="GET",route="other"} `,
		`jobweaver_http_request_duration_seconds_count{function="gateway",method="POST",route="/api/jobs"} `,
		`jobweaver_jobs_accepted_total{job_type="SIMULATION",queue="default"} `,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(got, id.String()) || strings.Contains(got, `route="/metrics"`) {
		t.Error("a job's id or the scrape itself became a label")
	}
}
