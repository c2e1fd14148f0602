package apidb

import "time"

// Key names a schedule or an alert. A nil OwnerID means the owner of the request; for Everyone it means the row without
// an owner, or that of the only owner with a row of this name.
type Key struct {
	OwnerID *string
	Name    string
}

// Of returns the key as an owner means it; seen is false if it is another owner's.
func (k Key) Of(owner Owner) (meant Key, seen bool) {
	if k.OwnerID != nil && !owner.Sees(*k.OwnerID) {
		return k, false
	}
	if !owner.IsEveryone() {
		k.OwnerID = owner.Filter()
	}
	return k, true
}

// Named returns the row that a key names. rows are up to two rows with its name, the one without an owner first. none
// and several are the errors if there is none, or one of several owners.
func Named[T any](rows []T, ownerOf func(*T) string, none, several error) (row T, err error) {
	switch {
	case len(rows) == 0:
		return row, none
	case len(rows) > 1 && ownerOf(&rows[0]) != "":
		return row, several
	}
	return rows[0], nil
}

// Match reports whether a row that was last changed at an instant is the one that a client has read; nil: any is.
type Match func(updatedAt time.Time) bool

// Is is Match, also for nil.
func (m Match) Is(updatedAt time.Time) bool { return m == nil || m(updatedAt) }
