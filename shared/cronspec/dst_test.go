package cronspec_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/cronspec"
)

func TestASpringDayFiresOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spec, zone, after, want string }{
		// 02:00 → 03:00 on March 29
		{"30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", "2026-03-28T01:30:00Z 2026-03-29T01:00:00Z 2026-03-30T00:30:00Z"},
		{"0,30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-29T01:30:00Z 2026-03-30T00:00:00Z"},
		{"*/15 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:00:00Z"},
		{"0 */2 * * *", "Europe/Berlin", "2026-03-28T22:00:00Z", "2026-03-28T23:00:00Z 2026-03-29T01:00:00Z 2026-03-29T02:00:00Z"},
		{"0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T01:00:00Z"},
		{"30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T00:30:00Z 2026-03-29T01:30:00Z"},
		{"30 2 29 3 *", "Europe/Berlin", "2026-01-01T00:00:00Z", "2026-03-29T01:00:00Z 2027-03-29T00:30:00Z"},
		{"@daily", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-28T23:00:00Z 2026-03-29T22:00:00Z"},
		// 02:00 → 03:00 on March 8
		{"15 2 * * SUN", "America/New_York", "2026-03-02T00:00:00Z", "2026-03-08T07:00:00Z 2026-03-15T06:15:00Z"},
		// 02:00 → 02:30 on October 4
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-02T16:00:00Z", "2026-10-03T15:30:00Z 2026-10-04T15:15:00Z"},
		{"45 2 * * *", "Australia/Lord_Howe", "2026-10-02T17:00:00Z", "2026-10-03T15:45:00Z 2026-10-04T15:45:00Z"},
		{"*/15 * * * *", "Australia/Lord_Howe", "2026-10-03T15:10:00Z", "2026-10-03T15:15:00Z 2026-10-03T15:30:00Z 2026-10-03T15:45:00Z"},
		// 00:00 → 01:00 on 2018-11-04: midnight does not exist
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z 2018-11-05T02:00:00Z"},
		{"@monthly", "America/Sao_Paulo", "2018-10-15T12:00:00Z", "2018-11-01T03:00:00Z 2018-12-01T02:00:00Z"},
		{"30 0 4 * *", "America/Sao_Paulo", "2018-10-15T12:00:00Z", "2018-11-04T03:00:00Z 2018-12-04T02:30:00Z"},
		// 02:00 → 03:00 on September 27 and October 4
		{"30 2 * * *", "Pacific/Auckland", "2026-09-25T20:00:00Z", "2026-09-26T14:00:00Z 2026-09-27T13:30:00Z"},
		{"30 2 * * *", "Australia/Sydney", "2026-10-02T20:00:00Z", "2026-10-03T16:00:00Z 2026-10-04T15:30:00Z"},
		// a whole day does not exist: 2011-12-30
		{"0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-29T22:00:00Z 2011-12-30T10:00:00Z 2011-12-30T22:00:00Z"},
	} {
		fires(t, c.spec, c.zone, c.after, c.want)
	}
}

func TestAnAutumnDayFiresOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spec, zone, after, want string }{
		// 03:00 → 02:00 on October 25
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T01:00:00Z", "2026-10-26T01:30:00Z"}, // asked during the repeated hour
		{"0 2,3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:00:00Z 2026-10-25T02:00:00Z 2026-10-26T01:00:00Z"},
		{"0 */2 * * *", "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T00:00:00Z 2026-10-25T03:00:00Z"},
		{"30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", "2026-10-25T00:30:00Z 2026-10-25T01:30:00Z 2026-10-25T02:30:00Z"},
		{"0 0-23 * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", "2026-10-25T00:00:00Z 2026-10-25T01:00:00Z 2026-10-25T02:00:00Z"},
		// 02:00 → 01:00 on November 1
		{"30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-01T05:30:00Z 2026-11-02T06:30:00Z"},
		// 02:00 → 01:30 on April 5
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", "2026-04-04T14:45:00Z 2026-04-05T15:15:00Z"},
		{"0 2 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", "2026-04-04T15:30:00Z 2026-04-05T15:30:00Z"},
		{"*/15 * * * *", "Australia/Lord_Howe", "2026-04-04T14:40:00Z", "2026-04-04T14:45:00Z 2026-04-04T15:00:00Z 2026-04-04T15:15:00Z"},
		// 00:00 → 23:00 the day before, on 2018-02-18
		{"30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00:00Z", "2018-02-18T01:30:00Z 2018-02-19T02:30:00Z"},
		{"@daily", "America/Sao_Paulo", "2018-02-17T12:00:00Z", "2018-02-18T03:00:00Z 2018-02-19T03:00:00Z"},
		// 03:00 → 02:00 on April 5
		{"30 2 * * *", "Pacific/Auckland", "2026-04-03T20:00:00Z", "2026-04-04T13:30:00Z 2026-04-05T14:30:00Z"},
	} {
		fires(t, c.spec, c.zone, c.after, c.want)
	}
}

// Around every change of clocks Next gives the same instants as a walk through all minutes.
func TestChangesOfClocksAgainstAPlainModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone, err := cronspec.Zone(rapid.SampledFrom([]string{
			"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia", "Africa/Casablanca",
			"Asia/Gaza", "Antarctica/Troll", "Europe/Dublin", "UTC",
		}).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		year := rapid.IntRange(2005, 2040).Draw(t, "year")
		begin := time.Date(year, time.Month(rapid.IntRange(1, 12).Draw(t, "month")), 1, 0, 0, 0, 0, time.UTC)
		if _, change := begin.In(zone).ZoneBounds(); !change.IsZero() {
			begin = change.Add(-36 * time.Hour).In(time.UTC)
		}
		begin = begin.Truncate(time.Hour)
		minutes := rapid.SliceOfNDistinct(rapid.IntRange(0, 59), 1, 4, rapid.ID).Draw(t, "minutes")
		hours := rapid.SliceOfNDistinct(rapid.IntRange(0, 23), 1, 24, rapid.ID).Draw(t, "hours")
		s, err := cronspec.Parse(fmt.Sprintf("%s %s * * *", list(minutes), list(hours)), zone, begin)
		if err != nil {
			t.Fatal(err)
		}
		end := begin.Add(72 * time.Hour)
		var got []time.Time
		for at := s.Next(begin); at.Before(end); at = s.Next(at) {
			if got = append(got, at); !at.After(begin) || len(got) > 72*60 {
				t.Fatalf("fires %v", got[max(0, len(got)-3):])
			}
		}
		want := model(begin, end, zone, func(c time.Time) bool {
			return slices.Contains(minutes, c.Minute()) && slices.Contains(hours, c.Hour())
		}, len(hours) == 24)
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("fires %v\nwant  %v", got, want)
		}
	})
}

// model goes through all minutes: those that the clock shows, and those that it jumps over.
func model(begin, end time.Time, zone *time.Location, match func(time.Time) bool, everyHour bool) []time.Time {
	shown := map[time.Time]bool{}
	var fired []time.Time
	fire := func(at time.Time) {
		if at.After(begin) && (len(fired) == 0 || !fired[len(fired)-1].Equal(at)) {
			fired = append(fired, at)
		}
	}
	clock := func(at time.Time) time.Time {
		l := at.In(zone)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
	}
	before := begin.Add(-48 * time.Hour)
	for at := before.Add(time.Minute); at.Before(end); at, before = at.Add(time.Minute), at {
		now := clock(at)
		for gone := clock(before).Add(time.Minute); gone.Before(now) && !everyHour; gone = gone.Add(time.Minute) {
			if match(gone) {
				fire(at)
			}
		}
		if match(now) && (everyHour || !shown[now]) {
			fire(at)
		}
		shown[now] = true
	}
	return fired
}

func list(numbers []int) string {
	text := ""
	for i, n := range numbers {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(n)
	}
	return text
}
