package installation_test

import (
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/installation"
)

func TestANameThatAServerCouldMisunderstandIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", "a", "shop", "shop_eu", "s2", "jobweaver", "public", "a234567890123456789" + "0", "pgx",
	} {
		if err := installation.Name(name).Check(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"Shop", "2nd", "_shop", "shop-eu", "run-job", "shop.eu", "shop eu", " shop", "shop\n", "süd", `x"; drop schema public; --`,
		"x'", "x%s", "../x", "a23456789012345678901", strings.Repeat("x", 300), "pg", "pg_shop", "\x00", "*",
	} {
		err := installation.Name(name).Check()
		if err == nil || !strings.HasPrefix(err.Error(), "INSTALLATION: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNamesOfTwoInstallationsAreNeverTheSame(t *testing.T) {
	t.Parallel()
	names := []installation.Name{"", "a", "b", "a_b", "jobweaver", "a_jobweaver", "job"}
	inPostgres, inKafka := map[string]bool{}, map[string]bool{}
	for _, n := range names {
		for _, function := range []string{"api", "gateway", "worker", "pull"} {
			inPostgres[n.InPostgres("jobweaver_"+function)] = true
		}
		for _, topic := range []string{"job-created", "run-job", "run-job.job-created", "run-job.a.job-created", "jobweaver-runjob-x"} {
			own := n.InKafka(topic)
			inKafka[own] = true
			for _, other := range names {
				if back, is := other.FromKafka(own); other == n && (!is || back != topic) || other != n && other != "" && is {
					t.Errorf("%q takes %q of %q for %q, %v", other, own, n, back, is)
				}
			}
		}
	}
	if len(inPostgres) != 4*len(names) || len(inKafka) != 5*len(names) {
		t.Errorf("%d names in PostgreSQL, %d in Kafka", len(inPostgres), len(inKafka))
	}
}
