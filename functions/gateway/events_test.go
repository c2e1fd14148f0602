package gateway_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

const (
	submitType     = jobevent.TypeSubmit
	structuredType = "application/cloudevents+json"
	batchType      = "application/cloudevents-batch+json"
)

// binary posts a job.submit event in binary mode; headers override its own.
func (c *client) binary(path, id, data string, headers ...string) *response {
	c.t.Helper()
	return c.post(path, data, append([]string{"Ce-Specversion", "1.0", "Ce-Id", id, "Ce-Source", "/t", "Ce-Type", submitType},
		headers...)...)
}

func envelope(id, typ, data string) string {
	return fmt.Sprintf(`{"specversion": "1.0", "id": %q, "source": "/t", "type": %q, "data": %s}`, id, typ, data)
}

func TestTheSameEventInEveryModeIsTheSameJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.binary("/events", "ü 1%", plainJob, "Ce-Id", "%C3%BC%201%25").want(http.StatusAccepted).jobID()
	structured := h.post("/events", envelope("ü 1%", submitType, plainJob), "Content-Type", structuredType+"; charset=UTF-8")
	if got := structured.want(http.StatusAccepted).jobID(); got != first {
		t.Errorf("structured: job %s, binary: %s", got, first)
	}
	again := h.post("/events", envelope("ü 1%", submitType, with(`"priority": 9, "ownerId": "else"`)), "Content-Type", structuredType)
	if got := again.want(http.StatusAccepted).jobID(); got != first {
		t.Errorf("another body: job %s, first %s", got, first)
	}
	r := h.post("/events", "["+envelope("ü 1%", submitType, plainJob)+","+envelope("2", submitType, plainJob)+"]",
		"Content-Type", "Application/CloudEvents-Batch+JSON; charset=utf-8").want(http.StatusAccepted)
	var body struct {
		Jobs []struct {
			ID    string
			JobID uuid.UUID
		}
	}
	if r.into(&body); len(body.Jobs) != 2 || body.Jobs[0].JobID != first || body.Jobs[0].ID != "ü 1%" || body.Jobs[1].ID != "2" {
		t.Errorf("batch: %s", r.body)
	}
	if n := h.rows(); n != 2 {
		t.Errorf("%d jobs", n)
	}
}

func TestAnyEventBecomesAJobByParameters(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.binary("/events?jobType=MAIL&queue=mail&priority=3&tags=a,b&delayMs=1000", "1", `{"to": "a@example.org"}`,
		"Ce-Type", "com.example.signup").want(http.StatusAccepted).jobID()
	var job struct {
		JobType, Queue, Status string
		Priority               int
		Payload                map[string]string
		Tags                   []string
	}
	h.get("/api/jobs/" + id.String()).into(&job)
	if job.JobType != "MAIL" || job.Queue != "mail" || job.Priority != 3 || job.Payload["to"] != "a@example.org" ||
		len(job.Tags) != 2 || job.Status != "SCHEDULED" {
		t.Errorf("job %+v", job)
	}
	in64 := strings.Replace(envelope("2", "com.example.signup", "0"), `"data": 0`,
		`"data_base64": "`+base64.StdEncoding.EncodeToString([]byte(`{"to": "b"}`))+`"`, 1)
	h.post("/events?jobType=MAIL", in64, "Content-Type", structuredType).want(http.StatusAccepted)
	h.binary("/events?jobType=MAIL&tags=50%", "3", "1", "Ce-Type", "com.example.signup").wantError(apierror.InvalidEvent)
}

func TestTraceOfAnEventContinues(t *testing.T) {
	t.Parallel()
	h := open(t)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	id := h.binary("/events", "1", plainJob, "Ce-Traceparent", parent).want(http.StatusAccepted).jobID()
	var job struct{ TraceID string }
	if h.get("/api/jobs/" + id.String()).into(&job); job.TraceID != "0af76519-16cd-43dd-8448-eb211c80319c" {
		t.Errorf("trace %s", job.TraceID)
	}
}

