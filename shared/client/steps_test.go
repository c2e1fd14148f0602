package client_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

func TestStepsAreSavedAndReadInPages(t *testing.T) {
	t.Parallel()
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, r.URL.Path+" "+string(body))
		const step = `{"name": "a", "result": {"n": 1}, "until": null, "attempt": 1, "tookMs": null, "savedAt": "2026-11-29T14:00:00Z"}`
		answer := step
		if r.URL.Path == "/api/workers/steps/read" {
			answer = `{"steps": [` + step + `], "next": "a"}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	c := client.New(server.URL, "")
	until := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []client.WorkStep{
		{Name: "a", Result: json.RawMessage(`"<"`), Took: time.Microsecond}, {Name: "b", Until: until},
	} {
		stored, err := c.SaveStep(t.Context(), "w", "t", step)
		if err != nil || stored.Name != "a" || string(stored.Result) != `{"n": 1}` || stored.Attempt != 1 || !stored.Until.IsZero() {
			t.Errorf("%+v, %v", stored, err)
		}
	}
	page, err := c.Steps(t.Context(), "w", "t", "")
	if err != nil || page.Next != "a" || len(page.Steps) != 1 || page.Steps[0].SavedAt.IsZero() {
		t.Errorf("%+v, %v", page, err)
	}
	if _, err := c.Steps(t.Context(), "w", "t", page.Next); err != nil {
		t.Error(err)
	}
	want := []string{
		`/api/workers/steps {"worker":"w","token":"t","name":"a","result":"<","tookMs":1}`,
		`/api/workers/steps {"worker":"w","token":"t","name":"b","until":"2036-01-01T00:00:00Z"}`,
		`/api/workers/steps/read {"worker":"w","token":"t"}`,
		`/api/workers/steps/read {"worker":"w","token":"t","after":"a"}`,
	}
	for i := range want {
		if i >= len(sent) || sent[i] != want[i] {
			t.Errorf("sent %q, want %q", sent, want)
			break
		}
	}
}
