package pgpool_test

import (
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// Shells, direnv and CI services set libpq's variables for other programs.
func TestLibpqsVariablesHaveNoEffect(t *testing.T) {
	url := pgtest.Database(t, migrations.API)
	for name, value := range map[string]string{
		"PGHOST": "elsewhere.invalid", "PGPORT": "1", "PGDATABASE": "none", "PGUSER": "nobody", "PGPASSWORD": "wrong",
		"PGPASSFILE": "/not/there", "PGAPPNAME": "shop", "PGCONNECT_TIMEOUT": "long", "PGSSLMODE": "no-such-mode",
		"PGSSLKEY": "/not/there", "PGSSLCERT": "/not/there", "PGSSLCERTMODE": "require", "PGSSLSNI": "x",
		"PGSSLROOTCERT": "/not/there", "PGSSLPASSWORD": "x", "PGSSLNEGOTIATION": "direct", "PGTARGETSESSIONATTRS": "standby",
		"PGSERVICE": "shop", "PGSERVICEFILE": "/not/there", "PGTZ": "Mars/Olympus", "PGOPTIONS": "-c search_path=app",
		"PGMINPROTOCOLVERSION": "9.9", "PGMAXPROTOCOLVERSION": "1.0", "PGCHANNELBINDING": "require", "PGREQUIREAUTH": "none",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			exec(t, open(t, url), "SELECT FROM jobs")
			t.Setenv(name, value)
			conn, err := pgpool.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close(t.Context())
		})
	}
}
