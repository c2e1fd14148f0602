package serve_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/pgtest/pgbouncer"
)

// layouts are installations on one server and one broker, two of them in one database.
var layouts = map[string][]string{
	"without a name":         nil,
	"with a name":            {"INSTALLATION=shop"},
	"in schemas":             {"DATABASE_SCHEMAS=true", "INSTALLATION=shop_eu"},
	"in schemas beside them": {"DATABASE_SCHEMAS=true", "INSTALLATION=shop_us"},
}

func TestInstallationsShareAServerAndABrokerAndSeeNothingOfEachOther(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("its processes do what those of other tests do, in other places")
	}
	database, brokers := server(t).URL(), "KAFKA_BROKERS="+broker(t)
	all, jobs := map[string]*process{}, map[string]string{}
	for way, env := range layouts {
		all[way] = start(t, database, "", append(env, brokers)...)
	}
	clients := map[string]*client.Client{}
	for way, p := range all {
		p.untilReady()
		clients[way] = p.client(p.key())
	}
	for way, c := range clients {
		for n := range 3 { // an event of another installation would be one too many, or never come
			job, err := c.Run(t.Context(), hello())
			if err != nil || job.Status != client.Completed || job.Attempt != 1 {
				t.Errorf("%s: job %d is %+v, %v", way, n, job, err)
			}
			jobs[way] = job.JobID
		}
		streams(t, c)
	}
	for way, c := range clients {
		for of, id := range jobs {
			if _, err := c.Get(t.Context(), id, 0); (err == nil) != (way == of) {
				t.Errorf("%s sees the job of the one %s: %v", way, of, err)
			}
		}
	}
	if _, body := all["with a name"].get("/health/readiness"); strings.Contains(body, "DOWN") {
		t.Errorf("it answers %s", body)
	}
	remove(t, all["in schemas"], database, migrations.Layout{Installation: "shop_eu", Schemas: true})
	remove(t, all["with a name"], database, migrations.Layout{Installation: "shop"})
	for way, c := range clients {
		if all[way].hasEnded() {
			continue
		}
		if job, err := c.Run(t.Context(), hello()); err != nil || job.Status != client.Completed {
			t.Errorf("%s: after the removal of others the job is %+v, %v", way, job, err)
		}
	}
	for way, p := range all {
		if p.hasEnded() {
			continue
		}
		if text := p.text(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "rejected") {
			t.Errorf("%s: it logs %s", way, text)
		}
		if code := p.stop(syscall.SIGTERM); code != 0 {
			t.Errorf("%s: it exits with %d", way, code)
		}
	}
}

// remove removes an installation from PostgreSQL, as docs/servers.md describes it.
func remove(t *testing.T, p *process, database string, layout migrations.Layout) {
	t.Helper()
	if code := p.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	what, more := "database ", ""
	if layout.Schemas {
		what, more = "schema ", " cascade"
	}
	for _, set := range layout.Sets() {
		run(t, database, "drop "+what+set.Database()+more)
		run(t, database, "drop role "+strings.Join(append(set.Roles(), set.ServiceRole()), ", "))
	}
}

