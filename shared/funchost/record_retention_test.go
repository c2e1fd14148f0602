package funchost

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// A topic that an operator created may keep records for longer than the rows by which they are recognized.
func TestATooLongRetentionOfATopicIsLogged(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	topic := jobevent.RunTopic(p.in)
	for _, tt := range []struct {
		what  string
		age   time.Duration
		topic string
		level string // of the only log line; empty: there is none
	}{
		{"as the code makes it", jobevent.RecordsGone, topic, ""},
		{"kept for longer than the rows", jobevent.RecordsGone - 1, topic, "WARN"},
		{"a topic that is missing", time.Hour, topic + "-missing", "INFO"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			ctx := telemetry.WithLogger(t.Context(), slog.New(slog.NewJSONHandler(&log, nil)))
			h := host{cfg: p.cfg, f: Function{Fence: Fence{Setting: "AN_AGE", Age: tt.age, Topics: []string{tt.topic}}}}
			h.checkFence(ctx)
			if lines := strings.Count(log.String(), "\n"); (lines == 0) != (tt.level == "") || lines > 1 {
				t.Fatalf("logged %q", &log)
			}
			if tt.level == "" {
				return
			}
			var line map[string]any
			if err := json.Unmarshal(log.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			if line["level"] != tt.level || line["setting"] != "AN_AGE" {
				t.Errorf("logged %s", &log)
			}
			if tt.level == "WARN" && (line["topic"] != tt.topic || line["value"] != tt.age.String() ||
				line["settingAtLeast"] != jobevent.RecordsGone.String() || line["topicAtMost"] != topicAtMost ||
				line["retentionMs"] != float64(jobevent.MaxRetention.Milliseconds())) {
				t.Errorf("logged %s", &log)
			}
		})
	}
}

// chanLog passes log lines on.
type chanLog chan string

func (c chanLog) Write(text []byte) (int, error) {
	c <- string(text)
	return len(text), nil
}

func TestTheFunctionRunsWhateverRetentionTheBrokersReport(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	ctx, stop := context.WithCancel(t.Context())
	log, ended := make(chanLog, 1000), make(chan error, 1)
	runs := make(chan struct{})
	f := Function{
		Name: p.name, Fence: Fence{Setting: "AN_AGE", Age: time.Hour, Topics: []string{jobevent.RunTopic(p.in)}},
		Run: func(ctx context.Context, _ Publish) error { close(runs); <-ctx.Done(); return nil },
	}
	go func() { ended <- Run(telemetry.WithLogger(ctx, slog.New(slog.NewTextHandler(log, nil))), p.cfg, f) }()
	warned := testwait.Within(t, time.Minute)
	for line := ""; !strings.Contains(line, "setting=AN_AGE"); {
		select {
		case line = <-log:
		case <-warned.Done():
			t.Fatal("no warning was logged")
		}
	}
	select {
	case <-runs:
	case <-warned.Done():
		t.Fatal("it does not run")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
