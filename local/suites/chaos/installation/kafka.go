package installation

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
)

//go:embed kafka.properties
var kafkaText string

var kafkaProperties = template.Must(template.New("kafka.properties").Parse(kafkaText))

// Brokers is their number.
const (
	Brokers      = 3
	maxMessage   = 2560 << 10 // the limit of 2 MiB, and room for the envelope
	startsWithin = 90 * time.Second
)

// Broker is one of three brokers, which are also controllers.
type Broker struct {
	*process
	ID                           int
	Client, Internal, Controller int
	ClientProxy, InternalProxy   int
	Voters, Data                 string
	MaxMessage                   int
	started                      int64 // where its log ended at its last start
}

// newBrokers prepares three brokers whose listeners for clients and for each other go through proxies.
func (h *Installation) newBrokers(ctx context.Context) error {
	jars, err := localkafka.Jars(ctx, h.Log)
	if err != nil {
		return err
	}
	all, err := ports(5 * Brokers)
	if err != nil {
		return err
	}
	var voters []string
	for i := range Brokers {
		own := all[5*i:]
		b := &Broker{
			ID: i + 1, Client: own[0], Internal: own[1], Controller: own[2], ClientProxy: own[3], InternalProxy: own[4],
			MaxMessage: maxMessage,
		}
		name := fmt.Sprintf("kafka-%d", b.ID)
		voters = append(voters, fmt.Sprintf("%d@%s", b.ID, loopback(b.Controller)))
		b.process = h.process(name, func() *exec.Cmd {
			return exec.Command("java", "-Xms128m", "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
				"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
				"-Dorg.slf4j.simpleLogger.showDateTime=true",
				"-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info", // logs when it is ready
				"-cp", filepath.Join(jars, "*"), "kafka.Kafka", h.Path(name+".properties"))
		})
		if b.Data, err = h.disk(name, b.ID == Brokers, 1<<30); err != nil {
			return err
		}
		err = errors.Join(h.Net.listenAt(b.ClientProxy, b.Client, h.Net.kafkaClients(name)),
			h.Net.listenAt(b.InternalProxy, b.Internal, h.Net.kafkaClients(name)))
		if err != nil {
			return err
		}
		h.Brokers = append(h.Brokers, b)
	}
	return h.formatBrokers(ctx, jars, strings.Join(voters, ","))
}

func (h *Installation) formatBrokers(ctx context.Context, jars, voters string) error {
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	id[0] &= 0x7f // an id that begins with a dash would be taken for an option
	for _, b := range h.Brokers {
		b.Voters, b.Data = voters, filepath.Join(b.Data, "data")
		var text bytes.Buffer
		if err := kafkaProperties.Execute(&text, b); err != nil {
			return fmt.Errorf("configure %s: %w", b.Name, err)
		}
		file := h.Path(b.Name + ".properties")
		if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
			return fmt.Errorf("configure %s: %w", b.Name, err)
		}
		out, err := exec.CommandContext(ctx, "java", "-cp", filepath.Join(jars, "*"), "kafka.tools.StorageTool",
			"format", "-t", base64.RawURLEncoding.EncodeToString(id), "-c", file).CombinedOutput()
		if err != nil {
			return fmt.Errorf("format the data of %s: %w\n%s", b.Name, err, out)
		}
	}
	return nil
}

// begin starts the broker without waiting for it.
func (b *Broker) begin() error {
	if info, err := os.Stat(b.Log); err == nil {
		b.started = info.Size()
	}
	return b.Start()
}

// awaitReady waits until the broker serves clients.
func (b *Broker) awaitReady(ctx context.Context) error {
	return Within(ctx, startsWithin, func(context.Context) error {
		text, err := os.ReadFile(b.Log)
		if err != nil {
			return err
		}
		if !bytes.Contains(text[min(int64(len(text)), b.started):], []byte("Kafka Server started")) {
			return fmt.Errorf("%s has not started", b.Name)
		}
		return nil
	})
}

// StartBrokers starts the brokers that are down, and waits for them.
func (h *Installation) StartBrokers(ctx context.Context, list ...*Broker) error {
	var errs []error
	for _, b := range list {
		errs = append(errs, b.begin())
	}
	for _, b := range list {
		errs = append(errs, b.awaitReady(ctx))
	}
	return errors.Join(errs...)
}

// Bootstrap returns the broker list for a client.
func (h *Installation) Bootstrap() (list []string) {
	for _, b := range h.Brokers {
		list = append(list, loopback(b.ClientProxy))
	}
	return list
}

const killedWithUs = syscall.SIGKILL
