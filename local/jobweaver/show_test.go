package main

import (
	"strings"
	"testing"
	"time"
)

// get, list and watch once printed PENDING and nothing else.
func TestJobIsShownWithWhatItWaitsFor(t *testing.T) {
	instant := func(text string) string {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed.Local().Format("2006-01-02 15:04:05.000 -07:00")
	}
	next := instant("2026-01-02T03:05:05Z")
	for name, c := range map[string]struct{ fields, want string }{
		"a pause": {`"status":"PENDING","blockedBy":[{"kind":"pause","id":"queue:default"}]`, "queue default, which is paused"},
		"two things": {
			`"status":"PENDING","blockedBy":[{"kind":"limit","id":"type:a:b"},{"kind":"order","id":"k:1"}]`,
			"type a:b, which is limited; earlier jobs of ordering key k:1",
		},
		"a job":      {`"status":"PENDING","blockedBy":[{"kind":"dependency","id":"j0"}]`, "job j0 to end"},
		"its retry":  {`"status":"RETRYING","nextRunAt":"2026-01-02T03:05:05Z"`, "its time, next at " + next},
		"its time":   {`"status":"SCHEDULED","nextRunAt":"2026-01-02T03:05:05Z"`, "its time, next at " + next},
		"a callback": {`"status":"WAITING","callbackDeadlineAt":"2026-01-02T03:05:05Z"`, "its callback, until " + next},
		"other":      {`"status":"PENDING","blockedBy":[{"kind":"moon","id":"full"}]`, "moon full"},
	} {
		job := `{"jobId":"j1","createdAt":"2026-01-02T03:04:05Z",` + c.fields + `}`
		newGateway(t, map[string]string{"GET /api/jobs/j1": job, "GET /api/jobs": `{"jobs":[` + job + `]}`})
		for _, args := range []string{"get j1", "list"} {
			out, err := run(t, "", strings.Fields(args)...)
			if err != nil || !strings.Contains(out, c.want+"\n") {
				t.Errorf("%s: %s: printed %q, %v", name, args, out, err)
			}
		}
	}
}

func TestAJobIsShownWithTheOutcomesOfItsAttempts(t *testing.T) {

	newGateway(t, map[string]string{"GET /api/jobs/j1": `{"jobId":"j1","createdAt":"2026-01-02T03:04:05Z","status":"RUNNING","attempts":[
		{"attempt":1,"outcome":"lost"},
		{"attempt":2,"outcome":"failed","startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:06.5Z","errorCode":"A.B","message":"no"},
		{"attempt":3,"outcome":null,"startedAt":"2026-01-02T03:04:05Z"}]}`})
	out, err := run(t, "", "get", "j1")
	for _, want := range []string{"attempt 1  lost\n", "attempt 2  failed after 1.5s: A.B: no\n"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("printed %q without %q, %v", out, want, err)
		}
	}
	if strings.Contains(out, "attempt 3") {
		t.Errorf("printed %q", out)
	}
}
