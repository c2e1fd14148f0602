package apidb

import (
	"time"

	"github.com/google/uuid"
)

// Page is a piece of a pass over jobs in the order of their ids: those after After, at most Limit. Where
// ages count, it chooses what has come of age after Since, the pass before, and by Until.
type Page struct {
	After        uuid.UUID
	Since, Until time.Time
	Limit        int
}

// MaxPageBytes bounds the payloads and dependencies, or the outputs of callbacks, in one page; what goes beyond is its
// last.
const MaxPageBytes = 32 << 20

// Walked is how far a piece of a walk over old rows came.
type Walked struct {
	Last uuid.UUID // the next piece begins after it
	Gone int64
	More bool
}

// MaxListBytes is how much what a list holds has at most, but for its first item, which always comes.
const MaxListBytes = 2 << 20

// MaxFigure bounds what a count costs on a table of millions.
const MaxFigure = 100_000
