package kafkaevent

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"

	"github.com/jobweaver/jobweaver/shared/eventkeys"
	"github.com/jobweaver/jobweaver/shared/installation"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// MessageLimit is the most bytes of one record.
const MessageLimit = 2 << 20

const (
	// producerLimit leaves room for a record's frame, topicLimit for its batch's: sarama's estimate
	// and the broker's count differ by some bytes.
	producerLimit = MessageLimit + 64<<10
	topicLimit    = MessageLimit + 128<<10

	dialTimeout    = 5 * time.Second
	sessionTimeout = 8 * time.Second // after this time a killed member's partitions move to others
	heartbeat      = time.Second     // within this time a member notices a rebalance
	// rebalanceTimeout is how long the others wait for a member that dies or freezes in the middle of a
	// rebalance. No member takes records meanwhile, and the jobs of a dead worker must run again within 30 s. A live
	// member gives up its revoked partitions sooner than this.
	rebalanceTimeout = 20 * time.Second

	// longPoll is how long an idle fetch waits at the broker. A record ends the wait at once, so only the cost of an
	// idle process depends on it, and how soon an idle member lets a partition go or fetches from a new one: sarama
	// does both between two fetches. With seven groups that polled four times a second, an idle process was woken 120
	// times more often.
	longPoll = time.Second
)

// BrokersDefault is the replication factor that stands for the default of the brokers.
const BrokersDefault = -1

// Config has the addresses of the brokers and how to connect to them. Only Brokers is required.
type Config struct {
	Installation installation.Name `envconfig:"INSTALLATION" desc:"name of this installation, if others use the same brokers or PostgreSQL: the beginning of the names of topics, groups, databases and roles; up to 20 of a-z, 0-9 and _; the same for all processes, from the first start on"`

	Brokers           []string `envconfig:"KAFKA_BROKERS" desc:"bootstrap list, separated by commas"`
	ClientID          string   `envconfig:"KAFKA_CLIENT_ID" default:"jobweaver" desc:"client id at the brokers"`
	ReplicationFactor int16    `envconfig:"KAFKA_REPLICATION_FACTOR" default:"-1" desc:"of the topics that JobWeaver creates; -1: the brokers' default.replication.factor"`

	TLSEnabled  bool   `envconfig:"KAFKA_TLS_ENABLED" desc:"use TLS to the brokers"`
	TLSCAFile   string `envconfig:"KAFKA_TLS_CA_FILE" desc:"PEM of the CAs that verify the brokers; empty: the system's CAs"`
	TLSCertFile string `envconfig:"KAFKA_TLS_CERT_FILE" desc:"PEM of the client certificate, if the brokers require one"`
	TLSKeyFile  string `envconfig:"KAFKA_TLS_KEY_FILE" desc:"PEM of the certificate's key"`

	SASLMechanism    string      `envconfig:"KAFKA_SASL_MECHANISM" desc:"PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; empty: none"`
	SASLUsername     string      `envconfig:"KAFKA_SASL_USERNAME" desc:"user name at the brokers"`
	SASLPassword     secret.Text `envconfig:"KAFKA_SASL_PASSWORD" desc:"password of that user"`
	SASLPasswordFile string      `envconfig:"KAFKA_SASL_PASSWORD_FILE" desc:"a file with that password, which SCRAM and KAFKA_SASL_TOKEN_URL read each time"`

	SASLTokenFile    string   `envconfig:"KAFKA_SASL_TOKEN_FILE" desc:"for OAUTHBEARER: a file with the token, read at each connection"`
	SASLTokenCommand string   `envconfig:"KAFKA_SASL_TOKEN_COMMAND" desc:"instead: a shell command that prints the token, at each connection, within 10 s"`
	SASLTokenURL     string   `envconfig:"KAFKA_SASL_TOKEN_URL" desc:"instead: the OAuth 2.0 endpoint (client credentials) that gives the token; KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD are the client's id and secret"`
	SASLScopes       []string `envconfig:"KAFKA_SASL_SCOPES" desc:"scopes of that token, separated by commas"`
	SASLExtensions   []string `envconfig:"KAFKA_SASL_EXTENSIONS" desc:"SASL extensions sent with a token, as name=value, separated by commas"`

	// Dial connects to brokers in this process; nil: they are reached by TCP.
	Dial func(network, addr string) (net.Conn, error) `ignored:"true"`

	// Keys verify the signatures of records that a function reads by itself; nil: all are accepted.
	Keys *eventkeys.Keys `ignored:"true"`

	wire *tlsfiles.Client // of a Config that is in use; nil: not opened, or plain text
}

