package gateway_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

const logJob = `{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]}}`

type scheduleShown struct {
	Name, Cron, TimeZone, Overlap, Missed string
	OwnerID                               *string
	Paused                                bool
	NextAt, LastAt                        *time.Time
	LastJobID                             *uuid.UUID
	Upcoming                              []time.Time
}

func TestAScheduleThatAnotherClientHasChangedIsNotReplaced(t *testing.T) {
	t.Parallel()
	h := open(t)
	const path = "/api/schedules/shared"
	body := func(cron string) string { return `{"cron": "` + cron + `", "job": ` + logJob + `}` }
	match := func(cron, tag string) *response {
		return h.do(http.MethodPut, path, body(cron), "Content-Type", "application/json", "If-Match", tag)
	}
	match("@daily", "*").wantError(apierror.PreconditionFailed) // it does not exist
	first := h.put(path, body("@daily")).want(http.StatusCreated).header.Get("ETag")
	if read := h.get(path).want(http.StatusOK).header.Get("ETag"); first == "" || read != first {
		t.Errorf("created with the ETag %s, read with %s", first, read)
	}
	second := match("@hourly", first).want(http.StatusOK).header.Get("ETag")
	match("@weekly", first).wantError(apierror.PreconditionFailed)
	h.post(path+"/run", "").want(http.StatusAccepted) // changes nothing that the tag is about
	if read := h.get(path).header.Get("ETag"); read != second || second == first {
		t.Errorf("replaced with the ETag %s, after %s, and read with %s", second, first, read)
	}
	paused := h.post(path+"/pause", "").want(http.StatusOK).header.Get("ETag")
	match("@weekly", second).wantError(apierror.PreconditionFailed)
	var s scheduleShown
	h.get(path).into(&s)
	if s.Cron != "@hourly" || !s.Paused {
		t.Errorf("refused, and shown as %+v", s)
	}
	match("@weekly", `"other", `+paused).want(http.StatusOK)
	match("@daily", "*").want(http.StatusOK)
	h.put(path, body("@weekly")).want(http.StatusOK) // without the header, as before
}

func TestAScheduleThatAnotherClientHasChangedIsNeitherPausedNorRunNorDeleted(t *testing.T) {
	t.Parallel()
	h := open(t)
	const path = "/api/schedules/shared"
	seen := h.put(path, `{"cron": "@daily", "job": `+logJob+`}`).want(http.StatusCreated).header.Get("ETag")
	now := h.put(path, `{"cron": "@hourly", "job": `+logJob+`}`).want(http.StatusOK).header.Get("ETag")
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{http.MethodPost, path + "/pause", http.StatusOK}, {http.MethodPost, path + "/resume", http.StatusOK},
		{http.MethodPost, path + "/run", http.StatusAccepted}, {http.MethodDelete, path, http.StatusNoContent},
	} {
		h.do(c.method, c.path, "", "If-Match", seen).wantError(apierror.PreconditionFailed)
		if read := h.get(path).want(http.StatusOK).header.Get("ETag"); read != now {
			t.Errorf("%s %s was refused, and the ETag is %s after %s", c.method, c.path, read, now)
		}
		done := h.do(c.method, c.path, "", "If-Match", now).want(c.status)
		if tag := done.header.Get("ETag"); tag != "" {
			seen, now = now, tag
		}
	}
	h.do(http.MethodDelete, path, "", "If-Match", now).wantError(apierror.ScheduleNotFound)
}

