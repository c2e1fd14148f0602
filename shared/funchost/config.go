package funchost

import (
	"net"
	"time"

	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

// The transports of FUNC_TRANSPORT.
const (
	TransportKafka = "kafka"
	TransportHTTP  = "http"
)

// Config is what every function's process is told by its environment. Its zero value, but for
// Kafka.Brokers, is good for a function run by code.
type Config struct {
	Host string `envconfig:"HOST" desc:"address that HTTP listens on; empty: every one"`
	Port int    `envconfig:"PORT" default:"8080" desc:"port that HTTP listens on"`

	Kafka kafkaevent.Config

	Sink        string `envconfig:"K_SINK" desc:"where events go by HTTP instead of to topics"`
	CEOverrides string `envconfig:"K_CE_OVERRIDES" desc:"JSON whose extensions are added to events for K_SINK"`

	FuncTransport string `envconfig:"FUNC_TRANSPORT" default:"kafka" desc:"kafka, or http: POST / takes one event"`
	Ticks         string `envconfig:"TICKS" default:"on" desc:"off: no clock of its own, only ping events tick"`

	LogLevel  string `envconfig:"LOG_LEVEL" default:"info" desc:"debug, info, warn or error"`
	LogFormat string `envconfig:"LOG_FORMAT" default:"json" desc:"json or text"`

	ShutdownGrace time.Duration `envconfig:"SHUTDOWN_GRACE" default:"30s" desc:"how long a stop may take"`
	ShutdownDelay time.Duration `envconfig:"SHUTDOWN_DELAY" default:"1s" desc:"how long HTTP is served after the stop"`

	Queues []string `envconfig:"QUEUES" default:"default" desc:"the queues, separated by commas"`

	Listener net.Listener `ignored:"true"` // served instead of Host and Port; Run closes it
	NoListen bool         `ignored:"true"` // no HTTP at all
}
