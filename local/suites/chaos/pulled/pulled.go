// Package pulled has the tasks that the suite's pull workers run, and what they report to the witness.
package pulled

import (
	"fmt"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// The tasks.
var (
	Waiting  = client.Task[Work, Waited]{Type: "CHAOS.WAITING"}
	Called   = client.Task[Work, Done]{Type: "CHAOS.CALLED"}
	Together = client.Task[Work, Done]{Type: "CHAOS.TOGETHER"} // of a batch handler
)

// Calls is how many jobs a waiting job calls.
const Calls = 2

// CalledKey returns the key of a job that the job with a key calls.
func CalledKey(key string, i int) string { return fmt.Sprintf("%s.%d", key, i) }

// The steps and the waits of a waiting job, in this order. EventStep waits for an event that is sent twice, and Again
// for another one, which never comes.
const (
	StepBefore = "charge"
	EventStep  = "paid"
	Again      = "paid again"
	CallStep   = "parts"
	Nap        = "nap"
	StepAfter  = "ship"
)

// How long a waiting job waits for a second event, and sleeps.
const (
	AgainFor = 500 * time.Millisecond
	NapFor   = 300 * time.Millisecond
)

// Work is the payload of all three tasks.
type Work struct {
	Key          string `json:"key"`
	MS           int    `json:"ms"` // of each step, or of the whole work
	FailAttempts int    `json:"failAttempts,omitempty"`
	Tomorrow     bool   `json:"tomorrow,omitempty"` // the jobs that it calls are due tomorrow, unless it is cancelled
}

// Done is the output of a job that does not wait.
type Done struct {
	Key     string `json:"key"`
	Attempt int    `json:"attempt"`
}

// Waited is the output of a waiting job.
type Waited struct {
	Receipts []string `json:"receipts"` // the results of its steps
	Paid     Paid     `json:"paid"`
	Twice    bool     `json:"twice"` // it got a second event
	Parts    []Done   `json:"parts"` // the outputs of the jobs that it called
}

// EventType is the type of the events for which jobs wait.
const EventType = "com.example.chaos.paid"

// Paid is the data of an event.
type Paid struct {
	Key   string `json:"key"`
	Cents int    `json:"cents"`
}
