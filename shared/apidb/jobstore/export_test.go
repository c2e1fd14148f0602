package jobstore

// The store's bounds, for the tests.
const (
	MaxSeen         = maxSeen
	FirstSeen       = firstSeen
	MaxSearched     = maxSearched
	MaxDependencies = maxDependencies
	MaxListedAfter  = maxListedAfter
)

// Functions that tests call directly.
var (
	StatusesBefore = statusesBefore
)

// OrderLock is the lock of an ordering key.
func OrderLock(owner, key string) int64 { return keyed{orderKeys, owner, key}.lock() }
