// Package localkafka runs a Kafka broker on this machine, for development and for tests: one that is
// embedded in this process, or Apache Kafka as a child.
package localkafka

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/jobweaver/jobweaver/infra/laptop/folderlock"
)

const (
	// maxMessage is what a broker takes at once: our limit of 2 MiB and room for what is around it.
	maxMessage = 2560 << 10
	// segment is the size of the embedded broker's files. One goes when all of it has been trimmed.
	segment = 16 << 20
)

// Config is where a broker keeps its data and how it is reached.
type Config struct {
	Dir      string            // data; kept, and found again by the next start. Embedded: "" is memory
	Port     int               // on 127.0.0.1; 0 takes a free one
	Progress func(line string) // called before slow first steps; may be nil
	Secure   *Secure           // of Apache Kafka only: a second listener; may be nil
}

// Secure is a listener that speaks TLS and SASL (PLAIN and both SCRAMs), and asks for a client's certificate.
type Secure struct {
	Port           int    // on 127.0.0.1; 0 takes a free one
	Keystore       string // PEM file of its key and its certificate
	ClientCA       string // PEM file of whom it trusts
	User, Password string // letters, digits and blanks
}

// Server is one running broker.
type Server struct {
	address string
	secure  string
	stop    func() error
}

// Brokers is the bootstrap list.
func (s *Server) Brokers() []string { return []string{s.address} }

// SecureBrokers is the bootstrap list of the listener of Config.Secure.
func (s *Server) SecureBrokers() []string { return []string{s.secure} }

// Stop ends the broker cleanly; its data stays in Dir.
func (s *Server) Stop() error { return s.stop() }

// StartEmbedded runs a broker that speaks Kafka's protocol within this process. With a Dir its data
// survives any end of the process, though not one of the machine. Of a topic that groups read it keeps
// what one of them has still to read, and some thousand records before that.
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
	trimmer := startTrimmer(cluster)
	stop := func() error {
		trimmer.close()
		cluster.Close()
		return unlock()
	}
	return &Server{address: cluster.ListenAddrs()[0], stop: stop}, nil
}

func takeFolder(dir string) (*folderlock.Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return folderlock.Take(dir)
}

// errorsOnly: the broker's warnings are about its clients, which say so themselves.
type errorsOnly struct{}

func (errorsOnly) Logf(level kfake.LogLevel, format string, args ...any) {
	if level == kfake.LogLevelError {
		slog.Error("embedded broker", "error", fmt.Sprintf(format, args...))
	}
}