func TestScheduleIsCreatedShownReplacedAndDeleted(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.post("/api/schedules", `{"name": "nightly.1", "cron": "30 2 * * *", "timeZone": "Europe/Berlin", "job": `+logJob+`}`)
	var s scheduleShown
	made.want(http.StatusCreated).into(&s)
	if made.header.Get("Location") != "/api/schedules/nightly.1" || s.Name != "nightly.1" || s.Overlap != "allow" || s.Missed != "one" ||
		s.Paused || s.OwnerID != nil || s.LastAt != nil || len(s.Upcoming) != 5 || !s.NextAt.Equal(s.Upcoming[0]) {
		t.Errorf("%s\n%s", made.header, made.body)
	}
	h.post("/api/schedules", `{"name": "nightly.1", "cron": "@daily", "job": `+logJob+`}`).wantError(apierror.ScheduleExists)
	var again scheduleShown
	h.put("/api/schedules/nightly.1", `{"cron": "@hourly", "overlap": "skip", "missed": "all", "job": `+logJob+`}`).
		want(http.StatusOK).into(&again)
	if again.Cron != "@hourly" || again.TimeZone != "UTC" || again.Overlap != "skip" || again.Missed != "all" {
		t.Errorf("replaced by %+v", again)
	}
	h.get("/api/schedules/nightly.1").want(http.StatusOK).into(&s)
	if s.Cron != "@hourly" {
		t.Errorf("shown as %+v", s)
	}
	h.put("/api/schedules/other", `{"name": "other", "cron": "@every 90s", "job": `+logJob+`}`).want(http.StatusCreated)
	if r := h.do(http.MethodDelete, "/api/schedules/nightly.1", "").want(http.StatusNoContent); len(r.body) > 0 {
		t.Errorf("deleted: %s", r.body)
	}
	for _, r := range []*response{
		h.get("/api/schedules/nightly.1"), h.do(http.MethodDelete, "/api/schedules/nightly.1", ""), h.get("/api/schedules/%00"),
		h.post("/api/schedules/nightly.1/pause", ""), h.post("/api/schedules/nightly.1/resume", ""),
		h.post("/api/schedules/nightly.1/run", ""), h.get("/api/schedules/nightly.1/ticks"),
	} {
		r.wantError(apierror.ScheduleNotFound)
	}
}

func TestSchedulesArePaged(t *testing.T) {
	t.Parallel()
	h := open(t)
	for i := range 5 {
		for _, owner := range []string{"x", "y:z"} {
			h.post("/api/schedules", fmt.Sprintf(`{"name": "s%d", "cron": "@daily", "job": %s, "ownerId": %q}}`, i,
				strings.TrimSuffix(logJob, "}"), owner)).want(http.StatusCreated)
		}
	}
	seen := map[string]bool{}
	for path := "/api/schedules?limit=3"; path != ""; {
		var page struct {
			Schedules  []scheduleShown
			NextCursor *string
		}
		h.get(path).want(http.StatusOK).into(&page)
		for _, s := range page.Schedules {
			seen[s.Name+*s.OwnerID] = true
		}
		path = ""
		if page.NextCursor != nil {
			path = "/api/schedules?limit=3&cursor=" + url.QueryEscape(*page.NextCursor)
		}
	}
	if len(seen) != 10 {
		t.Errorf("saw %v", seen)
	}
	h.get("/api/schedules/s1").wantError(apierror.InvalidJobRequest, "ownerId")
	var s scheduleShown
	h.get("/api/schedules/s1?ownerId=x").want(http.StatusOK).into(&s)
	if *s.OwnerID != "x" {
		t.Errorf("%+v", s)
	}
}

func TestAScheduleIsPausedResumedAndRunByHand(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.post("/api/schedules", `{"name": "a", "cron": "0 0 1 1 *", "job": `+logJob+`}`).want(http.StatusCreated)
	var s scheduleShown
	h.post("/api/schedules/a/pause", "").want(http.StatusOK).into(&s)
	if !s.Paused || s.NextAt != nil || len(s.Upcoming) > 0 {
		t.Errorf("paused: %+v", s)
	}
	var run struct{ JobID uuid.UUID }
	ran := h.post("/api/schedules/a/run", "").want(http.StatusAccepted)
	ran.into(&run)
	e := h.broker.next(t)
	if ran.header.Get("Location") != "/api/jobs/"+run.JobID.String() || e.ID() != jobevent.CreatedID(run.JobID) ||
		e.Type() != jobevent.TypeCreated {
		t.Errorf("%s, published %s", ran.header, e)
	}
	var resumed scheduleShown
	h.post("/api/schedules/a/resume", "").want(http.StatusOK).into(&resumed)
	if resumed.Paused || resumed.NextAt == nil || *resumed.LastJobID != run.JobID {
		t.Errorf("resumed: %+v", resumed)
	}
	h.post("/api/schedules/a/run", "").want(http.StatusAccepted)
	var page struct {
		Ticks []struct {
			At              time.Time
			Outcome, Reason string
			JobID           *uuid.UUID
		}
		NextCursor *string
	}
	h.get("/api/schedules/a/ticks?limit=1").want(http.StatusOK).into(&page)
	if len(page.Ticks) != 1 || page.NextCursor == nil || page.Ticks[0].Outcome != "fired" || page.Ticks[0].Reason != "manual" {
		t.Fatalf("%+v", page)
	}
	h.get("/api/schedules/a/ticks?limit=1&cursor=" + url.QueryEscape(*page.NextCursor)).want(http.StatusOK).into(&page)
	if len(page.Ticks) != 1 || *page.Ticks[0].JobID != run.JobID {
		t.Errorf("%+v", page)
	}
	var job struct {
		Schedule *struct {
			Name string
			At   time.Time
		}
	}
	h.get("/api/jobs/" + run.JobID.String()).want(http.StatusOK).into(&job)
	if job.Schedule == nil || job.Schedule.Name != "a" || !job.Schedule.At.Equal(page.Ticks[0].At) {
		t.Errorf("the job's schedule is %+v", job.Schedule)
	}
}

