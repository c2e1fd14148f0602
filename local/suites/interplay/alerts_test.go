package interplay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// alertType is the type of the jobs that send notices of alerts.
const alertType = "ALERT"

// alertName is the name of the alert of an owner.
const alertName = "a0"

// AlertAsked is a request for an alert that was answered.
type AlertAsked struct {
	JobType  string `json:"jobType"` // empty: any
	Failures int    `json:"failures"`
}

// NoticeSeen is a notice of an alert, as the witness got it.
type NoticeSeen struct {
	NoticeID string    `json:"noticeId"`
	At       time.Time `json:"at"`
	State    string    `json:"state"`
	Since    time.Time `json:"since,omitzero"`
	Alert    string    `json:"alert"`
	OwnerID  string    `json:"ownerId"`
	JobType  string    `json:"jobType"`
	Failures int       `json:"failures"`
	Failed   int       `json:"failed"`
	Ended    int       `json:"ended"`

	Wrong string `json:"wrong,omitempty"` // why its signature is not good
}

// notice receives a notice. A job that sends one may run again.
func (w *Witness) notice(out http.ResponseWriter, in *http.Request) {
	l := w.of(in.PathValue("owner"))
	body, err := io.ReadAll(in.Body)
	if l == nil || err != nil {
		out.WriteHeader(http.StatusGone)
		return
	}
	n := &NoticeSeen{}
	if err := json.Unmarshal(body, n); err != nil {
		n.Wrong = err.Error()
	} else if _, err := l.keys.call.Verify(in.Header, body); err != nil {
		n.Wrong = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notices = append(l.notices, n)
}

// alertStep makes, changes, pauses, resumes or tests the alert of the owner.
func (x *run) alertStep(ctx context.Context, s Step) {
	path := "/api/alerts/" + x.key(alertName)
	if s.Do != "alert-put" {
		x.ask(ctx, s.N, http.MethodPost, path+"/"+s.Do[len("alert-"):], nil, Asked{Header: "none"})
		return
	}
	asked := AlertAsked{Failures: s.Ms}
	body := map[string]any{
		"failures": s.Ms, "windowMinutes": 10, "quietMinutes": 60, "to": map[string]any{"webhook": x.Witness.URL + "/alert/" + x.owner},
	}
	if s.Kind != "" {
		asked.JobType = x.kind(Job{Type: s.Kind})
		body["jobType"] = asked.JobType
	}
	x.mu.Lock()
	x.alerts = append(x.alerts, asked) // before it is answered: it may count as soon as it is stored
	x.mu.Unlock()
	x.ask(ctx, s.N, http.MethodPut, path, body, Asked{})
}

// noticeWithin is longer than a notice takes: half a minute.
const noticeWithin = 40 * time.Second

// liftAlerts waits a while for a notice if the alert is to fire, and deletes it: so no further job is made.
func (x *run) liftAlerts(ctx context.Context) {
	x.mu.Lock()
	x.rec.Alerts = slices.Clone(x.alerts)
	x.mu.Unlock()
	if len(x.rec.Alerts) == 0 {
		return
	}
	for began := time.Now(); time.Since(began) < noticeWithin && retry.Pause(ctx, 500*time.Millisecond); {
		a, err := x.API.Alerts.Get(ctx, x.key(alertName))
		if err == nil && (a.Paused || a.Failed < a.Failures || a.AnnouncedAt != nil) {
			break
		}
	}
	x.ask(ctx, 1_000_000, http.MethodDelete, "/api/alerts/"+x.key(alertName), nil, Asked{})
}

// alert draws the alert of the owner, which counts a type that the other owner uses as well, or all types.
func (d *drawing) alert() {
	if d.alerts == 0 || d.eighths("put", 2) {
		if d.alerts == 0 && !d.eighths("alerts", 3) { // the end of a program may wait for a notice
			d.submit()
			return
		}
		d.add(Step{Do: "alert-put", Kind: pick(d, "type", "", "FUNCTION", "PULL"), Ms: pick(d, "failures", 1, 2, 1)})
	} else {
		d.add(Step{Do: pick(d, "command", "alert-test", "alert-pause", "alert-resume")})
	}
	d.alerts++
}

// failedEnds returns how often jobs of the owner have failed that an alert counts.
func (f *facts) failedEnds(jobType string) (n int) {
	f.each(func(j *client.Job) {
		if j.OwnerID != f.Owner || j.JobType == alertType || jobType != "" && j.JobType != jobType {
			return
		}
		for _, l := range f.lives(j) {
			if l.end.To == client.Failed {
				n++
			}
		}
	})
	return n
}

var alertRules = []Rule{
	{
		"own alerts", "An alert counts the jobs of its key's owner", "docs/observability.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, n := range f.Notices {
				asked := func(a AlertAsked) bool { return a.JobType == n.JobType && a.Failures == n.Failures }
				what := "notice " + n.NoticeID
				if n.Wrong != "" || n.OwnerID != f.Owner || n.Alert != f.Base+"-"+alertName || !slices.ContainsFunc(f.Alerts, asked) {
					found(what, "a signed notice of an alert of "+f.Owner+", as it was asked for", fmt.Sprintf("%+v", *n))
				}
				long := slices.ContainsFunc(f.names, func(name string) bool { j := f.Jobs[f.Specs[name].ID]; return j != nil && len(j.History) == 100 })
				if most := f.failedEnds(n.JobType); n.Failed > most && !f.deletes() && !long {
					found(what, fmt.Sprintf("at most %d failures: so many jobs of its owner have failed", most), fmt.Sprint(n.Failed))
				}
			}
		},
	},
	{
		"alerted", "sends a notice when they reach its threshold and when that is over", "docs/observability.md",
		func(f *facts, found func(_, _, _ string)) {
			fired := map[time.Time]string{} // by since
			for _, n := range f.Notices {
				what := "notice " + n.NoticeID
				if n.State != "FIRING" {
					continue
				}
				if before := fired[n.Since]; before != "" && before != n.NoticeID {
					found(what, "one notice that it fires since "+clock(n.Since), "another one, "+before)
				}
				if n.Failed < n.Failures {
					found(what, fmt.Sprintf("%d failures", n.Failures), fmt.Sprint(n.Failed))
				}
				fired[n.Since] = n.NoticeID
			}
			unsent := slices.ContainsFunc(slices.Collect(maps.Values(f.Jobs)), func(j *client.Job) bool { return j.JobType == alertType && j.Status != client.Completed })
			for _, n := range f.Notices {
				if n.State == "RESOLVED" && fired[n.Since] == "" && !unsent && !f.deletes() {
					found("notice "+n.NoticeID, "a notice that it fires since "+clock(n.Since), "none")
				}
			}
		},
	},
}
