// Package funchost hosts a function: on its Kafka topics or on HTTP, with its clock, its probes and its drain. Only
// this package implements the delivery rule: publish after commit, acknowledge after publish.
package funchost

import (
	"context"
	"net/http"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// The build's version, its commit and that commit's time; the linker sets them.
var (
	Version = "dev"
	Commit  = ""
	Date    = ""
)

// Handle handles a batch of one or more items in one database transaction, and returns the items to publish. Called
// again with the same batch, it returns again the items that follow from the current state of the batch's jobs.
//
// An error that wraps jobevent.ErrInvalid means that an item of the batch can never be handled: the host halves the
// batch until it has found the item, and rejects it. Any other error is not due to the items: the host waits and calls
// again.
type Handle func(ctx context.Context, batch []jobevent.Item) (events []jobevent.Item, err error)

// Tick is one pass of a function's clock. next is the time until the next tick; 0: at once. After an error the host
// waits and ticks again.
type Tick func(ctx context.Context) (events []jobevent.Item, next time.Duration, err error)

// Publish packs items into events and publishes them, to the sink if one is set, otherwise to Kafka. If one call has
// several items of a job, job-status is published last, after the others were acknowledged. Publish tries once, as long
// as ctx allows. After an error any of the items may or may not have been published; publishing them again does no
// harm.
type Publish func(ctx context.Context, events []jobevent.Item) error

// Function describes a function to the host. Only Name is required.
type Function struct {
	Name string

	Topics []string // consumed from Kafka in batches, as group jobweaver-<name>
	Handle Handle
	// Skips reports whether the function ignores an event type of its topics; nil: it handles all. The host then reads
	// only the record's header with the type.
	Skips func(topic, typ string) bool

	Tick Tick
	Wake <-chan struct{} // shortens the wait for the next tick

	// Ready returns an error unless the database answers. The host calls it now and then, not for each probe.
	Ready func(ctx context.Context) error
	// Joined reports whether Run has joined all its consumer groups; nil: it has none.
	Joined func() bool
	// Failing reports whether Run's own work fails each time; nil: its failures do not count.
	Failing func() bool
	// Oldest returns the oldest call within Run and its start; zero if there is none. Such a call must end even while a
	// dependency is unavailable: otherwise the process is not alive.
	Oldest func() (what string, since time.Time)

	// Pool returns the state of the function's connections to its database, for the metrics.
	Pool func() telemetry.Pool
	// Metrics registers further metrics, which are read on demand, until the returned function is called.
	Metrics func(telemetry.Meter) (stop func())

	// HTTP is served beside probes and metrics. A function with HTTP is ready even without its broker.
	HTTP http.Handler
	// HTTPLast: HTTP is served until Run has returned. It must start no work once Run is stopping.
	HTTPLast bool
	// HTTPMetrics: HTTP serves /metrics as well, to authorized clients.
	HTTPMetrics bool
	// LoopbackFor names the setting because of which the function may listen on a loopback address only; empty: it may
	// listen on any.
	LoopbackFor string
	// HTTPEnded is called in the drain, after the last request of HTTP was answered; may be nil.
	HTTPEnded func()

	// Run is a long-running part of the function. ctx ends at the stop; Run finishes its work then with a context of its
	// own, within Config.ShutdownGrace. It can publish until it returns. An error ends the process.
	Run func(ctx context.Context, publish Publish) error

	// Fence is compared with the brokers' settings of its topics; without topics there is no comparison.
	Fence Fence

	KafkaOnly bool // refuses FUNC_TRANSPORT=http
	Silent    bool // publishes no events, and so needs no broker
}