// streams checks that changes of jobs reach a waiting client at once, by LISTEN and NOTIFY.
func streams(t *testing.T, c *client.Client) {
	t.Helper()
	job, err := c.Submit(t.Context(), client.JobRequest{JobType: "SIMULATION", Payload: hello().Payload, Delay: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := c.Wait(t.Context(), job.JobID); err != nil || ended.Status != client.Completed {
		t.Errorf("the job is %+v, %v", ended, err)
	}
}

// Two installations have locks of their own in the same database, and each a standby.
func TestAnInstallationInSchemasRestartsAndHasAStandby(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("its processes do what those of other tests do, in other places")
	}
	_, at := given(t)
	env, other := []string{"DATABASE_SCHEMAS=true"}, []string{"DATABASE_SCHEMAS=true", "INSTALLATION=other"}
	first, second := start(t, at, "", env...), start(t, at, "", other...)
	first.untilReady()
	second.untilReady()
	c := first.client(first.key())
	standby := start(t, at, "", env...)
	standby.until("it stands by", func() bool { return strings.Contains(standby.text(), "standing by") })
	runs(t, c)
	runs(t, second.client(second.key()))
	if code := first.stop(syscall.SIGKILL); code != -1 {
		t.Errorf("it exits with %d", code)
	}
	standby.untilReady()
	runs(t, standby.client(first.key()))
	if code := standby.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	// As a migration of a later version would find it, with goose's table in the schema.
	schema, err := migrations.Layout{Schemas: true}.Address(at, migrations.API)
	if err != nil {
		t.Fatal(err)
	}
	_, newest, err := migrations.Versions(t.Context(), schema, migrations.API)
	if err != nil {
		t.Fatal(err)
	}
	run(t, schema, "drop function end_before, enter_failures, enter_former_ends, enter_deliveries, update_waits; delete from goose_db_version where version_id = "+fmt.Sprint(newest))
	again := start(t, at, "", env...)
	again.untilReady()
	if !strings.Contains(again.text(), "migrating") {
		t.Errorf("it does not migrate: %s", again.text())
	}
	runs(t, again.client(first.key()))
	if roles := query(t, at, `select string_agg(nspname || ' ' || has_schema_privilege('jobweaver_api', nspname, 'usage')
		|| ' ' || has_schema_privilege('jobweaver_gateway', nspname, 'usage'), ', ' order by nspname)
		from pg_namespace where nspname like '%jobweaver%'`); roles != "jobweaver_api true true, jobweaver_scheduler false false, "+
		"jobweaver_worker false false, other_jobweaver_api false false, other_jobweaver_scheduler false false, other_jobweaver_worker false false" {
		t.Errorf("the api's roles may use %s", roles)
	}
	if tables := query(t, at, `select count(*) from pg_class where relnamespace = 'public'::regnamespace`); tables != "0" {
		t.Errorf("public has %s relations", tables)
	}
}

// given returns the address of a database for a user who may create roles and no database.
func given(t *testing.T) (admin, tenant string) {
	t.Helper()
	admin = server(t).URL()
	run(t, admin, "create role tenant login createrole password 'secret'")
	run(t, admin, "create database given")
	run(t, admin, "grant create on database given to tenant")
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword("tenant", "secret"), "/given"
	return admin, u.String()
}

// The user may make neither databases nor roles, and first not even schemas.
func TestAUserWithOneDatabaseGetsTheCommandsForAnAdministrator(t *testing.T) {
	t.Parallel()
	admin, at := given(t)
	run(t, admin, "alter role tenant nocreaterole; revoke create on database given from tenant")
	three := start(t, at, "")
	<-three.ended
	if !strings.Contains(three.text(), "CREATE DATABASE jobweaver_api OWNER") || !strings.Contains(three.text(), "set DATABASE_SCHEMAS=true") {
		t.Errorf("it printed %s", three.text())
	}
	p := start(t, at, "", "DATABASE_SCHEMAS=true", "INSTALLATION=shop")
	<-p.ended
	_, commands, found := strings.Cut(p.text(), "an administrator of the server can, by\n")
	if !found || strings.Count(commands, "\n") != 1 {
		t.Fatalf("it printed %s", p.text())
	}
	run(t, admin, commands)
	p = start(t, at, "", "DATABASE_SCHEMAS=true", "INSTALLATION=shop")
	p.untilReady()
	runs(t, p.client(p.key()))
	if !strings.Contains(p.text(), "may make no roles: functions have all its rights") {
		t.Errorf("it printed %s", p.text())
	}
}

func TestASettingThatCannotBeIsOneSentence(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		`INSTALLATION=x"; drop database`: "INSTALLATION: ",
		"INSTALLATION=shop-eu":           `INSTALLATION: "shop-eu" is not a letter and`,
		"INSTALLATION=pg":                "INSTALLATION: ",
		"DATABASE_SCHEMAS=yes please":    `DATABASE_SCHEMAS: "yes please" must be true or false`,
	} {
		p := start(t, "postgres://tenant@127.0.0.1:1/none", "", setting)
		<-p.ended
		if _, sentence, _ := strings.Cut(p.text(), "ended with "); !strings.HasPrefix(sentence, want) || strings.Count(sentence, "\n") != 1 {
			t.Errorf("%s: it printed %s", setting, p.text())
		}
	}
}

// Behind a pooler each schema needs a role of its own, since the search path is a setting of the role.
func TestAnInstallationInSchemasRunsBehindAPooler(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("its processes do what those of other tests do, in other places")
	}
	admin, at := given(t)
	refused := start(t, pgbouncer.Start(t, at, "transaction"), "", "DATABASE_DIRECT_URL="+at, "DATABASE_SCHEMAS=true")
	<-refused.ended
	if !strings.Contains(refused.text(), "DATABASE_SCHEMAS: is true") || !strings.Contains(refused.text(), "migrate --services") {
		t.Errorf("it printed %s", refused.text())
	}
	layout := migrations.Layout{Installation: "shop", Schemas: true}
	urls, err := layout.Ensure(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"DATABASE_SCHEMAS=true", "INSTALLATION=shop"}
	for _, set := range layout.Sets() {
		role, url := set.ServiceRole(), urls.Of(set.Functions[0])
		if err := errors.Join(migrations.Up(t.Context(), url, set, nil),
			migrations.GrantService(t.Context(), url, set, map[string]string{role: "secret"})); err != nil {
			t.Fatal(err)
		}
		direct := strings.Replace(at, "tenant:", role+":", 1)
		name := strings.ToUpper(set.Name) + "_DATABASE"
		env = append(env, name+"_DIRECT_URL="+direct, name+"_URL="+pgbouncer.Start(t, direct, "transaction"))
	}
	// These roles may read no secrets of the installation, so all processes have the same ones.
	env = append(env, "WEBHOOK_SECRETS=whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
		"CALLBACK_SECRETS=whsec_OTEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
	p := start(t, "", "", env...)
	p.untilReady()
	c := p.client(p.key())
	runs(t, c)
	streams(t, c)
	if n := query(t, admin, `select count(*) from pg_db_role_setting where setrole::regrole::text like 'shop\_jobweaver\_%'
		and 'search_path=' || setrole::regrole::text = any (setconfig)`); n != "3" {
		t.Errorf("%s roles have their schema as search path", n)
	}
	if n := query(t, admin, `select count(*) from pg_stat_activity where usename = 'shop_jobweaver_api'
		and application_name = 'jobweaver-direct@shop_jobweaver_api' and query like 'LISTEN "shop\_jobweaver\_api\_%'`); n < "3" {
		t.Errorf("%s functions listen", n)
	}
}
