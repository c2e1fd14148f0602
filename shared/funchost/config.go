package funchost

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost/httpserver"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// The values of FUNC_TRANSPORT and TICKS.
const (
	TransportKafka = "kafka"
	TransportHTTP  = "http"

	requireOn = "on"

	verifyHTTP = "http"
	verifyAll  = "all"
	verifyOff  = "off"

	ticksOn  = "on"
	ticksOff = "off"
)

const defaultGrace = 30 * time.Second

// Config has the settings that every function's process reads from its environment. For a function that a program runs,
// the zero value with Kafka.Brokers is enough.
type Config struct {
	Host string `envconfig:"HOST" desc:"address on which HTTP listens; empty: all addresses"`
	Port int    `envconfig:"PORT" default:"8080" desc:"port on which HTTP listens; 0: any free one"`

	MetricsPort int `envconfig:"METRICS_PORT" desc:"port of its own for /metrics, without a key, at the address and with the TLS files of PORT; 0: /metrics is on PORT"`

	AllowedHosts []string `envconfig:"ALLOWED_HOSTS" desc:"names and addresses, with or without :port, allowed in the Host header; other requests get 421, except probes; empty: any"`

	Kafka kafkaevent.Config     `ignored:"true"` // read separately, with its own names
	TLS   TLS                   `ignored:"true"` // likewise
	Trace telemetry.TraceConfig `ignored:"true"` // likewise

	Sink        string `envconfig:"K_SINK" desc:"URL that takes events over HTTP in place of topics; an event that it refuses for good is dropped, and the status of its job held back"`
	SinkCAs     string `envconfig:"K_CA_CERTS" desc:"PEM of the CAs that verify K_SINK, as Knative provides it; empty: the system's CAs"`
	SinkCAFile  string `envconfig:"K_CA_CERTS_FILE" desc:"a file with the same"`
	CEOverrides string `envconfig:"K_CE_OVERRIDES" desc:"JSON with extensions to add to events for K_SINK"`

	FuncTransport string        `envconfig:"FUNC_TRANSPORT" default:"kafka" desc:"kafka, or http: POST / takes one event"`
	PublishWait   time.Duration `envconfig:"PUBLISH_WAIT" default:"5s" desc:"over http: how long an answer waits until the events that follow are published; then the function goes on publishing for a minute; shorter than the caller's timeout"`
	StatusEvents  StatusEvents  `envconfig:"STATUS_EVENTS" default:"each" desc:"which statuses of jobs are published on job-status, or to K_SINK as job.status.v1, for consumers of your own: each, ends (COMPLETED, FAILED, CANCELLED, and deletions) or none"`
	Ticks         string        `envconfig:"TICKS" default:"on" desc:"off: no clock of its own, only ping events tick"`

	EventKeysFile string `envconfig:"EVENT_KEYS_FILE" desc:"keys that sign the events between functions, one a line, whsec_ and 24 to 64 bytes of base64: the first signs, all verify; empty: no event is signed or verified"`
	EventSign     string `envconfig:"EVENT_SIGN" default:"http" desc:"which events are signed, if there are keys: http, those to K_SINK, or all, those to topics too"`
	EventVerify   string `envconfig:"EVENT_VERIFY" default:"http" desc:"which events must be signed, if there are keys: http, those over HTTP (unsigned ones get 403), all, those from topics too (unsigned ones go to the dead letters), or off, until every function signs"`

	LogLevel  string `envconfig:"LOG_LEVEL" default:"info" desc:"debug, info, warn or error"`
	LogFormat string `envconfig:"LOG_FORMAT" default:"json" desc:"json or text"`

	ShutdownGrace time.Duration `envconfig:"SHUTDOWN_GRACE" default:"30s" desc:"how long a stop may take"`
	ShutdownDelay time.Duration `envconfig:"SHUTDOWN_DELAY" default:"1s" desc:"how long HTTP is still served after the stop signal and the last request since"`

	ReadinessGrace time.Duration `envconfig:"READINESS_GRACE" default:"10s" desc:"how long the database, the brokers or K_SINK may be away before the readiness probe fails"`
	StuckAfter     time.Duration `envconfig:"STUCK_AFTER" default:"10m" desc:"how long one handler or tick may take, while no dependency is away, before the liveness probe fails"`

	Queues []string `envconfig:"QUEUES" default:"default" desc:"the queues, separated by commas"`

	RequireTLS string `envconfig:"REQUIRE_TLS" default:"off" desc:"on: the function refuses to start if a connection to the database, the brokers or K_SINK, or from its clients, would use plain text or not verify the server; loopback is exempt"`

	Listener net.Listener `ignored:"true"` // served instead of Host and Port; Run closes it
	NoListen bool         `ignored:"true"` // no HTTP at all
	Alone    bool         `ignored:"true"` // no other process serves clients until this one has ended

	MetricsListener net.Listener `ignored:"true"` // served instead of Host and MetricsPort; Run closes it

	timeouts      httpserver.Timeouts // zero: httpserver.Defaults
	database      secret.Text         // of Main's function, to check how it connects
	plainSettings []string            // the function's own settings with which it sends plain text
	alone         bool                // it connects to no broker
	beside        *together           // the functions of the same process; nil: the process has one function
}

