package funchost

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/certtest"
	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// A NetworkPolicy that admits Prometheus to the port of its metrics must not open the port of events.
func TestThePortOfMetricsServesOnlyMetricsAndNoOtherPortDoes(t *testing.T) {
	t.Parallel()
	var handled int
	metrics := anywhere(t)
	s := newSite(t, Config{MetricsListener: metrics}, Function{
		Handle: func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { handled++; return nil, nil },
	})
	beside := &site{t: t, url: "http://" + metrics.Addr().String()}
	if got := beside.do("GET", "/metrics", ""); got.status != 200 || !strings.Contains(got.body, "jobweaver_build_info") {
		t.Errorf("the port of metrics answered %d", got.status)
	}
	for _, path := range []string{probe.LivenessPath, probe.ReadinessPath, "/", "/api/jobs"} {
		if got := beside.do("GET", path, ""); got.status != 404 {
			t.Errorf("the port of metrics answered %s with %d", path, got.status)
		}
	}
	if got := beside.do("POST", "/", "{}", binary("1")...); got.status != 404 || handled != 0 {
		t.Errorf("the port of metrics took an event: %+v", got)
	}
	if got := s.do("GET", "/metrics", ""); got.status == 200 {
		t.Error("the port of events has metrics, too")
	}
	if got := s.do("GET", probe.LivenessPath, ""); got.status != 200 {
		t.Errorf("the port of events answered a probe with %d", got.status)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if _, err := client.Get(beside.url + "/metrics"); err == nil {
		t.Error("the port of metrics is open after the stop")
	}
}

func TestTheMetricsOfAFunctionWithHTTPNeedNoKeyOnTheirPort(t *testing.T) {
	t.Parallel()
	metrics := anywhere(t)
	refuses := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	s := newSite(t, Config{FuncTransport: TransportKafka, MetricsListener: metrics}, Function{HTTP: refuses, HTTPMetrics: true})
	if got := s.do("GET", "/metrics", ""); got.status != 401 {
		t.Errorf("without a key, the port of all else answered %d", got.status)
	}
	beside := &site{t: t, url: "http://" + metrics.Addr().String()}
	if got := beside.do("GET", "/metrics", ""); got.status != 200 {
		t.Errorf("the port of metrics answered %d", got.status)
	}
}

func TestThePortOfMetricsHasTheSameTLS(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	files := certtest.NewDir(t, ca, ca.Issue(t, "127.0.0.1"))
	metrics := anywhere(t)
	newSite(t, Config{
		MetricsListener: metrics, TLS: TLS{CertFile: files.Cert(), KeyFile: files.Key(), ClientCAFile: files.CA()},
	}, Function{Tick: neverTick})
	beside := &site{t: t, url: "http://" + metrics.Addr().String()}
	if got := beside.do("GET", "/metrics", ""); got.status != 400 || strings.Contains(got.body, "jobweaver_") {
		t.Errorf("plain text got %d", got.status)
	}
	ours := ca.Issue(t, "prometheus")
	for by, want := range map[*certtest.Pair]int{nil: 403, &ours: 200} {
		if res, err := beside.secure(ca, by, "/metrics"); status(res) != want {
			t.Errorf("answered %d, not %d, %v", status(res), want, err)
		}
	}
}
