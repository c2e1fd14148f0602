// Package localkafka runs a Kafka broker on this machine, for development and for tests: an embedded one in this
// process, or Apache Kafka as a child.
package localkafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/jobweaver/jobweaver/infra/laptop/folderlock"
)

const (
	// maxMessage is the broker's limit of a batch: JobWeaver's limit of 2 MiB, and room for the envelope.
	maxMessage = 2560 << 10
	// segment is the size of the embedded broker's files. A file is deleted when all its records were trimmed.
	segment = 16 << 20
	// memorySegment is the same for a broker in memory, where what is deleted counts until its segment is gone.
	memorySegment = 256 << 10

	virtualPort = 9092 // of a network that has no other broker
	dialTimeout = 5 * time.Second
)

// Config describes where a broker keeps its data and how it is reached.
type Config struct {
	Dir      string            // data, which the next start finds again. Embedded: "" is memory
	Port     int               // on 127.0.0.1; 0 takes a free one
	Progress func(line string) // called before slow first steps; may be nil
	Secure   *Secure           // Apache Kafka only: a second listener; may be nil
}

// Secure is a listener with TLS and SASL (PLAIN and both SCRAMs) that requires a client certificate.
type Secure struct {
	Port           int    // on 127.0.0.1; 0 takes a free one
	Keystore       string // PEM file of its key and its certificate
	ClientCA       string // PEM file of the CA of client certificates
	User, Password string // letters, digits and blanks
}

// Server is a running broker.
type Server struct {
	address string
	secure  string
	stop    func() error
	network *kfake.VirtualNetwork // of a broker in memory; nil: TCP
}

// Dial connects to a broker of StartInMemory.
func (s *Server) Dial(network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	return s.network.DialContext(ctx, network, addr)
}

// Brokers returns the bootstrap list.
func (s *Server) Brokers() []string { return []string{s.address} }

// SecureBrokers returns the bootstrap list of the listener of Config.Secure.
func (s *Server) SecureBrokers() []string { return []string{s.secure} }

// Stop stops the broker cleanly; its data stays in Dir.
func (s *Server) Stop() error { return s.stop() }

// StartEmbedded runs a broker with Kafka's protocol within this process. With a Dir its data survives any end of the
// process, but not of the machine. In a topic that groups read, it keeps the records that a group has not read yet, and
// some thousands before them.
func StartEmbedded(cfg Config) (*Server, error) {
	options := []kfake.Opt{
		kfake.Ports(cfg.Port),
		kfake.WithLogger(errorsOnly{}),
		kfake.BrokerConfigs(map[string]string{
			"message.max.bytes": strconv.Itoa(maxMessage), "log.segment.bytes": strconv.Itoa(segment),
		}),
	}
	unlock := func() error { return nil }
	if cfg.Dir != "" {
		lock, err := takeFolder(cfg.Dir)
		if err != nil {
			return nil, fmt.Errorf("start broker: %w", err)
		}
		unlock = lock.Close
		options = append(options, kfake.DataDir(filepath.Join(cfg.Dir, "data")))
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start broker: %w", err), unlock())
	}
	trimmer := startTrimmer(&trimmer{cluster: cluster, lookBack: lookBack, every: trimEvery})
	stop := func() error {
		trimmer.close()
		cluster.Close()
		return unlock()
	}
	return &Server{address: cluster.ListenAddrs()[0], stop: stop}, nil
}

// StartInMemory runs a broker with Kafka's protocol within this process, for this process alone: it has no port, and
// clients connect by Dial. It keeps only what a group has not read yet, and of that at most limit bytes: beyond them it
// deletes the oldest records of the partitions that have most.
// Why: docs/decisions/events.md#a-broker-in-memory-deletes-what-no-group-reads
func StartInMemory(limit int64) (*Server, error) {
	network := &kfake.VirtualNetwork{}
	cluster, err := kfake.NewCluster(
		kfake.Ports(virtualPort), kfake.ListenFn(network.Listen), kfake.WithLogger(errorsOnly{}),
		kfake.BrokerConfigs(map[string]string{
			"message.max.bytes": strconv.Itoa(maxMessage), "log.segment.bytes": strconv.Itoa(memorySegment),
		}))
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	server := &Server{address: cluster.ListenAddrs()[0], network: network}
	t := &trimmer{cluster: cluster, limit: limit, dial: server.Dial, every: memoryTrimEvery}
	t.watchProduced()
	startTrimmer(t)
	server.stop = func() error {
		t.close()
		cluster.Close()
		return nil
	}
	return server, nil
}

func takeFolder(dir string) (*folderlock.Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return folderlock.Take(dir)
}

// errorsOnly drops the broker's warnings: they are about its clients, which report them themselves.
type errorsOnly struct{}

func (errorsOnly) Logf(level kfake.LogLevel, format string, args ...any) {
	if level == kfake.LogLevelError {
		slog.Error("embedded broker", "error", fmt.Sprintf(format, args...))
	}
}
