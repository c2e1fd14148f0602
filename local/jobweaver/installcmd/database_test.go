package installcmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
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
	if url, err := databaseURL("API_DATABASE_URL", migrations.API); err == nil {
		t.Errorf("no database is %q", url)
	}
	t.Setenv("DATABASE_URL_FILE", path)
	if url, err := serverURL(); url != "postgres://there" || err != nil {
		t.Errorf("the server is %q, %v", url, err)
	}
	if url, err := databaseURL("API_DATABASE_URL", migrations.API); url != "postgres://there/jobweaver_api" || err != nil {
		t.Errorf("the api's database is %q, %v", url, err)
	}
}
