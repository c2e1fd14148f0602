package manifests

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
)

// pings has the longest allowed time between the pings of each function that has no clock of its own.
var pings = map[string]time.Duration{
	"dispatch":   time.Second,     // a due job may be late by this time
	"cron":       time.Second,     // likewise
	"bulk":       time.Second,     // as often as its own clock ticks
	"watchdog":   2 * time.Second, // likewise: a lost worker's jobs run again within 30 s
	"projection": 5 * time.Second, // half of the time between two passes: a ping may come a little too early
	"retention":  time.Minute,     // a ping walks for 10 s; with rarer pings its position would be lost
}

func TestEveryClockTicks(t *testing.T) {
	eachWay(t, func(t *testing.T, objects []Object, workloads []Workload) {
		sources := map[string][]*sourcesv1.PingSource{}
		for _, source := range Of[sourcesv1.PingSource](objects) {
			to := source.Spec.Sink.Ref
			if to == nil || to.Kind != "Service" || to.APIVersion != "serving.knative.dev/v1" {
				t.Errorf("PingSource %s pings %v", source.Name, to)
				continue
			}
			sources[to.Name] = append(sources[to.Name], source)
		}
		known := functions(t)
		for _, w := range workloads {
			f, pinged := known[w.Function()], sources[w.Name]
			off := w.Env()["TICKS"] == "off"
			switch {
			case f.Tick == nil && len(pinged) > 0:
				t.Errorf("%s is pinged, and has no clock", w)
			case f.Tick != nil && off && len(pinged) != 1:
				t.Errorf("%s has no clock of its own, and %d PingSources", w, len(pinged))
			case f.Tick != nil && off:
				if gap := apart(t, pinged[0].Spec.Schedule); gap > pings[f.Name] {
					t.Errorf("%s is pinged each %s, not each %s", w, gap, pings[f.Name])
				}
				if w.Env()["FUNC_TRANSPORT"] != "http" {
					t.Errorf("%s is pinged, and does not take events over HTTP", w)
				}
			}
			delete(sources, w.Name)
		}
		if len(sources) > 0 {
			t.Errorf("a ping has a target that is no function: %v", sources)
		}
	})
}

// apart returns the longest time between two ticks of a schedule within an hour, as PingSource's adapter reads the
// schedule.
func apart(t *testing.T, schedule string) (longest time.Duration) {
	t.Helper()
	parsed, err := cron.NewParser(
		cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).Parse(schedule)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for at := begin; at.Before(begin.Add(time.Hour)); {
		next := parsed.Next(at)
		longest = max(longest, next.Sub(at))
		at = next
	}
	return longest
}