func TestInvalidSchedulesAreRefusedWithThePath(t *testing.T) {
	t.Parallel()
	h := open(t)
	with := func(fields string) string { return `{"name": "a", "job": ` + logJob + `, ` + fields + `}` }
	ofJob := func(fields string) string {
		return `{"name": "a", "cron": "@daily", "job": ` + strings.TrimSuffix(logJob, "}") + `, ` + fields + `}}`
	}
	for body, path := range map[string]string{
		`{}`: "cron", `[]`: "", `{"cron": "@daily", "job": ` + logJob + `}`: "name", with(`"cron": 5`): "cron",
		with(`"cron": "* * * 13 *"`): "cron", with(`"cron": "0 0 30 2 *"`): "cron", with(`"cron": "@every 1ms"`): "cron",
		with(`"cron": "@daily", "timeZone": "Mars/Olympus"`): "timeZone", with(`"cron": "@daily", "overlap": "x"`): "overlap",
		with(`"cron": "@daily", "missed": "x"`): "missed", with(`"cron": "@daily", "paused": 1`): "paused",
		with(`"cron": "@daily", "x": 1`): "x", with(`"cron": "@daily", "endAt": "2020-01-01T00:00:00Z"`): "endAt",
		with(`"cron": "@daily", "startAt": "2099-01-01T00:00:00Z"`):                                      "startAt",
		with(`"cron": "@daily", "startAt": "2030-01-02T00:00:00Z", "endAt": "2030-01-01T00:00:00Z"`):     "endAt",
		with(`"cron": "0 0 29 2 *", "startAt": "2029-01-02T00:00:00Z", "endAt": "2029-03-03T00:00:00Z"`): "endAt",
		strings.Replace(with(`"cron": "@daily"`), `"a"`, `"A"`, 1):                                       "name",
		strings.Replace(with(`"cron": "@daily"`), `"a"`, `"`+strings.Repeat("a", 101)+`"`, 1):            "name",
		`{"name": "a", "cron": "@daily", "job": 5}`:                                                      "job",
		`{"name": "a", "cron": "@daily", "job": {"jobType": "SIMULATION"}}`:                              "job.payload",
		`{"name": "a", "cron": "@daily", "job": {"jobType": "SIMULATION", "payload": {"steps": [{}]}}}`:  "job.payload.steps[0].type",
		`{"name": "a", "cron": "@daily", "job": {"jobType": "NONE", "payload": 1}}`:                      "job.jobType",
		ofJob(`"queue": "none"`): "job.queue", ofJob(`"runAt": "2026-11-22T08:00:00Z"`): "job.runAt", ofJob(`"delayMs": 0`): "job.delayMs",
		ofJob(`"idempotencyKey": "k"`): "job.idempotencyKey",
	} {
		h.post("/api/schedules", body).wantError(apierror.InvalidJobRequest, path)
	}
	h.put("/api/schedules/b", with(`"cron": "@daily"`)).wantError(apierror.InvalidJobRequest, "name")
	h.put("/api/schedules/a?ownerId=x", with(`"cron": "@daily"`)).wantError(apierror.InvalidJobRequest, "job.ownerId")
	h.get("/api/schedules?limit=0&x=1").wantError(apierror.InvalidJobRequest, "limit", "x")
	h.get("/api/schedules/a/ticks?cursor=x").wantError(apierror.InvalidJobRequest, "cursor")
	h.do(http.MethodPost, "/api/schedules", "{}", "Content-Type", "text/plain").wantError(apierror.UnsupportedMediaType)
	h.post("/api/schedules", strings.Repeat(" ", jobspec.MaxJobBytes+20<<10)).wantError(apierror.PayloadTooLarge)
	h.get("/api/schedules/a").wantError(apierror.ScheduleNotFound)
}

