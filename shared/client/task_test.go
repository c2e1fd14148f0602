package client_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/client"
)

type charge struct {
	OrderID string    `json:"orderId" jsonschema:"of the shop"`
	Cents   int       `json:"cents"`
	Notes   []string  `json:"notes,omitempty"`
	Key     uuid.UUID `json:"key,omitzero"`
	Image   []byte    `json:"image,omitempty"`
	Raw     any       `json:"raw,omitempty"`
}

type receipt struct {
	Receipt string    `json:"receipt"`
	At      time.Time `json:"at"`
}

var charging = client.Task[charge, receipt]{
	Type: "CHARGE", Title: "Charge a card",
	Defaults: client.JobRequest{MaxRetryCount: new(5), Tags: []string{"shop"}},
}

func TestATaskSubmitsTypedJobsWithItsDefaults(t *testing.T) {
	t.Parallel()
	s := newScript(
		answer(http.StatusAccepted, `{"jobId": "j1"}`),
		answer(http.StatusOK, `{"jobId": "j1", "status": "COMPLETED", "output": {"receipt": "r1", "at": "2026-11-29T12:00:00Z"}}`),
		answer(http.StatusOK, `{"jobId": "j1", "status": "FAILED"}`),
		answer(http.StatusOK, `{"results": [{"status": 202}, {"status": 202}]}`),
	)
	c := s.client()
	out, err := charging.Run(t.Context(), c, charge{OrderID: "o1", Cents: 5}, func(r *client.JobRequest) { r.Priority = 7 })
	if err != nil || out.Receipt != "r1" || out.At.Hour() != 12 {
		t.Errorf("the output is %+v, %v", out, err)
	}
	want := `{"jobType":"CHARGE","payload":{"orderId":"o1","cents":5},"queue":"pull","priority":7,"maxRetryCount":5,"tags":["shop"]}`
	if s.bodies[0] != want {
		t.Errorf("sent %s, want %s", s.bodies[0], want)
	}
	var ended *client.EndedError
	if _, err := charging.Wait(t.Context(), c, "j1"); !errors.As(err, &ended) {
		t.Errorf("a failed job: %v", err)
	}
	results, err := charging.SubmitAll(t.Context(), c, []charge{{OrderID: "o1"}, {OrderID: "o2"}}, func(r *client.JobRequest) { r.Queue = "billing" })
	if err != nil || len(results) != 2 || strings.Count(s.bodies[3], `"queue":"billing"`) != 2 || !strings.Contains(s.bodies[3], `"o2"`) {
		t.Errorf("%+v, %v of %s", results, err, s.bodies[3])
	}
	if charging.Defaults.Queue != "" || charging.Defaults.Priority != 0 {
		t.Errorf("the task has changed: %+v", charging.Defaults)
	}
}

func TestTheSchemaOfATaskTakesWhatItsHandlerTakes(t *testing.T) {
	t.Parallel()
	var schema struct {
		Required             []string
		Properties           map[string]json.RawMessage
		AdditionalProperties json.RawMessage
	}
	definition := charging.Definition()
	if err := json.Unmarshal(definition.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if strings.Join(schema.Required, " ") != "orderId cents" || schema.AdditionalProperties != nil {
		t.Errorf("the schema is %s", definition.Schema)
	}
	for name, want := range map[string]string{
		"orderId": `{"type":"string","description":"of the shop"}`, "cents": `{"type":"integer"}`,
		"key": `{"type":"string"}`, "image": `{"type":["null","string"]}`, "raw": `true`,
	} {
		if got := string(schema.Properties[name]); got != want {
			t.Errorf("the schema of %s is %s, not %s", name, got, want)
		}
	}
	if !strings.Contains(string(definition.OutputSchema), `"receipt"`) {
		t.Errorf("the schema of the output is %s", definition.OutputSchema)
	}

	type tree struct{ Children []*tree }
	endless := client.Task[tree, json.RawMessage]{Type: "TREE"}
	if got := endless.Definition(); got.Schema != nil || got.OutputSchema != nil {
		t.Errorf("a type without a schema: %s, and any output: %s", got.Schema, got.OutputSchema)
	}
}

func TestAClientFromTheEnvironment(t *testing.T) {
	t.Setenv("JOBWEAVER_URL", "http://from-env")
	t.Setenv("JOBWEAVER_API_KEY", "env-key")
	s := newScript(answer(http.StatusNoContent, ""))
	if err := client.FromEnv(client.WithTransport(s)).DescribeJobType(t.Context(), "a.b", charging.Definition()); err != nil {
		t.Fatal(err)
	}
	if last := s.asked[1].URL.Path; last != "/api/job-types/a.b/schedules" || s.bodies[1] != `{"schedules":[]}` {
		t.Errorf("asked %s with %s", last, s.bodies[1])
	}
	asked := s.asked[0]
	if asked.Method != http.MethodPut || asked.URL.String() != "http://from-env/api/job-types/a.b" || asked.Header.Get("Authorization") != "Bearer env-key" {
		t.Errorf("asked %s %s with %v", asked.Method, asked.URL, asked.Header)
	}
}
