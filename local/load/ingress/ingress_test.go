package ingress_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/load/ingress"
)

func TestAnEventReachesTheFunctionWhoseTriggerWantsIt(t *testing.T) {
	t.Parallel()
	type delivery struct{ function, kind, body string }
	came := make(chan delivery, 1)
	functions := map[string]string{}
	for _, name := range []string{"ingest", "outcome"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := make([]byte, r.ContentLength)
			_, _ = r.Body.Read(body)
			came <- delivery{name, r.Header.Get("Ce-Type"), string(body)}
			w.WriteHeader(http.StatusNoContent)
		}))
		t.Cleanup(server.Close)
		functions[name] = server.URL
	}
	broker, err := ingress.New(ingress.Config{
		Manifests: "../../../knative/base", Functions: functions, Brokers: []string{"127.0.0.1:1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const kind = "io.jobweaver.attempts.ended.v1"
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("[]"))
	request.Header.Set("Ce-Type", kind)
	answer := httptest.NewRecorder()
	broker.ServeHTTP(answer, request)
	if answer.Code != http.StatusAccepted {
		t.Errorf("answered %d", answer.Code)
	}
	select {
	case got := <-came:
		if want := (delivery{"outcome", kind, "[]"}); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Error("no delivery")
	}
	if err := broker.Close(); err != nil { // the test may end the delivery before the answer
		t.Error(err)
	}
}
