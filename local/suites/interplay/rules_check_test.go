package interplay

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// breaks reports whether a record breaks a rule.
func breaks(r *Record, rule string) (is bool) {
	for _, v := range Check(r) {
		is = is || v.Rule.Name == rule
	}
	return is
}

func TestOnlyAnAttemptAfterARetryMayBeAheadOfTheOutputThatItUses(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		retried bool
		sent    time.Duration // after the end of the other job
		in      string
		wrong   bool
	}{
		"a retry runs at once, with the default":                {retried: true, sent: -time.Second, in: `"none"`},
		"a retry does not get anything else":                    {retried: true, sent: -time.Second, in: `"another"`, wrong: true},
		"a retry after the end has to get the output":           {retried: true, sent: 2 * lateness, in: `"none"`, wrong: true},
		"a retry after the end gets the output":                 {retried: true, sent: 2 * lateness, in: `"output"`},
		"a job that was not retried has to get the output":      {sent: -time.Second, in: `"none"`, wrong: true},
		"a job that was not retried gets the output at the end": {sent: time.Second, in: `"output"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := end.Add(c.sent)
			source := &client.Job{
				JobID: "source", Status: client.Completed, Output: json.RawMessage(`"output"`), Payload: json.RawMessage(`{"data": {"name": "s1.0"}}`),
				History: []client.Move{{At: end, From: client.Queued, To: client.Completed, Attempt: 1}},
			}
			user := &client.Job{
				JobID: "user", Status: client.Completed, After: []string{"source"},
				History: []client.Move{
					{At: sent, From: client.Pending, To: client.Queued, Attempt: 1},
					{At: sent, From: client.Queued, To: client.Completed, Attempt: 1},
				},
			}
			if c.retried {
				user.History = append([]client.Move{
					{At: end.Add(-time.Minute), To: client.Pending},
					{At: end.Add(-time.Minute), From: client.Pending, To: client.Cancelled},
					{At: sent, From: client.Cancelled, To: client.Pending, Reason: "retry"},
				}, user.History...)
			}
			r := &Record{
				Jobs:  map[string]*client.Job{"source": source, "user": user},
				Specs: map[string]*Spec{"s1.1": {ID: "user", Job: Job{Uses: "s1.0"}}},
				Runs:  []*Run{{Job: "user", Attempt: 1, Start: sent, Data: json.RawMessage(`{"in": ` + c.in + `}`)}},
			}
			if breaks(r, "outputs") != c.wrong {
				t.Errorf("a violation: %v, want %v", !c.wrong, c.wrong)
			}
		})
	}
}

func TestARefusedChangeIsSeenUnlessTheJobMayHaveHadTheValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of, body, reason string
		wrong            bool
	}{
		"applied":                            {body: `{"tags": ["green"], "priority": 3}`, reason: "change"},
		"applied in part":                    {body: `{"tags": ["green"], "priority": 7}`, reason: "change", wrong: true},
		"not applied, but shown as such":     {body: `{"tags": ["red"]}`, reason: "change", wrong: true},
		"applied, but shown as refused":      {body: `{"tags": ["green"]}`, reason: "change refused: the job is QUEUED", wrong: true},
		"refused":                            {body: `{"tags": ["red"]}`, reason: "change refused: the job is QUEUED"},
		"refused, and the job had it before": {of: "old", body: `{"tags": ["green"]}`, reason: "change refused: the job is QUEUED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Record{
				Jobs: map[string]*client.Job{"job": {
					JobID: "job", Tags: []string{"green"}, Priority: 3, RunAgainOf: c.of,
					History: []client.Move{{To: client.Queued}, {From: client.Queued, To: client.Queued, Reason: c.reason}},
				}},
				Asked: []*Asked{{Method: "PATCH", Path: "/api/jobs/job", Status: 202, Jobs: []string{"job"}, Body: json.RawMessage(c.body)}},
			}
			if breaks(r, "changed") != c.wrong {
				t.Errorf("a violation: %v, want %v", !c.wrong, c.wrong)
			}
		})
	}
}

func TestAStartThatADeletedJobHadReservedIsNotKnown(t *testing.T) {
	t.Parallel()
	accepted := time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		specs map[string]*Spec
		wrong bool
	}{
		"no job was before":        {wrong: true},
		"a deleted job was before": {specs: map[string]*Spec{"s1": {ID: "gone", Made: true, Job: Job{Throttle: "t0"}}}},
		"it has another key":       {specs: map[string]*Spec{"s1": {ID: "gone", Made: true, Job: Job{Throttle: "t1"}}}, wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			later := accepted.Add(time.Minute)
			r := &Record{
				Specs: c.specs, Gone: map[string]*client.Job{"gone": {JobID: "gone"}}, // as a list shows it
				Jobs: map[string]*client.Job{"job": {
					JobID: "job", CreatedAt: accepted, RunAt: &later, Throttle: &client.Throttle{Key: "p1-t0", PerMs: 300},
				}},
			}
			if breaks(r, "own throttle") != c.wrong {
				t.Errorf("a violation: %v, want %v", !c.wrong, c.wrong)
			}
		})
	}
}
