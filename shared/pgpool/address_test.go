package pgpool_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestAnAddressThatIsNoneShowsNothingOfItsPassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://u:ge%heim@host/db",
		"postgres://u:geheim@host:99999/db",
		"postgres://u:geheim@host:port/db",
		"postgres://u:geheim@[/db",
		"postgres://u:geheim/x@host/db",
		"postgres://u:x/geheim@host/db",
		"postgres://u:1/geheim@host/db",
		"postgres://u:x:geheim:y@host:port/db",
		"postgres://u:x y geheim@ho st/db",
		"postgres://u:gehe%69m@host/db?sslmode=some",
		"postgres://u:geheim@host/db?sslmode=geheim",
		"postgres://u@host/db?password=geheim&sslmode=some",
		"postgres://u@host/db?pass%77ord=geheim&connect_timeout=long",
		"postgres://u@host/db?connect_timeout=geheim",
		"postgres://u:geheim@host/db?pool_max_conns=many",
		"postgres://u:geheim@host/db?default_query_exec_mode=x",
		"postgres://u:geheim@host/db?target_session_attrs=x",
		"postgres://u:geheim@host/db?sslrootcert=/not/there&sslmode=verify-full",
		"host=h password=geheim port=x",
		"host=h password='geheim port=x",
		"host=h password = geheim sslmode=some",
		"host=h password=a geheim",
		"mysql://u:geheim@host/db",
		"u:geheim@host/db",
		"geheim",
	} {
		_, err := pgpool.Lazy(t.Context(), address)
		if err == nil || shows(err) {
			t.Errorf("%s: %v", address, err)
		}
		if _, err := pgpool.ReadAddress(address); shows(err) {
			t.Errorf("%s: %v", address, err)
		}
	}
	_, err := pgpool.Lazy(t.Context(), "postgres://u:geheim@host/db?sslrootcert=/not/there&sslmode=verify-full")
	if err == nil || !strings.Contains(err.Error(), "/not/there") {
		t.Errorf("a CA that is not there: %v", err)
	}
}

// shows reports whether an error contains the password, plainly or in the encoding of a URL, in any way of printing the
// error.
func shows(err error) bool {
	printed := fmt.Sprintf("%v %+v %#v", err, err, err)
	return strings.Contains(printed, "heim") || strings.Contains(printed, "he%69m")
}

func TestADatabaseThatCannotBeReachedShowsNothingOfItsPassword(t *testing.T) {
	t.Parallel()
	at, err := url.Parse(pgtest.Database(t, migrations.API))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]func(*url.URL){
		"a wrong password":     func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "geheim") },
		"a wrong one, encoded": func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "ge@/?#%heim ä") },
		"no such user":         func(u *url.URL) { u.User = url.UserPassword("stranger", "geheim") },
		"no such database":     func(u *url.URL) { u.Path = "/none" },
		"an option that is none": func(u *url.URL) {
			q := u.Query()
			q.Set("search_pat", "x")
			u.RawQuery = q.Encode()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := *at
			c(&u)
			password, _ := u.User.Password()
			_, err := pgpool.Open(t.Context(), u.String())
			if err == nil {
				t.Fatal("it is open")
			}
			for _, shape := range []string{password, url.QueryEscape(password), url.PathEscape(password), "heim"} {
				if strings.Contains(fmt.Sprintf("%v %+v", err, err), shape) {
					t.Errorf("%q is shown: %v", shape, err)
				}
			}
		})
	}
	for _, host := range []string{"127.0.0.1:1", "no.such.host.invalid"} {
		pool, err := pgpool.Lazy(t.Context(), "postgres://u:ge%2Fheim@"+host+"/db?connect_timeout=1")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		if err := pool.Ping(t.Context()); err == nil || shows(err) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestOneConnectionTakesTheAddressOfAPool(t *testing.T) {
	t.Parallel()
	at, err := url.Parse(pgtest.Database(t, migrations.API))
	if err != nil {
		t.Fatal(err)
	}
	q := at.Query()
	q.Set("pool_max_conns", "4")
	at.RawQuery = q.Encode()
	conn, err := pgpool.Connect(t.Context(), at.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
