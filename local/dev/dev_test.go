package dev_test

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/local/client"
	"github.com/jobweaver/jobweaver/local/demo"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/local/mailcatch"
)

func options(t *testing.T, dir string) dev.Options {
	t.Helper()
	return dev.Options{
		Dir: dir, Kafka: "embedded", Queues: []string{"default"}, Out: t.Output(), Metrics: prometheus.NewRegistry(),
	}
}

func TestTheHouseRunsTheDemoAndFindsItsDataAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mails, err := mailcatch.Start(mailcatch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mails.Close() })
	o := options(t, dir)
	o.Mails = mails
	err = dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		return demo.Run(ctx, client.New(url, ""), demo.House{MailPage: mails.URL()}, t.Output())
	})
	if err != nil {
		t.Fatal(err)
	}
	err = dev.Run(t.Context(), options(t, dir), func(ctx context.Context, at string) error {
		c := client.New(at, "")
		failed, _, _, err := c.List(ctx, url.Values{"status": {"FAILED"}})
		if err != nil || len(failed) != 1 {
			t.Errorf("%d failed jobs of the first run, %v", len(failed), err)
			return err
		}
		// The whole way still works: the dead job gets another chance, and dies again.
		if _, err := c.Command(ctx, failed[0].JobID, "retry"); err != nil {
			return err
		}
		again, err := client.Follow(ctx, c, failed[0].JobID, func(*client.Job) {})
		for err == nil && again.Attempt == failed[0].Attempt { // the API has not heard of the retry yet
			again, err = client.Follow(ctx, c, failed[0].JobID, func(*client.Job) {})
		}
		if err == nil && (again.Status != "FAILED" || again.Attempt != failed[0].Attempt+2) {
			t.Errorf("after the retry: %s at attempt %d", again.Status, again.Attempt)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatCannotStartSaysWhyInOneLine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for name, c := range map[string]struct {
		change func(*dev.Options)
		want   string
	}{
		"a port that is taken": {func(o *dev.Options) { o.Port = taken.Addr().(*net.TCPAddr).Port }, "--port"},
		"an unknown broker":    {func(o *dev.Options) { o.Kafka = "rabbit" }, "--kafka"},
		"an unknown part":      {func(o *dev.Options) { o.Only = []string{"redis"} }, "--only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, t.TempDir())
			c.change(&o)
			err := dev.Run(t.Context(), o, func(context.Context, string) error { return nil })
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("said %v", err)
			}
		})
	}
}

func TestOnlyTheBaseIsStartedAndItsSettingsPrinted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := options(t, t.TempDir())
	o.Only = []string{"postgres", "kafka"}
	var said bytes.Buffer
	o.Out = writer(func(line string) {
		said.WriteString(line)
		if strings.Contains(line, "Ctrl-C") {
			cancel()
		}
	})
	if err := dev.Run(ctx, o, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"export KAFKA_BROKERS=127.0.0.1:", "jobweaver_scheduler", "bin/runjob", "export CALLBACK_SECRETS_FILE='" + o.Dir} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %q in\n%s", want, said.String())
		}
	}
	if strings.Contains(said.String(), "whsec_") {
		t.Error("a secret is printed")
	}
}

type writer func(text string)

func (w writer) Write(text []byte) (int, error) {
	w(string(text))
	return len(text), nil
}
