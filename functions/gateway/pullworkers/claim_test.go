package pullworkers

import (
	"net/http"
	"testing"
	"time"
)

func TestTheClockOfAnInstanceMayBeWrong(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, c := range []struct {
		date string
		want time.Duration
	}{
		{"", 0}, {"yesterday", 0},
		{now.Format(http.TimeFormat), 0}, {now.Add(-2 * time.Second).Format(http.TimeFormat), 2*time.Second + 6},
		{now.Add(-time.Second).Format(http.TimeFormat), 0}, {now.Add(2 * time.Second).Format(http.TimeFormat), 0},
		{now.Add(time.Hour).Format(http.TimeFormat), -time.Hour + 6}, {now.Add(-time.Hour).Format(http.TimeFormat), time.Hour + 6},
	} {
		if got := offBy(now, c.date); got != c.want {
			t.Errorf("of %q: %v, want %v", c.date, got, c.want)
		}
	}
}

func TestALongWaitEndsOnAWholeSecondAndAShortOneIsKept(t *testing.T) {
	for _, ms := range []int{0, 1, 400, 999} {
		now := time.Date(2026, 1, 2, 3, 4, 5, ms*1e6, time.UTC)
		for _, wait := range []time.Duration{shortWait, 30 * time.Second, 59*time.Second + 700*time.Millisecond} {
			got := endOnSecond(now, wait)
			if end := now.Add(got); end.Nanosecond() != 0 || got > wait || got <= wait-time.Second {
				t.Errorf("at .%03d, %v became %v, which ends at %v", ms, wait, got, end)
			}
		}
		for _, wait := range []time.Duration{0, time.Second, shortWait - time.Millisecond} {
			if got := endOnSecond(now, wait); got != wait {
				t.Errorf("at .%03d, %v became %v", ms, wait, got)
			}
		}
	}
}
