package cli

import (
	"testing"
	"time"
)

func TestInstantMayBeAnAge(t *testing.T) {
	t.Parallel()
	for text, age := range map[string]time.Duration{"90m": 90 * time.Minute, "3d": 72 * time.Hour, "0d": 0, "1h30m": 90 * time.Minute} {
		var i instant
		before := time.Now().Add(-age).Truncate(time.Second)
		if err := i.Set(text); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := time.Parse(time.RFC3339, i.String())
		if err != nil || got.Before(before) || got.After(time.Now().Add(-age)) {
			t.Errorf("%s is %s, %v", text, i, err)
		}
	}
	for _, text := range []string{"", "soon", "-1h", "-1d", "1.5d", "2026-11-22", "d", "99999d", "08:00"} {
		if err := new(instant).Set(text); err == nil {
			t.Errorf("%q is an instant", text)
		}
	}
	const as = "2026-01-02T03:04:05+01:00"
	if i := instant(""); i.Set(as) != nil || i.String() != as {
		t.Errorf("%s became %s", as, i)
	}
}