// withoutMetrics turns sarama's own metrics off: nothing reads them, and they cost a few histogram updates a record.
// The switch is the process's, so it is thrown once, before the first client.
var withoutMetrics = sync.OnceFunc(func() { metrics.UseNilMetrics = true })

// Sarama returns the configuration of a client. Its balance strategy is stateful: call Sarama for each client.
func (c Config) Sarama() (*sarama.Config, error) {
	if len(c.addrs()) == 0 {
		return nil, errors.New("KAFKA_BROKERS: no broker named")
	}
	if err := c.Installation.Check(); err != nil {
		return nil, err
	}
	withoutMetrics()
	s := sarama.NewConfig()
	s.Version = sarama.V3_6_0_0
	if c.ClientID != "" {
		s.ClientID = c.AtBrokers(c.ClientID)
	}
	setTimes(s)
	setConsumer(s)
	setProducer(s)
	c, err := c.opened()
	if err != nil {
		return nil, err
	}
	s.Net.Proxy.Enable, s.Net.Proxy.Dialer = true, dialer{c.wire, c.Dial} // sarama's option for a custom dialer
	if err := c.setSASL(s); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("configure kafka client: %w", err)
	}
	return s, nil
}

// addrs returns the brokers, without blanks as in "a:9092, b:9092".
func (c Config) addrs() []string {
	var addrs []string
	for _, b := range c.Brokers {
		if b = strings.TrimSpace(b); b != "" {
			addrs = append(addrs, b)
		}
	}
	return addrs
}

func setTimes(s *sarama.Config) {
	s.Net.DialTimeout = dialTimeout
	s.Net.ReadTimeout = 15 * time.Second
	s.Net.WriteTimeout = 15 * time.Second
	s.Metadata.Full = false // only the topics in use; a shared cluster may have thousands
	s.Metadata.Timeout = 10 * time.Second
	s.Metadata.Retry.Max = 5
	s.Metadata.Retry.Backoff = 100 * time.Millisecond
	s.Metadata.RefreshFrequency = time.Minute
	s.Metadata.AllowAutoTopicCreation = false // the broker would choose the partitions
}

func setConsumer(s *sarama.Config) {
	s.Consumer.Return.Errors = true
	s.Consumer.Offsets.Initial = sarama.OffsetOldest
	s.Consumer.Offsets.AutoCommit.Enable = false
	s.Consumer.MaxWaitTime = longPoll
	s.Consumer.Fetch.Default = 1 << 20
	s.Consumer.Fetch.MaxBytes = 8 << 20
	s.Consumer.Retry.Backoff = 250 * time.Millisecond
	group := &s.Consumer.Group
	group.ResetInvalidOffsets = true
	group.Session.Timeout = sessionTimeout
	group.Heartbeat.Interval = heartbeat
	group.Rebalance.Timeout = rebalanceTimeout
	group.Rebalance.Retry.Backoff = 250 * time.Millisecond
	group.Rebalance.Retry.Max = 8
	group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyCooperativeSticky()}
}

// setProducer is for tests that use a producer of sarama; Producer does not.
func setProducer(s *sarama.Config) {
	s.Producer.RequiredAcks = sarama.WaitForAll
	s.Producer.Partitioner = sarama.NewMurmur2Partitioner // like the producers of Java, and so of Knative
	s.Producer.MaxMessageBytes = producerLimit
	s.Producer.Return.Successes = true
	s.Producer.Retry.Max = 5
}
