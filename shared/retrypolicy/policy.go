// Package retrypolicy says when a failed attempt runs again.
package retrypolicy

// Policy is a job's own retry policy.
type Policy struct {
	Type     string  `json:"type"`
	BaseMs   int64   `json:"baseMs,omitempty"`
	CapMs    int64   `json:"capMs,omitempty"`
	DelayMs  int64   `json:"delayMs,omitempty"`
	DelaysMs []int64 `json:"delaysMs,omitempty"`
	Jitter   float64 `json:"jitter,omitempty"`
}