// An event that looks like a tick would take the place of the tick.
func TestEventsThatLookLikeTicksAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.do(http.MethodPost, "/events", logJob, "Content-Type", "application/json", "Ce-Specversion", "1.0", "Ce-Id", "1",
		"Ce-Source", "/jobweaver/cron/"+uuid.NewString()+"/a", "Ce-Type", jobevent.TypeSubmit).wantError(apierror.InvalidEvent)
}

func TestAllThatIsWrongWithAScheduleIsListed(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.post("/api/schedules", `{"name": "a", "cron": "30 25 * * *", "timeZone": "Europe/Berln", "job": {"jobType": 1}}`).
		wantError(apierror.InvalidJobRequest, "cron", "timeZone", "job.jobType", "job.payload")
	for cron, paths := range map[string][]string{`""`: {"cron"}, `5`: {"cron"}, `"30 25 * * *"`: {"cron"}, `"@daily"`: nil} {
		refused := h.post("/api/schedules", `{"name": "a", "cron": `+cron+`, "timeZone": "Nowhere", "job": `+logJob+`}`)
		refused.wantError(apierror.InvalidJobRequest, append(paths, "timeZone")...)
		for _, d := range refused.error().Details {
			if strings.Contains(d.Message, "time zone") != (d.Path == "timeZone") {
				t.Errorf("with the cron %s, %s %s", cron, d.Path, d.Message)
			}
		}
	}
	h.get("/api/jobs/nonsense").wantError(apierror.JobNotFound)
	if message := h.get("/api/jobs/nonsense").error().Message; message != `there is no such job: "nonsense" is not an id` {
		t.Errorf("refused with %s", message)
	}
}

func TestTheTimesOfAScheduleThatIsNotStored(t *testing.T) {
	t.Parallel()
	h := open(t)
	times := func(query string) (at []string) {
		var body struct{ Upcoming []string }
		h.get("/api/schedule-times?" + query).want(http.StatusOK).into(&body)
		return body.Upcoming
	}
	const from = "&startAt=2036-03-29T00:00:00Z"
	for query, want := range map[string][]string{
		"cron=30+2+*+*+*&timeZone=Europe/Berlin" + from + "&endAt=2036-03-31T00:00:00Z": {"2036-03-29T01:30:00Z", "2036-03-30T01:00:00Z"},
		"cron=*/10+*+*+*+*+*" + from + "&endAt=2036-03-29T00:00:20Z":                    {"2036-03-29T00:00:00Z", "2036-03-29T00:00:10Z", "2036-03-29T00:00:20Z"},
		"cron=@every+90s" + from + "&endAt=2036-03-29T00:02:00Z":                        {"2036-03-29T00:01:30Z"},
		"cron=@daily" + from + "&endAt=2036-03-28T00:00:00Z":                            {},
	} {
		if got := times(query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	if got := times("cron=@hourly"); len(got) != 5 {
		t.Errorf("%d times", len(got))
	}
	for query, path := range map[string]string{
		"": "cron", "cron=61+*+*+*+*": "cron", "cron=0+0+30+2+*": "cron", "cron=@daily&timeZone=Mars": "timeZone",
		"cron=@daily&startAt=soon": "startAt", "cron=@daily&name=a": "name", "cron=@daily&cron=@hourly": "cron",
	} {
		h.get("/api/schedule-times?"+query).wantError(apierror.InvalidJobRequest, path)
	}
}
