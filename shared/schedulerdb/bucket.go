package schedulerdb

import "time"

// bucket holds what may start of something whose starts a second are limited.
type bucket struct {
	Tokens float64   `json:"tokens"`
	At     time.Time `json:"at"` // when it held them
}