func (c Config) withDefaults() Config {
	if c.FuncTransport == "" {
		c.FuncTransport = TransportKafka
	}
	if c.Ticks == "" {
		c.Ticks = ticksOn
	}
	if c.ShutdownGrace == 0 {
		c.ShutdownGrace = defaultGrace
	}
	if c.PublishWait == 0 {
		c.PublishWait = PublishPatience
	}
	if c.ReadinessGrace == 0 {
		c.ReadinessGrace = defaultReadinessGrace
	}
	if c.StuckAfter == 0 {
		c.StuckAfter = defaultStuckAfter
	}
	if c.timeouts == (httpserver.Timeouts{}) {
		c.timeouts = httpserver.Defaults
	}
	return c
}

// check checks the settings of this function. Each error begins with the setting's name.
func (c Config) check(f Function) error {
	switch {
	case f.Name == "":
		return errors.New("host a function: it has no name")
	case len(f.Topics) > 0 && f.Handle == nil:
		return fmt.Errorf("host %s: it consumes topics, but has no Handle", f.Name)
	case c.FuncTransport != TransportKafka && c.FuncTransport != TransportHTTP:
		return fmt.Errorf("FUNC_TRANSPORT: %q is neither kafka nor http", c.FuncTransport)
	case c.FuncTransport == TransportHTTP && (f.KafkaOnly || f.HTTP != nil || f.Handle == nil && f.Tick == nil):
		return fmt.Errorf("FUNC_TRANSPORT: %s cannot be driven over http", f.Name)
	case c.Ticks != ticksOn && c.Ticks != ticksOff:
		return fmt.Errorf("TICKS: %q is neither on nor off", c.Ticks)
	case !slices.Contains([]string{"", requireOn, "off"}, c.RequireTLS):
		return fmt.Errorf("REQUIRE_TLS: %q is neither on nor off", c.RequireTLS)
	case !slices.Contains([]string{"", verifyHTTP, verifyAll}, c.EventSign):
		return fmt.Errorf("EVENT_SIGN: %q is neither http nor all", c.EventSign)
	case !slices.Contains([]string{"", verifyHTTP, verifyAll, verifyOff}, c.EventVerify):
		return fmt.Errorf("EVENT_VERIFY: %q is neither http, all nor off", c.EventVerify)
	case c.EventVerify == verifyAll && c.EventKeysFile == "":
		return errors.New("EVENT_VERIFY: is all, and there is no EVENT_KEYS_FILE")
	case c.SinkCAs != "" && c.SinkCAFile != "":
		return errors.New("K_CA_CERTS: is set, and so is K_CA_CERTS_FILE")
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("PORT: %d is not a port", c.Port)
	case c.MetricsPort < 0 || c.MetricsPort > 65535:
		return fmt.Errorf("METRICS_PORT: %d is not a port", c.MetricsPort)
	case c.MetricsPort != 0 && c.MetricsPort == c.Port:
		return fmt.Errorf("METRICS_PORT: %d is PORT, too", c.MetricsPort)
	case c.ShutdownGrace < 0:
		return fmt.Errorf("SHUTDOWN_GRACE: %s is negative", c.ShutdownGrace)
	case c.ReadinessGrace < 0:
		return fmt.Errorf("READINESS_GRACE: %s is negative", c.ReadinessGrace)
	case c.StuckAfter < 0:
		return fmt.Errorf("STUCK_AFTER: %s is negative", c.StuckAfter)
	case !slices.Contains([]StatusEvents{"", EachStatus, EndsOnly, NoStatus}, c.StatusEvents):
		return fmt.Errorf("STATUS_EVENTS: %q is not each, ends or none", c.StatusEvents)
	case c.PublishWait < 0:
		return fmt.Errorf("PUBLISH_WAIT: %s is negative", c.PublishWait)
	case c.ShutdownDelay < 0:
		return fmt.Errorf("SHUTDOWN_DELAY: %s is negative", c.ShutdownDelay)
	}
	return nil
}
