// Package funchost hosts a function: on its Kafka topics or on HTTP, with its clock, its probes and
// its drain. The delivery rule stands here, once: publish after commit, acknowledge
// after publish.
package funchost

import (
	"context"
	"net/http"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// Version is what was built; the linker sets it.
var Version = "dev"

// Handle takes a batch of items, one or many, in one database transaction, and returns those
// to publish. Given the same batch again it returns again what follows from its jobs' current state.
//
// An error that wraps jobevent.ErrInvalid means that something in the batch can never get better:
// the host halves the batch until it has found it, and rejects it. Any other error is not the
// events' fault: the host waits and calls again.
type Handle func(ctx context.Context, batch []jobevent.Item) (say []jobevent.Item, err error)

// Tick is one pass of a function's clock. next is when to tick again, 0 at once. After an error
// the host waits and ticks again.
type Tick func(ctx context.Context) (say []jobevent.Item, next time.Duration, err error)

// Publish puts items into events and publishes these: to the sink where one is set, else to Kafka. Of a job's items in
// one call job-status is published last, after the others were acknowledged. It tries once, as long as ctx allows;
// after an error any of the items may or may not have been published, and publishing them again does no harm.
type Publish func(ctx context.Context, events []jobevent.Item) error

// Function is what the host runs. Only Name is required.
type Function struct {
	Name string

	Topics []string // consumed from Kafka in batches, as group jobweaver-<name>
	Handle Handle
	// Skips reports whether the function ignores an event type that Topics have; nil: it takes all. Of a record
	// only the header with the type is read for that.
	Skips func(topic, typ string) bool

	Tick Tick
	Wake <-chan struct{} // shortens the wait for the next tick

	// Ready asks whether the database answers. The host asks now and then, not for each probe.
	Ready func(ctx context.Context) error
	// Joined reports whether Run is in all its consumer groups; nil: it has none.
	Joined func() bool
	// Failing reports whether Run's own work fails at each try; nil: its failures do not count.
	Failing func() bool
	// Oldest returns the oldest call of Run's that should have ended, even while a dependency is unavailable, and its
	// start; zero if there is none. A process in which it does not end is not alive.
	Oldest func() (what string, since time.Time)

	// Pool returns the state of the function's connections to its database, for the metrics.
	Pool func() telemetry.Pool
	// Metrics registers further metrics, which are read on demand, until the returned function is called.
	Metrics func(telemetry.Meter) (stop func())

	// HTTP is served beside probes and metrics. A function with it is ready whatever the broker does.
	HTTP http.Handler
	// HTTPLast: HTTP is served until Run has returned. It must let nothing begin once Run is to stop.
	HTTPLast bool
	// HTTPMetrics: HTTP serves /metrics as well, to those whom it lets in.
	HTTPMetrics bool
	// LoopbackFor names the setting for which this function may listen on a loopback address only; empty: on any.
	LoopbackFor string
	// HTTPEnded is called in the drain, when the last request of HTTP has been answered; may be nil.
	HTTPEnded func()

	// Run is a long-running part of the function's own. ctx ends at the stop; what it still has to
	// do then it does under a context of its own, within Config.ShutdownGrace. say works until it
	// has returned. An error ends the process.
	Run func(ctx context.Context, say Publish) error

	// Fence is compared with the brokers' settings of its topics; without topics nothing is.
	Fence Fence

	KafkaOnly bool // refuses FUNC_TRANSPORT=http
	Silent    bool // publishes nothing, and so needs no broker
}
