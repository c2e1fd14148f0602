package gateway_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// The rules of CloudEvents 1.0, its JSON format and its HTTP binding, from the project's own conformance suite
// (github.com/cloudevents/conformance): events that it calls valid become jobs, invalid ones are refused. Each event is
// sent in all modes that can carry it.

// conforming returns a minimal event with other attributes; nil removes one.
func conforming(id string, others map[string]any) map[string]any {
	e := map[string]any{
		"specversion": "1.0", "id": id, "type": "com.example.order", "source": "https://example.org/shop", "data": map[string]any{"n": 1},
	}
	maps.Copy(e, others)
	maps.DeleteFunc(e, func(_ string, value any) bool { return value == nil })
	return e
}

func (c *client) structuredEvent(e map[string]any, contentType string) *response {
	c.t.Helper()
	return c.post("/events?jobType=MAIL", indented(e), "Content-Type", contentType)
}

func (c *client) batchOf(events ...any) *response {
	c.t.Helper()
	b, err := json.Marshal(append([]any{}, events...))
	if err != nil {
		c.t.Fatal(err)
	}
	return c.post("/events?jobType=MAIL", string(b), "Content-Type", batchType)
}

// binaryEvent sends attributes as headers, whatever their types are in JSON.
func (c *client) binaryEvent(e map[string]any) *response {
	c.t.Helper()
	headers := []string{"Content-Type", "application/json"}
	for name, value := range e {
		switch name {
		case "data":
		case "datacontenttype":
			headers = append(headers, "Content-Type", fmt.Sprint(value))
		default:
			headers = append(headers, "Ce-"+name, fmt.Sprint(value))
		}
	}
	return c.do(http.MethodPost, "/events?jobType=MAIL", indented(e["data"]), headers...)
}

func TestConformingEventsBecomeJobs(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, others := range map[string]map[string]any{
		"minimal":                {},
		"all core attributes":    {"datacontenttype": "application/json", "dataschema": "https://example.org/schema", "subject": "tests", "time": "2018-04-05T17:31:00Z"},
		"another type of JSON":   {"datacontenttype": "application/vnd.example+json; charset=utf8"},
		"a time with fractions":  {"time": "2018-04-05T17:31:00.000000000Z"},
		"a time east of UTC":     {"time": "2018-04-05T18:31:00+01:00"},
		"a time west of UTC":     {"time": "2018-04-05T16:31:00-01:00"},
		"a relative source":      {"source": "/mycontext/subcontext"},
		"a source of a fragment": {"source": "#fragment"},
		"extensions of each type": {
			"extinteger": 10, "extboolean": true, "extstring": "text", "exturi": "https://example.org", "exturiref": "//authority/path",
			"exttimestamp": "2023-03-31T15:12:00Z", "extbinary": "TWE=",
		},
	} {
		e := conforming(name, others)
		want := h.structuredEvent(e, structuredType).want(http.StatusAccepted).jobID()
		for mode, r := range map[string]*response{
			"structured, with a charset": h.structuredEvent(e, structuredType+"; charset=utf-8"), "binary": h.binaryEvent(e),
		} {
			if got := r.want(http.StatusAccepted).jobID(); got != want {
				t.Errorf("%s, %s: job %s, want %s", name, mode, got, want)
			}
		}
		if r := h.batchOf(e).want(http.StatusAccepted); !strings.Contains(string(r.body), want.String()) {
			t.Errorf("%s in a batch: %s, want %s", name, r.body, want)
		}
		var job struct{ Payload map[string]int }
		if h.get("/api/jobs/" + want.String()).into(&job); job.Payload["n"] != 1 {
			t.Errorf("%s: payload %v", name, job.Payload)
		}
	}
	nulls := strings.Replace(indented(conforming("nulls", nil)), "{", `{"datacontenttype": null, "dataschema": null, "subject": null, "time": null,`, 1)
	h.post("/events?jobType=MAIL", nulls, "Content-Type", structuredType).want(http.StatusAccepted)
	if r := h.batchOf(); r.status != http.StatusAccepted || string(r.body) != `{"jobs":[]}` {
		t.Errorf("an empty batch: %d %s", r.status, r.body)
	}
}

func TestEventsThatDoNotConformAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	good := conforming("good", nil)
	for name, c := range map[string]struct {
		others   map[string]any
		jsonOnly bool // a header has neither types nor case, client.do sends no empty header, and an unusable extension is ignored
	}{
		"no specversion":             {others: map[string]any{"specversion": nil}},
		"no id":                      {others: map[string]any{"id": nil}},
		"no type":                    {others: map[string]any{"type": nil}},
		"no source":                  {others: map[string]any{"source": nil}},
		"an empty specversion":       {others: map[string]any{"specversion": ""}},
		"an unknown specversion":     {others: map[string]any{"specversion": "0.9"}},
		"an empty id":                {others: map[string]any{"id": ""}},
		"an empty type":              {others: map[string]any{"type": ""}},
		"an empty source":            {others: map[string]any{"source": ""}},
		"an empty subject":           {others: map[string]any{"subject": ""}, jsonOnly: true},
		"an empty dataschema":        {others: map[string]any{"dataschema": ""}, jsonOnly: true},
		"an empty datacontenttype":   {others: map[string]any{"datacontenttype": ""}, jsonOnly: true},
		"no media type":              {others: map[string]any{"datacontenttype": "xyz"}, jsonOnly: true}, // 415 as a header
		"no time":                    {others: map[string]any{"time": "lunchtime"}},
		"a time to the minute":       {others: map[string]any{"time": "2018-04-05T18:31Z"}},
		"an offset that is none":     {others: map[string]any{"time": "2018-04-05T18:31:00X"}},
		"an offset out of range":     {others: map[string]any{"time": "2018-04-05T18:31:00+25:00"}},
		"an offset of letters":       {others: map[string]any{"time": "2018-04-05T18:31:00+xx:00"}},
		"an offset of hours only":    {others: map[string]any{"time": "2018-04-05T18:31:00+05"}},
		"a number as id":             {others: map[string]any{"id": 25}, jsonOnly: true},
		"an object as id":            {others: map[string]any{"id": map[string]any{"a": "b"}}, jsonOnly: true},
		"an extension in capitals":   {others: map[string]any{"MyExtension": "bad"}, jsonOnly: true},
		"an extension with a dot":    {others: map[string]any{"my.extension": "bad"}, jsonOnly: true},
		"an extension of a fraction": {others: map[string]any{"myextension": 1.5}, jsonOnly: true},
		"data twice":                 {others: map[string]any{"data_base64": "e30="}, jsonOnly: true},
	} {
		e := conforming(name, c.others)
		answers := map[string]*response{"structured": h.structuredEvent(e, structuredType), "batch": h.batchOf(good, e)}
		if !c.jsonOnly {
			answers["binary"] = h.binaryEvent(e)
		}
		for mode, r := range answers {
			if r.status != http.StatusBadRequest && (mode != "binary" || r.status != http.StatusUnsupportedMediaType) {
				t.Errorf("%s, %s: answered %d %s", name, mode, r.status, r.body)
			}
		}
	}
	h.batchOf(good, "no object").wantError(apierror.InvalidEvent)
	h.batchOf(nil).wantError(apierror.InvalidEvent)
	h.post("/events?jobType=MAIL", indented(good), "Content-Type", batchType).wantError(apierror.InvalidEvent) // not an array
	h.post("/events?jobType=MAIL", "["+indented(good)+"]", "Content-Type", structuredType).wantError(apierror.InvalidEvent)
	if n := h.rows(); n != 0 {
		t.Errorf("%d jobs", n)
	}
}

// A payload is JSON: an event with other data is valid, and refused with that reason.
func TestValidEventWithoutJSONDataIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	e := conforming("text", map[string]any{"datacontenttype": "text/plain", "data": "Simple text"})
	for mode, r := range map[string]*response{"structured": h.structuredEvent(e, structuredType), "binary": h.binaryEvent(e), "batch": h.batchOf(e)} {
		r.wantError(apierror.InvalidEvent)
		if !strings.Contains(r.error().Message, "the data must be JSON") {
			t.Errorf("%s: %s", mode, r.body)
		}
	}
}
