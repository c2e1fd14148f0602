package funchost

import "github.com/jobweaver/jobweaver/shared/jobevent"

// StatusEvents chooses the statuses of jobs that are published for anyone, each as an event of its own. Projection
// receives all of them: the others many in an event.
// Why there is a choice: docs/decisions/events.md#projection-gets-statuses-together
type StatusEvents string

// The values of StatusEvents. The zero value is EachStatus.
const (
	EachStatus StatusEvents = "each"
	EndsOnly   StatusEvents = "ends" // and deletions
	NoStatus   StatusEvents = "none"
)

// includes reports whether a status or deletion is for anyone.
func (s StatusEvents) includes(it *jobevent.Item) bool {
	switch s {
	case NoStatus:
		return false
	case EndsOnly:
		return it.Type() == jobevent.TypeDeleted || it.Ends()
	case EachStatus:
	}
	return true
}
