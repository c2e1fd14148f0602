package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
)

// schedules fire every ten seconds, and catch up on all missed ticks.
var schedules = []string{"chaos-a", "chaos-b"}

const (
	tickEvery = 10 * time.Second
	tickCron  = "*/10 * * * * *"
)

// tick is a tick as the API shows it.
type tick struct {
	At      time.Time
	Outcome string
	Reason  *string
	JobID   *string
}

func (l *load) startSchedules() {
	for _, name := range schedules {
		job := map[string]any{
			"jobType": "FUNCTION", "tags": []string{name},
			"payload": map[string]any{"url": l.system.Witness.Address + "/work", "data": installation.Task{Key: name, MS: 50}},
		}
		body, err := json.Marshal(map[string]any{"name": name, "cron": tickCron, "missed": "all", "job": job})
		if err != nil {
			panic(err) // maps of texts
		}
		l.post("/api/schedules", body, nil)
	}
}

// stopSchedules pauses the schedules.
func (l *load) stopSchedules() {
	for _, name := range schedules {
		l.post("/api/schedules/"+name+"/pause", nil, nil)
	}
}

// setLimit limits the second queue.
func (l *load) setLimit() {
	body := fmt.Appendf(nil, `{"maxRunning": %d}`, limit)
	l.do(http.MethodPut, "/api/controls/queue/"+installation.LimitedQueue, body, nil)
}

// ticks lists the ticks of a schedule.
func (l *load) ticks(ctx context.Context, name string) (all []tick, err error) {
	query := url.Values{"limit": {"200"}}
	for {
		var page struct {
			Ticks      []tick
			NextCursor *string
		}
		path := "/api/schedules/" + name + "/ticks?" + query.Encode()
		if _, err := l.gateways[0].Do(ctx, http.MethodGet, path, "", nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Ticks...)
		if page.NextCursor == nil {
			return all, nil
		}
		query.Set("cursor", *page.NextCursor)
	}
}
