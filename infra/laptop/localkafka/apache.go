package localkafka

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"text/template"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
)

//go:embed server.properties
var propertiesText string

var properties = template.Must(template.New("server.properties").Parse(propertiesText))

// StartApache runs Apache Kafka as a child that ends with this process. It needs java (17 or later), and mvn at the
// first start on this machine. The context bounds only the start.
func StartApache(ctx context.Context, cfg Config) (*Server, error) {
	s, err := startApache(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("start Apache Kafka: %w", err)
	}
	return s, nil
}

func startApache(ctx context.Context, cfg Config) (_ *Server, err error) {
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	jars, err := Jars(ctx, cfg.Progress)
	if err != nil {
		return nil, err
	}
	lock, err := takeFolder(cfg.Dir)
	if err != nil {
		return nil, err
	}
	a := apache{dir: cfg.Dir, classpath: filepath.Join(jars, "*"), port: cfg.Port, secure: cfg.Secure}
	if err := a.run(ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	stop := func() error { return errors.Join(a.stop(), lock.Close()) }
	server := &Server{address: fmt.Sprintf("127.0.0.1:%d", a.port), stop: stop}
	if a.secure != nil {
		server.secure = fmt.Sprintf("127.0.0.1:%d", a.secure.Port)
	}
	return server, nil
}

type apache struct {
	dir, classpath string
	port           int
	secure         *Secure // nil: none
	cmd            *exec.Cmd
	ended          <-chan struct{}
}

func (a *apache) run(ctx context.Context) error {
	config, err := a.configure()
	if err != nil {
		return err
	}
	if err := a.format(ctx, config); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(a.dir, "kafka.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	a.cmd = exec.Command("java", "-Xms256m", "-Xmx1g",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info", // logs when it is ready
		"-cp", a.classpath, "kafka.Kafka", config)
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if a.ended, err = childproc.Start(a.cmd, syscall.SIGTERM); err != nil {
		return err
	}
	if err := a.awaitReady(ctx, log.Name()); err != nil {
		return errors.Join(err, a.stop())
	}
	return nil
}

func (a *apache) configure() (file string, err error) {
	controller, err := freeport.Pick()
	if err != nil {
		return "", err
	}
	if a.port == 0 {
		if a.port, err = freeport.Pick(); err != nil {
			return "", err
		}
	}
	if a.secure != nil {
		secure := *a.secure
		if a.secure = &secure; secure.Port == 0 {
			if a.secure.Port, err = freeport.Pick(); err != nil {
				return "", err
			}
		}
	}
	var text bytes.Buffer
	err = properties.Execute(&text, map[string]any{
		"Port": a.port, "ControllerPort": controller, "Data": a.data(), "MaxMessage": maxMessage, "Secure": a.secure,
	})
	if err != nil {
		return "", err
	}
	file = filepath.Join(a.dir, "server.properties")
	return file, os.WriteFile(file, text.Bytes(), 0o600)
}

func (a *apache) data() string { return filepath.Join(a.dir, "data") }

// format prepares the data folder at its first start.
func (a *apache) format(ctx context.Context, config string) error {
	if _, err := os.Stat(filepath.Join(a.data(), "meta.properties")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	id[0] &= 0x7f // an id that begins with a dash would be taken for an option
	args := []string{"-cp", a.classpath, "kafka.tools.StorageTool",
		"format", "-t", base64.RawURLEncoding.EncodeToString(id), "-c", config}
	if a.secure != nil {
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram",
				fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, a.secure.User, a.secure.Password))
		}
	}
	cmd := exec.CommandContext(ctx, "java", args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("format its data: %w\n%s", err, out)
	}
	return nil
}

func (a *apache) awaitReady(ctx context.Context, log string) error {
	for {
		text, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte("Kafka Server started")) {
			return nil
		}
		select {
		case <-a.ended:
			return fmt.Errorf("it ended\n%s", text[max(0, len(text)-2000):])
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (a *apache) stop() error {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = a.cmd.Process.Signal(sig) // an error means that it has ended
		select {
		case <-a.ended:
			return nil
		case <-time.After(20 * time.Second):
		}
	}
	return errors.New("does not stop")
}
