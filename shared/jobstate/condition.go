package jobstate

// Condition is how a job has to end before a job that depends on it runs.
type Condition string

// The conditions.
const (
	WhenCompleted Condition = "completed"
	WhenEnded     Condition = "ended"  // in whatever way
	WhenFailed    Condition = "failed" // FAILED or CANCELLED
)

// Conditions lists every condition.
func Conditions() []Condition { return []Condition{WhenCompleted, WhenEnded, WhenFailed} }

// Met reports whether a job that ended in a state meets the condition. If not, it never will.
func (c Condition) Met(end Status) bool {
	return c == WhenEnded || (end == Completed) == (c == WhenCompleted)
}
