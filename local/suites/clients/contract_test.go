package clients

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/jobweaver/jobweaver/shared/client"
)

func contract(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("../../../functions/gateway/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// membersOf returns the members of a schema, including those in its allOf.
func membersOf(schema *openapi3.SchemaRef) []string {
	var names []string
	for name := range schema.Value.Properties {
		names = append(names, name)
	}
	for _, part := range schema.Value.AllOf {
		names = append(names, membersOf(part)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func membersOfType(kind reflect.Type) []string {
	var names []string
	for field := range fieldsOf(kind) {
		names = append(names, field)
	}
	slices.Sort(names)
	return names
}

func fieldsOf(kind reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		switch {
		case kind.Field(i).Anonymous:
			for name, field := range fieldsOf(kind.Field(i).Type) {
				fields[name] = field
			}
		case name != "" && name != "-":
			fields[name] = kind.Field(i)
		}
	}
	return fields
}

func TestTheTypesHaveTheMembersOfTheContract(t *testing.T) {
	t.Parallel()
	doc := contract(t)
	if doc.Info.Version != client.Version {
		t.Errorf("the contract has version %s, the client %s", doc.Info.Version, client.Version)
	}
	problem := []string{"type", "title", "instance"} // RFC 9457
	for name, value := range map[string]any{
		"Job": client.Job{}, "Accepted": client.Accepted{}, "Error": client.Error{}, "Detail": client.ErrorDetail{},
		"HistoryEntry": client.Move{}, "AttemptSummary": client.Attempt{}, "LogLine": client.LogLine{}, "JobPage": client.Page{},
		"Blocker": client.Block{}, "LastErrorOrNull": client.Failure{}, "ProgressOrNull": client.Progress{}, "JobTick": client.Tick{},
		"Unique": client.Unique{}, "Throttle": client.Throttle{}, "Singleton": client.Singleton{}, "Debounce": client.Debounce{},
		"StreamProgress": client.JobProgress{}, "WorkHeartbeat": client.WorkHeartbeat{}, "WorkHeartbeatAnswer": client.WorkHeartbeatAnswer{},
		"WorkAttempt": client.WorkAttempt{}, "Batch": client.Batch{}, "BatchRequest": client.BatchRequest{},
		"Schedule": client.Schedule{}, "ScheduleRequest": client.ScheduleRequest{}, "Tick": client.ScheduleTick{}, "Share": client.Share{},
		"Control": client.Control{}, "ControlRequest": client.ControlRequest{}, "Operation": client.Operation{},
		"OperationProgress": client.OperationProgress{}, "RefusalReason": client.RefusalReason{}, "SkippedJob": client.SkippedJob{},
		"DeadGroups": client.DeadGroups{}, "DeadGroup": client.DeadGroup{}, "DeadExampleOrNull": client.DeadExample{},
		"Delivery": client.Delivery{}, "WholeRejectedRecord": client.RejectedRecord{}, "RecordHeader": client.RecordHeader{},
		"RecordBytesOrNull": client.RecordBytes{}, "KeyRequest": client.KeyRequest{}, "NewKey": client.Key{}, "Me": client.Me{},
		"AuditEntry": client.AuditEntry{}, "WebhookSecrets": client.WebhookSecrets{}, "JobTypeInfo": client.JobType{},
		"Workers": client.WorkerList{}, "TypeWithoutWorker": client.TypeWithoutWorker{}, "Worker": client.WorkerInfo{},
		"WorkerAttempt": client.RunningAttempt{}, "WorkerDrain": client.WorkerDrain{}, "Hook": client.Hook{},
		"HookRejection": client.HookRejection{}, "Health": client.Health{}, "Lag": client.Lag{}, "TopicLag": client.TopicLag{},
		"Stats": client.Stats{}, "TypeStats": client.TypeStats{}, "QueueStats": client.QueueStats{}, "Percentiles": client.Percentiles{},
		"OldestWaiting": client.OldestWaiting{}, "Throughput": client.Throughput{}, "Rates": client.Rates{}, "Flow": client.Span{},
		"Latency": client.Latency{}, "HistogramBar": client.HistogramBar{}, "Failures": client.Failures{},
		"FailedJobType": client.FailedJobType{}, "FailedErrorCode": client.FailedErrorCode{}, "CallbackFailed": client.Callback{},
		"EventKept": client.EventKept{}, "Element": client.Element{}, "CalledJob": client.Called{},
		"QueueInfo": client.Queue{}, "FlowRequest": client.FlowRequest{}, "ForEach": client.ForEach{}, "FlowJob": client.FlowJob{},
	} {
		got := slices.DeleteFunc(membersOfType(reflect.TypeOf(value)), func(member string) bool {
			return name == "Error" && slices.Contains(problem, member)
		})
		want := slices.DeleteFunc(membersOf(doc.Components.Schemas[name]), func(name string) bool { return name == "timestamp" })
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, not %v", name, got, want)
		}
	}
}

func TestARequestHasEveryFieldOfTheContract(t *testing.T) {
	t.Parallel()
	doc := contract(t)
	at := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	full := client.JobRequest{
		JobType: "SIMULATION", Payload: map[string]any{"steps": []any{map[string]any{"type": "LOG", "message": "hi"}}},
		Queue: "default", Priority: 3, MaxRetryCount: new(0), RetryPolicy: client.RetryExponential(time.Second, time.Minute),
		Delay: 1500 * time.Millisecond, ExpiresAt: at, Timeout: time.Minute, IdempotencyKey: "a", OrderingKey: "b", FairnessKey: "f", KeepBuild: true,
		After: []string{"01936f3e-5f3e-7cc0-8000-0123456789ab"}, OnDependencyFailure: "run", Tags: []string{"c"},
		CallbackURL: "https://example.org/done", OwnerID: "acme", BatchID: "01936f3e-5f3e-7cc0-8000-0123456789ab",
	}
	schema := doc.Components.Schemas["JobRequest"]
	sent := map[string]any{}
	for _, request := range []client.JobRequest{
		full, {JobType: "A", Payload: 1, RunAt: at, JobID: "019aa5d0-8f5e-7cc0-8000-000000000001", RetryPolicy: client.RetryFixed(time.Second)},
		{JobType: "A", Payload: 1, RetryPolicy: client.RetryList(0, time.Second), Unique: &client.Unique{Key: "u", For: time.Hour.String(), While: "ACTIVE"},
			Throttle: &client.Throttle{Key: "t", PerMs: 1000}, Singleton: &client.Singleton{Key: "s", Else: "drop"}},
		{JobType: "A", Payload: 1, Debounce: &client.Debounce{Key: "d", DelayMs: 1000, MaxDelayMs: 5000}},
	} {
		text, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		var value map[string]any
		if err := json.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		if err := schema.Value.VisitJSON(value); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for name := range value {
			sent[name] = true
		}
	}
	for _, name := range membersOf(schema) {
		if sent[name] == nil {
			t.Errorf("a request cannot have %s", name)
		}
	}
}

func TestARetryPolicyHasEveryFieldOfTheContract(t *testing.T) {
	t.Parallel()
	doc := contract(t)
	var want []string
	for _, name := range []string{"RetryExponential", "RetryFixed", "RetryList"} {
		want = append(want, membersOf(doc.Components.Schemas[name])...)
	}
	slices.Sort(want)
	if got := membersOfType(reflect.TypeFor[client.RetryPolicy]()); !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("it has %v, not %v", got, want)
	}
}

func TestAFilterHasEveryParameterOfTheContract(t *testing.T) {
	t.Parallel()
	asked := make(chan url.Values, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Query()
		_, _ = io.WriteString(w, `{"jobs": [], "nextCursor": null}`)
	}))
	t.Cleanup(server.Close)
	at := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	filter := client.Filter{
		Status: []string{client.Failed}, Type: "A", Queue: "q", Tag: "t", OrderingKey: "o", ErrorCode: "e", TraceID: "i", IdempotencyKey: "k",
		BatchID: "b", FanOutID: "f", After: "a", NoErrorCode: true, Payload: "a:b", Search: "s", OwnerID: "w", EventSource: "/s", EventID: "1", Since: at, Until: at, EndedSince: at, EndedUntil: at,
	}
	if _, err := client.New(server.URL, "").ListPage(t.Context(), filter, 1, "c"); err != nil {
		t.Fatal(err)
	}
	sent := <-asked
	for _, parameter := range contract(t).Paths.Find("/api/jobs").Get.Parameters {
		if p := parameter.Value; p.In == "query" && !sent.Has(p.Name) {
			t.Errorf("a filter cannot have %s", p.Name)
		}
	}
}

func TestEnqueueSQLHasTheRequestAsOptions(t *testing.T) {
	t.Parallel()
	statement, arguments, err := client.JobRequest{
		JobType: "EMAIL", Payload: map[string]any{"to": "a"}, Queue: "mail", Delay: time.Second,
	}.EnqueueSQL()
	want := []any{"EMAIL", `{"to":"a"}`, `{"delayMs":1000,"queue":"mail"}`}
	if err != nil || !strings.Contains(statement, "jobweaver.enqueue(") || !slices.Equal(arguments, want) {
		t.Errorf("%s %v, %v", statement, arguments, err)
	}
	for _, wrong := range []client.JobRequest{{Payload: make(chan int)}, {IdempotencyKey: "a"}, {JobID: "b"}} {
		if _, _, err := wrong.EnqueueSQL(); err == nil {
			t.Errorf("%+v is enqueued", wrong)
		}
	}
}

// A program that uses the client depends on only two small libraries.
