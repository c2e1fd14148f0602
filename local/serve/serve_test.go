package serve_test

import (
	"database/sql"
	"net/url"
	"strings"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/migrations"
)

func TestAServerIsAllThatAnInstallationNeeds(t *testing.T) {
	t.Parallel()
	database := server(t).URL()
	p := start(t, database, "")
	p.untilReady()
	key := p.key()
	if status, _ := p.get("/api/jobs"); status != 401 {
		t.Errorf("without a key the API answers %d", status)
	}
	job, err := p.client(key).Run(t.Context(), hello())
	if err != nil || job.Status != "COMPLETED" {
		t.Errorf("the first job is %+v, %v", job, err)
	}
	if _, body := p.get("/health/readiness"); strings.Count(body, `"UP"`) != 14 { // 13 functions, and all
		t.Errorf("the probe answers %s", body)
	}
	if roles := query(t, database, `select string_agg(distinct rolname, ' ' order by rolname) from pg_auth_members
		join pg_roles on pg_roles.oid = roleid where member = (select oid from pg_roles where rolname = current_user)
			and rolname in ('jobweaver_api', 'jobweaver_scheduler', 'jobweaver_worker')`); roles != "jobweaver_api jobweaver_scheduler jobweaver_worker" {
		t.Errorf("the user has the roles %q", roles)
	}
	workers, err := migrations.WithDatabase(database, migrations.Worker.Database())
	if err != nil {
		t.Fatal(err)
	}
	if all := query(t, workers, `select string_agg(name, ' ' order by name) from installation_secrets
		where secret like 'whsec\_%' and not has_table_privilege('jobweaver_worker', 'installation_secrets', 'select')`); all != "callback webhook" {
		t.Errorf("the database keeps the secrets %q, out of reach of the functions", all)
	}
	if n := query(t, database, `select count(*) from pg_stat_activity where datname like 'jobweaver\_%'`); len(n) > 2 || n > "40" {
		t.Errorf("it has %s connections", n)
	}
	if code := p.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("it exits with %d", code)
	}

	again := start(t, database, "")
	again.untilReady()
	if strings.Contains(again.text(), "JOBWEAVER_API_KEY") {
		t.Error("the second start makes another key")
	}
	if job, err := again.client(key).Get(t.Context(), job.JobID, 0); err != nil || job.Status != "COMPLETED" {
		t.Errorf("after a restart the job is %+v, %v", job, err)
	}
}

func query(t *testing.T, database, statement string) (answer string) {
	t.Helper()
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRowContext(t.Context(), statement).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func run(t *testing.T, database, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// The commands in the error are all that an administrator has to run.
func TestAUserWithoutRightsGetsTheCommandsForAnAdministrator(t *testing.T) {
	t.Parallel()
	admin := server(t).URL()
	run(t, admin, `create role "the app" login password 'secret'`)
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("the app", "secret")
	p := start(t, u.String(), "")
	<-p.ended
	_, commands, found := strings.Cut(p.text(), "an administrator of the server can, by\n")
	if !found || strings.Count(commands, "CREATE DATABASE") != 3 {
		t.Fatalf("it printed %s", p.text())
	}
	for statement := range strings.Lines(commands) {
		if strings.TrimSpace(statement) != "" {
			run(t, admin, statement)
		}
	}
	p = start(t, u.String(), "")
	p.untilReady()
	if job, err := p.client(p.key()).Run(t.Context(), hello()); err != nil || job.Status != "COMPLETED" {
		t.Errorf("the first job is %+v, %v", job, err)
	}
}

// Three processes with a service each share the work over a broker.
func TestServicesInProcessesOfTheirOwnNeedABroker(t *testing.T) {
	t.Parallel()
	database := server(t).URL()
	alone := start(t, database, "api")
	<-alone.ended
	if !strings.Contains(alone.text(), "KAFKA_BROKERS: is not set") || !strings.Contains(alone.text(), "command, dispatch,") {
		t.Errorf("it printed %s", alone.text())
	}
	brokers := "KAFKA_BROKERS=" + broker(t)
	api := start(t, database, "api", brokers)
	worker, scheduler := start(t, database, "worker", brokers), start(t, database, "scheduler", brokers)
	for _, p := range []*process{api, worker, scheduler} {
		p.untilReady()
	}
	if _, body := scheduler.get("/health/readiness"); strings.Count(body, `"UP"`) != 7 || !strings.Contains(body, `"watchdog":"UP"`) {
		t.Errorf("the scheduler's probe answers %s", body)
	}
	if status, text := worker.get("/metrics"); status != 200 || !strings.Contains(text, `jobweaver_worker_slots`) {
		t.Errorf("the worker's metrics answer %d", status)
	}
	if job, err := api.client(api.key()).Run(t.Context(), hello()); err != nil || job.Status != "COMPLETED" {
		t.Errorf("the first job is %+v, %v", job, err)
	}
}

func TestAWrongChoiceOfFunctionsIsNamed(t *testing.T) {
	t.Parallel()
	for functions, want := range map[string]string{
		"gatway": `"gatway" is neither a function nor`, "": "DATABASE_URL: is not set", "api": "KAFKA_BROKERS: is not set",
	} {
		p := start(t, "", functions)
		<-p.ended
		if !strings.Contains(p.text(), want) {
			t.Errorf("%q: it printed %s", functions, p.text())
		}
	}
}

// broker starts a broker that processes share.
func broker(t *testing.T) string {
	t.Helper()
	kafka, err := localkafka.StartEmbedded(localkafka.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kafka.Stop() })
	return kafka.Brokers()[0]
}
