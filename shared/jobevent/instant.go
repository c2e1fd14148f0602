package jobevent

import "time"

// UTC returns an instant as events carry it, and nil for none.
func UTC(at *time.Time) *time.Time {
	if at == nil || at.IsZero() {
		return nil
	}
	if at.Location() == time.UTC {
		return at
	}
	u := at.UTC()
	return &u
}
