package examples

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// orderPrograms start the program of each language that uses an outbox, in its folder.
var orderPrograms = map[string]func(t *testing.T) []string{
	"go":         func(t *testing.T) []string { return []string{binary(t, "outbox-go")} },
	"python":     func(*testing.T) []string { return []string{".venv/bin/python", "order.py"} },
	"typescript": func(*testing.T) []string { return []string{"node", "dist/order.js"} },
	"java":       func(*testing.T) []string { return []string{"java", "-cp", "target/lib/*", "Order.java"} },
}

func TestEachLanguageEnqueuesInItsOwnTransaction(t *testing.T) {
	t.Parallel()
	database := pgtest.Empty(t)
	if err := outboxdb.Install(t.Context(), database, outboxdb.Roles{}); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "create table orders (total int, job_id uuid)"); err != nil {
		t.Fatal(err)
	}
	o := dev.Options{
		Dir: t.TempDir(), Kafka: "embedded", Queues: []string{"default"}, Out: t.Output(),
		Metrics: prometheus.NewRegistry(), Relay: []string{database},
	}
	err = dev.Run(t.Context(), o, func(ctx context.Context, gateway string) error {
		api := client.New(gateway, "")
		for language := range orderPrograms {
			t.Run(language, func(t *testing.T) {
				mayRun(t, language)
				enqueues(ctx, t, api, conn, database, language)
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// enqueues runs a program, which prints the job of the order that it has committed.
func enqueues(ctx context.Context, t *testing.T, api *client.Client, conn *pgx.Conn, database, language string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	command := orderPrograms[language](t)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = "outbox-" + language
	cmd.Env = []string{
		"DATABASE_URL=" + database, "JDBC_URL=" + jdbc(t, database), "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
	}
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	id := strings.TrimSpace(string(out))
	job, err := api.Await(ctx, id, time.Minute, func(error) {})
	for err != nil && ctx.Err() == nil { // the job arrives soon
		job, err = api.Await(ctx, id, time.Minute, func(error) {})
	}
	if err != nil || job.Status != "COMPLETED" || len(job.Tags) != 1 || job.Tags[0] != language {
		t.Fatalf("job %q: %+v, %v", id, job, err)
	}
	var orders int
	if err := conn.QueryRow(ctx, "select count(*) from orders where job_id = $1 and total = 120", id).Scan(&orders); err != nil {
		t.Fatal(err)
	}
	page, err := api.ListPage(ctx, client.Filter{Tag: language}, 10, "")
	if err != nil || orders != 1 || len(page.Jobs) != 1 {
		t.Errorf("%d orders, %d jobs: %v", orders, len(page.Jobs), err)
	}
}

// jdbc returns an address in the form for Java's driver.
func jdbc(t *testing.T, address string) string {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := at.Query()
	query.Set("user", at.User.Username())
	password, _ := at.User.Password()
	query.Set("password", password)
	return "jdbc:postgresql://" + at.Host + filepath.Clean(at.Path) + "?" + query.Encode()
}
