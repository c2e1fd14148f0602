package serve_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/client"
)

// The connections of all pools and the one that holds the lock need the new password.
func TestAProcessGoesOnWithAPasswordThatHasChanged(t *testing.T) {
	t.Parallel()
	database, dir := server(t).URL(), t.TempDir()
	run(t, database, `create role app login superuser password 'first'`)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("app")
	address, password := filepath.Join(dir, "address"), filepath.Join(dir, "password")
	write(t, address, u.String())
	write(t, password, "first")
	p := start(t, "", "", "DATABASE_URL_FILE="+address, "DATABASE_PASSWORD_COMMAND=cat "+password)
	p.untilReady()
	c := p.client(p.key())
	write(t, password, "second")
	run(t, database, `alter role app password 'second'`)
	run(t, database, `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'`)
	p.until("it holds the lock by a new connection", func() bool {
		return query(t, database, `select count(*) from pg_stat_activity where application_name like 'jobweaver-serve-%'
			and usename = 'app'`) == "1"
	})
	refused := strings.Count(p.text(), "28P01") // of a connection that met the role and the file before and after
	if job, err := c.Run(t.Context(), hello()); err != nil || job.Status != client.Completed {
		t.Errorf("a job with the new password is %+v, %v", job, err)
	}
	if strings.Count(p.text(), "28P01") > refused {
		t.Error("the server refused a password")
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
