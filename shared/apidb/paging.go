package apidb

import (
	"time"

	"github.com/google/uuid"
)

// Page is a part of a pass over jobs in the order of their ids: at most Limit jobs after After. A pass over ages
// selects the jobs that became due after Since, when the previous pass began, and not after Until.
type Page struct {
	After        uuid.UUID
	Since, Until time.Time
	Limit        int
}

// MaxPageBytes bounds the payloads and dependencies, or the outputs of callbacks, in one page. The item that exceeds
// it is the last of the page.
const MaxPageBytes = 32 << 20

// Walked is how far a part of a walk over old rows came.
type Walked struct {
	Last uuid.UUID // the next part begins after it
	Gone int64
	More bool
}

// Cut leaves at most limit of the rows that were read; more reports that there were others.
func Cut[T any](rows []T, limit int) (page []T, more bool) {
	return rows[:min(len(rows), limit)], len(rows) > limit
}

// MaxListBytes bounds the data in a list, except its first item, which is always included.
const MaxListBytes = 2 << 20

// MaxFigure bounds a count, and so its cost on a table of millions.
const MaxFigure = 100_000
