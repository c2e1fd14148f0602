package interplay

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// Streamed is one event of the owner's stream of jobs: a job, or that changes were missed.
type Streamed struct {
	At      time.Time `json:"at"`
	Reload  bool      `json:"reload,omitempty"`
	Job     string    `json:"job,omitempty"`
	Owner   string    `json:"owner,omitempty"`
	Status  string    `json:"status,omitempty"`
	Version int64     `json:"version,omitempty"`
}

// follow writes down the stream until ctx ends. It connects again with the id of the last event, like a browser.
func (x *run) follow(ctx context.Context) {
	last := ""
	for ctx.Err() == nil {
		last = x.followOnce(ctx, last)
		retry.Pause(ctx, 200*time.Millisecond)
	}
}

func (x *run) followOnce(ctx context.Context, last string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, x.URL+"/api/stream", nil)
	if err != nil {
		return last
	}
	req.Header.Set("Authorization", "Bearer "+x.cred.Key)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return last
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return last
	}
	if last == "" { // changes before the first stream are not promised
		x.streamed(Streamed{At: time.Now(), Reload: true})
	}
	name, id := "", ""
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "id":
			id = value
		case "data":
			x.readEvent(name, value)
		case "":
			last = id
		}
	}
	return last
}

func (x *run) readEvent(name, data string) {
	e := Streamed{At: time.Now(), Reload: name == "reload"}
	if name == "job" {
		var j client.Job
		if err := json.Unmarshal([]byte(data), &j); err != nil {
			x.trouble("read an event of the stream: %v", err)
			return
		}
		e.Job, e.Owner, e.Status, e.Version = j.JobID, j.OwnerID, j.Status, j.Version
	}
	if e.Reload || e.Job != "" {
		x.streamed(e)
	}
}

func (x *run) streamed(e Streamed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rec.Streamed = append(x.rec.Streamed, e)
}

// catchUp waits until the stream has sent what the jobs show.
func (x *run) catchUp(ctx context.Context) {
	for began := time.Now(); time.Since(began) < answerWithin && retry.Pause(ctx, 100*time.Millisecond); {
		x.mu.Lock()
		behind := len(missedByStream(x.rec)) > 0
		x.mu.Unlock()
		if !behind {
			return
		}
	}
}

// missedByStream returns the jobs whose last change the stream should have sent, and has not, with what it sent last.
func missedByStream(r *Record) map[string]Streamed {
	last, missed := map[string]Streamed{}, map[string]Streamed{}
	var reload time.Time // changes before it are not promised
	for _, e := range r.Streamed {
		if e.Reload {
			reload = e.At
		} else {
			last[e.Job] = e
		}
	}
	for id, j := range r.Listed {
		if len(r.Streamed) > 0 && j.UpdatedAt.After(reload) && last[id].Version != j.Version {
			missed[id] = last[id]
		}
	}
	return missed
}

var streamRules = []Rule{
	{
		"streamed", "the stream sends every change after the start of its response", "openapi.yaml, streamChanges",
		func(f *facts, found func(_, _, _ string)) {
			for id, e := range missedByStream(f.Record) {
				found(f.name(id), fmt.Sprintf("the stream sent version %d: it changed after the last reload", f.Listed[id].Version),
					fmt.Sprintf("version %d of %s, if any", e.Version, e.Status))
			}
		},
	},
	{
		"stream in order", "An event shows the state at the time when it is sent", "openapi.yaml, streamChanges",
		func(f *facts, found func(_, _, _ string)) {
			last := map[string]Streamed{}
			for _, e := range f.Streamed {
				before := last[e.Job]
				if e.Version < before.Version || e.Version == before.Version && e.Status != before.Status && e.Version > 0 {
					found(f.name(e.Job), fmt.Sprintf("version %d of %s or a later one", before.Version, before.Status),
						fmt.Sprintf("version %d of %s", e.Version, e.Status))
				}
				last[e.Job] = e
			}
			for _, s := range f.Seen { // what a list showed of the same version
				i := slices.IndexFunc(f.Streamed, func(e Streamed) bool { return e.Job == s.Job && e.Version == s.Version })
				if i >= 0 && s.Version > 0 && f.Streamed[i].Status != s.Status {
					found(f.name(s.Job), fmt.Sprintf("version %d is %s, as in the list", s.Version, s.Status), f.Streamed[i].Status)
				}
			}
		},
	},
	{
		"own stream", "A key cannot see other owners' jobs", "docs/security.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, e := range f.Streamed {
				if !e.Reload && e.Owner != f.Owner {
					found(e.Job, "a job of the owner "+f.Owner, "one of "+e.Owner)
				}
			}
		},
	},
}
