package installcmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// Not parallel: it sets the environment.
func TestServerAddressMayBeInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(path, []byte("postgres://there\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DATABASE_URL", "")
	if url, err := serverURL(); err == nil {
		t.Errorf("no server is %q", url)
	}
	if url, err := databaseURL("API_DATABASE_URL", migrations.Layout{}, migrations.API); err == nil {
		t.Errorf("no database is %q", url)
	}
	t.Setenv("DATABASE_URL_FILE", path)
	address, err := serverURL()
	if err != nil {
		t.Fatal(err)
	}
	if to, err := pgpool.ReadAddress(address); err != nil || to.Host != "there" {
		t.Errorf("the server is %+v, %v", to, err)
	}
	if address, err = databaseURL("API_DATABASE_URL", migrations.Layout{}, migrations.API); err != nil {
		t.Fatal(err)
	}
	if to, err := pgpool.ReadAddress(address); err != nil || to.Host != "there" || to.Database != "jobweaver_api" {
		t.Errorf("the api's database is %+v, %v", to, err)
	}
}
