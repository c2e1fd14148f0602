package cronspec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/cronspec"
)

// For any expression and instant, Next answers soon, with a later instant that is the beginning of a second.
func FuzzNext(f *testing.F) {
	for _, spec := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 *", "59 59 23 31 12 SUN", "@every 90s", "@weekly",
		"*/7 1-5,9 * JAN-DEC/2 1-5", "0 0 31 4 *", "* * 1 * * *", "0 22-2 * NOV-FEB FRI-MON", "? ? ? ? ?", "@", ",,", "TZ=UTC 1 1 1 1 1"} {
		f.Add(spec, "Europe/Berlin", int64(1774746000))
		f.Add(spec, "Australia/Lord_Howe", int64(-62135596800))
		f.Add(spec, "Asia/Manila", int64(-3944621038))
		f.Add(spec, "Europe/Dublin", int64(2240521200)) // the last day of a leap year
	}
	f.Fuzz(func(t *testing.T, spec, zoneName string, unix int64) {
		zone, err := cronspec.Zone(zoneName)
		if err != nil {
			zone = time.UTC
		}
		s, err := cronspec.Parse(spec, zone, time.Unix(1e9, 0))
		if err != nil {
			if err.Error() == "" || strings.ContainsRune(err.Error(), '\n') {
				t.Errorf("%q: %q", spec, err)
			}
			return
		}
		const year1900, years7000 = -2208988800, 220903200000
		at := time.Unix(year1900+int64(uint64(unix)%years7000), int64(uint64(unix)%1e9))
		began := time.Now()
		for range 5 {
			next := s.Next(at)
			if next.IsZero() {
				t.Fatalf("%q never fires after %s", spec, at)
			}
			if !next.After(at) || next.Nanosecond() != 0 {
				t.Fatalf("%q fires after %s at %s", spec, at, next)
			}
			at = next
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Fatalf("%q took %s", spec, took)
		}
	})
}