func TestPreferReplyGetsAnEmptyResponse(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := h.binary("/events", "1", plainJob, "Prefer", "respond-async, reply").want(http.StatusAccepted)
	if len(r.body) != 0 || r.header.Get("Content-Type") != "" {
		t.Errorf("answered %q %q", r.header.Get("Content-Type"), r.body)
	}
	if n := h.rows(); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

func TestOneBadEventRefusesTheBatch(t *testing.T) {
	t.Parallel()
	h := open(t)
	good := envelope("1", submitType, plainJob)
	for name, c := range map[string]struct {
		bad  string
		code apierror.Code
		path string
	}{
		"a bad job":   {envelope("2", submitType, `{"jobType": "SIMULATION"}`), bad, "[1].data.payload"},
		"a bad queue": {envelope("2", submitType, with(`"queue": "no"`)), bad, "[1].data.queue"},
		"no id":       {`{"specversion": "1.0", "source": "/t", "type": "` + submitType + `", "data": {}}`, apierror.InvalidEvent, ""},
		"no event":    {`7`, apierror.InvalidEvent, ""},
	} {
		r := h.post("/events", "["+good+","+c.bad+"]", "Content-Type", batchType)
		if c.path == "" {
			r.wantError(c.code)
		} else {
			r.wantError(c.code, c.path)
		}
		if !strings.Contains(r.error().Message, "event 1") {
			t.Errorf("%s: %s", name, r.body)
		}
	}
	if n := h.rows(); n != 0 {
		t.Errorf("%d jobs", n)
	}
}

func TestUsedIdempotencyKeyRefusesTheBatchOfEvents(t *testing.T) {
	t.Parallel()
	h := open(t)
	keyed := with(`"idempotencyKey": "k"`)
	id := h.submit(keyed)
	r := h.post("/events", "["+envelope("1", submitType, plainJob)+","+
		envelope("2", submitType, strings.Replace(keyed, "hi", "ho", 1))+"]", "Content-Type", batchType)
	r.wantError(apierror.InvalidEvent)
	if n := h.rows(); n != 1 {
		t.Errorf("%d jobs", n)
	}
	if got := h.binary("/events", "3", keyed).want(http.StatusAccepted).jobID(); got != id {
		t.Errorf("an event with the key of job %s is job %s", id, got)
	}
}

func TestEmptyBatchIsAccepted(t *testing.T) {
	t.Parallel()
	h := open(t)
	if r := h.post("/events", " [] ", "Content-Type", batchType).want(http.StatusAccepted); string(r.body) != `{"jobs":[]}` {
		t.Errorf("answered %s", r.body)
	}
}

func TestHostileEventsAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	invalid := apierror.InvalidEvent
	many := "[" + strings.TrimSuffix(strings.Repeat(envelope("1", submitType, plainJob)+",", 1001), ",") + "]"
	for name, c := range map[string]struct {
		path, body string
		headers    []string
		code       apierror.Code
	}{
		"no event at all":         {"", plainJob, nil, media},
		"a form":                  {"", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, media},
		"an event in Avro":        {"", "x", []string{"Content-Type", "application/cloudevents+avro", "Ce-Specversion", "1.0"}, media},
		"an event of 0.3":         {"", plainJob, []string{"Ce-Specversion", "0.3", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", submitType}, invalid},
		"an event of 9.9":         {"", plainJob, []string{"Ce-Specversion", "9.9", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", submitType}, invalid},
		"no id":                   {"", plainJob, []string{"Ce-Specversion", "1.0", "Ce-Source", "/t", "Ce-Type", submitType}, invalid},
		"no source":               {"", plainJob, []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Type", submitType}, invalid},
		"no type":                 {"", plainJob, []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t"}, invalid},
		"a source that is no URI": {"", plainJob, []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "%3A%00", "Ce-Type", submitType}, invalid},
		"a bad time":              {"", plainJob, []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", submitType, "Ce-Time", "noon"}, invalid},
		"bad UTF-8 in an id":      {"", plainJob, []string{"Ce-Specversion", "1.0", "Ce-Id", "\xff", "Ce-Source", "/t", "Ce-Type", submitType}, invalid},
		"an id with NUL":          {"", plainJob, []string{"Ce-Specversion", "1.0", "Ce-Id", "a%00", "Ce-Source", "/t", "Ce-Type", submitType}, invalid},
		"an id of 3,000 bytes":    {"", plainJob, []string{"Ce-Specversion", "1.0", "Ce-Id", strings.Repeat("a", 3000), "Ce-Source", "/t", "Ce-Type", submitType}, invalid},
		"data that is no JSON":    {"", "<a/>", []string{"Content-Type", "text/xml", "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", submitType}, invalid},
		"parameters of no job":    {"?queue=mail", "{}", []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", "com.example.x"}, invalid},
		"a submit with ?jobType":  {"?jobType=MAIL", plainJob, []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", submitType}, invalid},
		"a bad parameter":         {"?jobType=MAIL&priority=10", "{}", []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", "com.example.x"}, bad},
		"an unknown parameter":    {"?jobType=MAIL&colour=red", "{}", []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", "com.example.x"}, bad},
		"no data":                 {"?jobType=MAIL", "", []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", "com.example.x"}, bad},
		"broken JSON":             {"", `{"specversion": `, []string{"Content-Type", structuredType}, invalid},
		"trailing JSON":           {"", envelope("1", submitType, plainJob) + "{}", []string{"Content-Type", structuredType}, invalid},
		"an array for an event":   {"", "[]", []string{"Content-Type", structuredType}, invalid},
		"null for an event":       {"", "null", []string{"Content-Type", structuredType}, invalid},
		"an event for an array":   {"", envelope("1", submitType, plainJob), []string{"Content-Type", batchType}, invalid},
		"null for an array":       {"", "null", []string{"Content-Type", batchType}, invalid},
		"null in an array":        {"", "[null]", []string{"Content-Type", batchType}, invalid},
		"an id that is a number":  {"", strings.Replace(envelope("1", submitType, plainJob), `"id": "1"`, `"id": 1`, 1), []string{"Content-Type", structuredType}, invalid},
		"an attribute twice":      {"", strings.Replace(envelope("1", submitType, plainJob), `"id": "1"`, `"id": "1", "id": "2"`, 1), []string{"Content-Type", structuredType}, invalid},
		"an attribute of nothing": {"", strings.Replace(envelope("1", submitType, plainJob), `"id": "1"`, `"": "x", "id": "1"`, 1), []string{"Content-Type", structuredType}, invalid},
		"an attribute of objects": {"", strings.Replace(envelope("1", submitType, plainJob), `"id": "1"`, `"ext": {"a": 1}, "id": "1"`, 1), []string{"Content-Type", structuredType}, invalid},
		"data twice":              {"", strings.Replace(envelope("1", submitType, plainJob), `"id": "1"`, `"data_base64": "e30=", "id": "1"`, 1), []string{"Content-Type", structuredType}, invalid},
		"bad base64":              {"?jobType=MAIL", `{"specversion": "1.0", "id": "1", "source": "/t", "type": "x", "data_base64": "!"}`, []string{"Content-Type", structuredType}, invalid},
		"base64 of a number":      {"?jobType=MAIL", `{"specversion": "1.0", "id": "1", "source": "/t", "type": "x", "data_base64":1}`, []string{"Content-Type", structuredType}, invalid},
		"bad UTF-8":               {"", envelope("1", submitType, "\"\xff\""), []string{"Content-Type", structuredType}, invalid},
		"1,001 events":            {"", many, []string{"Content-Type", batchType}, large},
		"an event of over 512 KiB": {"?jobType=MAIL", `"` + strings.Repeat("x", 512<<10) + `"`,
			[]string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/t", "Ce-Type", "com.example.x"}, large},
		"the same, structured":  {"?jobType=MAIL", envelope("1", "x", `"`+strings.Repeat("x", 512<<10)+`"`), []string{"Content-Type", structuredType}, large},
		"a megabyte of source":  {"", envelope(strings.Repeat("x", 1<<20), "x", "1"), []string{"Content-Type", structuredType}, large},
		"a batch of over 16 MB": {"", `["` + strings.Repeat("x", 16<<20) + `"]`, []string{"Content-Type", batchType}, large},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.post("/events"+c.path, c.body, c.headers...)
			r.t = t
			r.wantError(c.code)
		})
	}
	if n := h.rows(); n != 0 {
		t.Errorf("%d jobs", n)
	}
}

// A sender that gets no answer, such as Knative's Broker, finds its job by its event.
func TestAJobIsFoundByItsEvent(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	acme, other, admin := h.as("acme", "submit", "read"), h.as("other", "submit", "read"), h.as("", "admin")
	event := []string{"Ce-Specversion", "1.0", "Ce-Id", "order 17%", "Ce-Source", "/shop?a=1", "Ce-Type", "com.example.placed"}
	mine := acme.post("/events?jobType=MAIL", `{}`, event...).jobID()
	theirs := other.post("/events?jobType=MAIL", `{}`, event...).jobID()
	plain := acme.post("/api/jobs", plainJob).jobID()

	list := func(c *client, query string, headers ...string) (ids []uuid.UUID) {
		t.Helper()
		var page struct{ Jobs []struct{ JobID uuid.UUID } }
		c.get("/api/jobs?"+query, headers...).into(&page)
		for _, job := range page.Jobs {
			ids = append(ids, job.JobID)
		}
		return ids
	}
	of := url.Values{"eventSource": {"/shop?a=1"}, "eventId": {"order 17%"}}.Encode()
	for _, c := range []struct {
		by    *client
		query string
		want  []uuid.UUID
	}{
		{acme, of, []uuid.UUID{mine}}, {other, of, []uuid.UUID{theirs}},
		{acme, of + "&type=MAIL&status=PENDING", []uuid.UUID{mine}}, {acme, of + "&status=FAILED", nil}, {acme, of + "&ownerId=other", nil},
		{acme, "eventSource=/shop&eventId=order", nil}, {admin, of, nil},
	} {
		if got := list(c.by, c.query); !slices.Equal(got, c.want) {
			t.Errorf("%s finds %v, not %v", c.query, got, c.want)
		}
	}
	if got := list(admin, of, "X-Owner-Id", "acme"); !slices.Equal(got, []uuid.UUID{mine}) {
		t.Errorf("an admin that acts for the owner finds %v", got)
	}
	acme.get("/api/jobs?eventId=1").wantError(apierror.InvalidJobRequest, "eventId")
	var shown struct{ Event *struct{ Source, ID string } }
	acme.get("/api/jobs/" + mine.String()).into(&shown)
	if shown.Event == nil || shown.Event.Source != "/shop?a=1" || shown.Event.ID != "order 17%" {
		t.Errorf("the job shows the event %+v", shown.Event)
	}
	shown.Event = nil
	if acme.get("/api/jobs/" + plain.String()).into(&shown); shown.Event != nil {
		t.Errorf("a job of no event shows %+v", shown.Event)
	}
}

// A handler that forwards an event, or that asks which order its job is about, needs all of its attributes.
func TestAJobKeepsTheAttributesOfItsEvent(t *testing.T) {
	t.Parallel()
	h := open(t)
	event := func(id, more string) string {
		return `{"specversion": "1.0", "id": "` + id + `", "source": "/shop/orders", "type": "com.example.placed", "data": {}, ` + more + `}`
	}
	large := strings.Repeat("x", 3970)
	for more, want := range map[string]string{
		`"subject": "größe < 9", "time": "2026-11-28T01:02:03.5+01:00", "dataschema": "https://example.com/s", "datacontenttype": "application/json",
			"tenantid": "a b%", "n": 7, "gift": true, "jwsig": "v1"`: `,"subject":"größe < 9","time":"2026-11-28T00:02:03.5Z","dataschema":"https://example.com/s","tenantid":"a b%","n":7,"gift":true`,
		`"tenantid": "x", "a": "` + large + `", "subject": "s"`:                       `,"a":"` + large + `","subject":"s"`, // there is no room for tenantid
		`"tenantid": "x", "subject": "` + strings.Repeat("ü", 700) + `"`:              `,"tenantid":"x"`,                    // six bytes each in a header
		`"tenantid": "x", "subject": "` + large + large + `", "dataschema": "a:s"`:    `,"tenantid":"x","dataschema":"a:s"`,
		`"time": "2026-11-28T00:00:00Z", "traceparent": "00-` + traceOfEvent + `-01"`: `,"time":"2026-11-28T00:00:00Z","traceparent":"00-` + traceOfEvent + `-01"`,
	} {
		id := uuid.NewString()
		job := h.post("/events?jobType=MAIL", event(id, more), "Content-Type", structuredType).want(http.StatusAccepted).jobID()
		created, err := jobevent.Decode[jobevent.Created](h.broker.next(t))
		if err != nil {
			t.Fatal(err)
		}
		want = `{"id":"` + id + `","source":"/shop/orders","type":"com.example.placed"` + want + `}`
		var shown struct{ Event json.RawMessage }
		h.get("/api/jobs/" + job.String()).into(&shown)
		wantJSON(t, shown.Event, want)
		wantJSON(t, created.Event, want)

		again := h.post(runAgainPath(job), "").want(http.StatusAccepted).jobID()
		if created, err = jobevent.Decode[jobevent.Created](h.broker.next(t)); err != nil || created.JobID != again {
			t.Fatalf("published %+v, %v", created, err)
		}
		wantJSON(t, created.Event, want)
	}
	h.submit(plainJob)
	if data := h.broker.next(t).Data(); bytes.Contains(data, []byte("event")) {
		t.Errorf("a job of no event is published as %s", data)
	}
}

const traceOfEvent = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"

func wantJSON(t *testing.T, got []byte, want string) {
	t.Helper()
	var is, wanted any
	if err := errors.Join(json.Unmarshal(got, &is), json.Unmarshal([]byte(want), &wanted)); err != nil || !reflect.DeepEqual(is, wanted) {
		t.Errorf("it is %s, want %s, %v", got, want, err)
	}
}

func TestADebouncedJobHasTheEventOfItsLastRequest(t *testing.T) {
	t.Parallel()
	h := open(t)
	held := func(delayMs string) string { return with(`"debounce": {"key": "k", "delayMs": ` + delayMs + `}`) }
	one := func(id, delayMs string) string { return envelope(id, submitType, held(delayMs)) }
	for _, events := range []string{one("1", "3600000") + "," + one("2", "3600000"), one("3", "3600000"), one("4", "1")} {
		h.post("/events", "["+events+"]", "Content-Type", batchType).want(http.StatusAccepted)
	}
	if created, err := jobevent.Decode[jobevent.Created](h.broker.next(t)); err != nil || !bytes.Contains(created.Event, []byte(`"id":"4"`)) {
		t.Errorf("it has the event %s, %v", created.Event, err)
	}
}
