package schedulerdb

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// more is what of the ledger few houses need. One that needs none of it keeps "{}", which nobody decodes.
type more struct {
	Controls int64 `json:"controls,omitempty"` // number of the set of controls; 0: there never was one
	// What runs of each job type and owner that is under control, what may start of it, and from where on a job may
	// wait in a lane, by queue and lane.
	Running map[subject]int                 `json:"running,omitempty"`
	Buckets map[subject]bucket              `json:"buckets,omitempty"`
	Lanes   map[string]map[string]time.Time `json:"lanes,omitempty"`
	OpensAt time.Time                       `json:"opensAt,omitzero"` // when more may start; zero: no rate holds anything

	Ended      []uuid.UUID `json:"ended,omitempty"`
	Dependents int64       `json:"dependents,omitempty"`

	Entered int64 `json:"entered,omitempty"` // n of the ledger with the drift that the watchdog entered last
}

// nothingMore is how a house without any of it is kept.
const nothingMore = "{}"

func readMore(kept json.RawMessage) (m more, err error) {
	if string(kept) == nothingMore {
		return m, nil
	}
	if err := json.Unmarshal(kept, &m); err != nil {
		return m, fmt.Errorf("read the rest of the dispatch state: %w", err)
	}
	return m, nil
}

// json leaves out what is empty.
func (m *more) json() json.RawMessage {
	if m.Controls == 0 && len(m.Lanes) == 0 && m.OpensAt.IsZero() && len(m.Ended) == 0 &&
		m.Dependents == 0 && m.Entered == 0 {
		return json.RawMessage(nothingMore)
	}
	return mustJSON(m)
}
