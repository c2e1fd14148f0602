package installcmd

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

func TestMigrateReportsANewerDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t, migrations.Worker)
	if state, err := schemaState(t.Context(), url, migrations.Worker); state != "up to date" || err != nil {
		t.Errorf("%q, %v", state, err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)"); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), url, migrations.Worker, nil); err != nil {
		t.Error(err)
	}
	state, err := schemaState(t.Context(), url, migrations.Worker)
	if err != nil || !strings.HasPrefix(state, "newer than this version of jobweaver: it has migration 999, and ") {
		t.Errorf("%q, %v", state, err)
	}
}

func TestBrokersThatAreAwayAreLoggedOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	ctx := telemetry.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&out, nil)))
	cfg := kafkaevent.Config{Brokers: []string{"127.0.0.1:1"}, ClientID: "test"}
	began := time.Now()
	if err := createTopics(ctx, cfg, jobevent.Topics(nil), 2*time.Second); err == nil || time.Since(began) < 2*time.Second {
		t.Fatalf("ended with %v after %s", err, time.Since(began))
	}
	if strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `what="create topics"`) {
		t.Errorf("logged %q", &out)
	}
}
