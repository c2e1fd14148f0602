package cronspec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/cronspec"
)

func parse(t testing.TB, spec, zone string) cronspec.Spec {
	t.Helper()
	loc, err := cronspec.Zone(zone)
	if err != nil {
		t.Fatalf("%s %v", zone, err)
	}
	s, err := cronspec.Parse(spec, loc, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatalf("%q %v", spec, err)
	}
	return s
}

func TestWhatFiresWhen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spec, after, want string }{
		{"*/15 * * * *", "2026-03-01T10:07:30Z", "2026-03-01T10:15:00Z 2026-03-01T10:30:00Z 2026-03-01T10:45:00Z 2026-03-01T11:00:00Z"},
		{"0 9 * * MON-FRI", "2026-03-06T09:00:00Z", "2026-03-09T09:00:00Z 2026-03-10T09:00:00Z"},
		{"0 9 * * mon,7", "2026-03-06T09:00:00Z", "2026-03-08T09:00:00Z 2026-03-09T09:00:00Z"},
		{"30 8 1 JAN-MAR/2 *", "2026-01-01T08:30:00Z", "2026-03-01T08:30:00Z 2027-01-01T08:30:00Z"},
		{"*/20 * * * * *", "2026-03-01T10:00:19.5Z", "2026-03-01T10:00:20Z 2026-03-01T10:00:40Z 2026-03-01T10:01:00Z"},
		{"0 0 13 * FRI", "2026-03-07T00:00:00Z", "2026-03-13T00:00:00Z 2026-03-20T00:00:00Z"}, // either is enough
		{"0 0 13 * *", "2026-03-07T00:00:00Z", "2026-03-13T00:00:00Z 2026-04-13T00:00:00Z"},
		{"0 0 31 * *", "2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z 2026-07-31T00:00:00Z"},
		{"0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z 2108-02-29T00:00:00Z"},
		{"59 59 23 31 12 *", "2026-12-31T23:59:58Z", "2026-12-31T23:59:59Z 2027-12-31T23:59:59Z"},
		{"0 22-2/2 * * *", "2026-03-01T12:00:00Z", "2026-03-01T22:00:00Z 2026-03-02T00:00:00Z 2026-03-02T02:00:00Z 2026-03-02T22:00:00Z"},
		{"@hourly", "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z"},
		{"@daily", "2026-03-01T10:00:00Z", "2026-03-02T00:00:00Z"},
		{"@weekly", "2026-03-02T10:00:00Z", "2026-03-08T00:00:00Z"},
		{"@monthly", "2026-03-02T10:00:00Z", "2026-04-01T00:00:00Z"},
		{"@yearly", "2026-03-02T10:00:00Z", "2027-01-01T00:00:00Z"},
		{"@every 90s", "2025-01-01T00:00:00Z", "2026-01-01T00:01:30Z 2026-01-01T00:03:00Z"}, // counted from its anchor
		{"@every 90s", "2026-01-01T00:01:30.1Z", "2026-01-01T00:03:00Z 2026-01-01T00:04:30Z"},
		{"@every 1h30m", "2026-01-01T12:00:00Z", "2026-01-01T13:30:00Z"},
	} {
		fires(t, c.spec, "UTC", c.after, c.want)
	}
}

// fires compares the next instants with the wanted ones.
func fires(t *testing.T, spec, zone, after, want string) {
	t.Helper()
	s := parse(t, spec, zone)
	at, err := time.Parse(time.RFC3339, after)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range strings.Fields(want) {
		at = s.Next(at)
		got = append(got, at.Format(time.RFC3339))
	}
	if strings.Join(got, " ") != want {
		t.Errorf("%q in %s after %s\nfires %s\nwant  %s", spec, zone, after, strings.Join(got, " "), want)
	}
}

// On this day Go's own bounds of the zone end before they begin.
func TestTheLastDayOfALeapYearEnds(t *testing.T) {
	t.Parallel()
	fires(t, "30 2 * * *", "Europe/Berlin", "2040-12-30T12:00:00Z", "2040-12-31T01:30:00Z 2041-01-01T01:30:00Z")
	fires(t, "0 12 31 3 *", "America/New_York", "2040-12-31T23:30:00Z", "2041-03-31T16:00:00Z")
}

func TestWrongExpressionsAreRefusedByField(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"":                                      "must have five fields",
		"   ":                                   "must have five fields",
		"* * * *":                               "must have five fields",
		"* * * * * * *":                         "must have five fields",
		"60 * * * *":                            "minute: ",
		"* 24 * * *":                            "hour: ",
		"* * 0 * *":                             "day of month: ",
		"* * 32 * *":                            "day of month: ",
		"* * * 13 *":                            "month: ",
		"* * * FOO *":                           "month: ",
		"* * * * 8":                             "day of week: ",
		"* * * * MOND":                          "day of week: ",
		"61 * * * * *":                          "second: ",
		"-1 * * * *":                            "minute: ",
		"*/0 * * * *":                           "minute: ",
		"*-5 * * * *":                           "minute: ",
		"1,,2 * * * *":                          "minute: ",
		", * * * *":                             "minute: ",
		"1/2/3 * * * *":                         "minute: ",
		"H * * * *":                             "minute: ",
		"* * L * *":                             "day of month: ",
		"* * 15W * *":                           "day of month: ",
		"* * * * FRI#3":                         "day of week: ",
		"99999999999 * * * *":                   "minute: ",
		"TZ=UTC * * * * *":                      "second: ",
		"TZ=UTC 0 * * * * *":                    "must have five fields",
		"0 0 30 2 *":                            "never fires",
		"0 0 31 4,6,9,11 *":                     "never fires",
		"@often":                                "must be @yearly",
		"@every":                                "must be @yearly",
		"@every 1.5s":                           "@every: ",
		"@every 0s":                             "@every: ",
		"@every -5s":                            "@every: ",
		"@every 100ms":                          "@every: ",
		"@every 9000h":                          "@every: ",
		"@every soon":                           "@every: ",
		"0 0 * * * " + strings.Repeat("1", 300): "must have at most",
		"\x00 * * * *":                          "minute: ",
	} {
		_, err := cronspec.Parse(spec, time.UTC, time.Now())
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", spec, err, want)
		}
	}
}

func TestZonesAreOfTheIANA(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+3", "Asia/Kathmandu"} {
		if zone, err := cronspec.Zone(name); err != nil || zone.String() != name {
			t.Errorf("%s: %v, %v", name, zone, err)
		}
	}
	for _, name := range []string{"", "Local", "Berlin", "../etc/passwd", "/UTC", "+01:00", "Europe/", "Europe//Berlin", "utc\x00"} {
		if zone, err := cronspec.Zone(name); err == nil {
			t.Errorf("%q is %v", name, zone)
		}
	}
}
