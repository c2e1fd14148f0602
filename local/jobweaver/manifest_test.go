package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
)

func TestTheJobsOfTheClusterGiveCommandsThatThereAre(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../knative/common/jobs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`args: \[(.*)\]`).FindAllStringSubmatch(string(text), -1)
	if len(lists) != 2 {
		t.Fatalf("%d Jobs give arguments", len(lists))
	}
	for _, list := range lists {
		args := strings.Split(list[1], ", ")
		command, flags, err := newRoot().Find(args)
		if err == nil {
			err = command.ParseFlags(flags)
		}
		if err != nil || !command.Runnable() {
			t.Errorf("jobweaver %s: %v", strings.Join(args, " "), err)
		}
	}
}

// Not parallel: it sets the environment.
func TestTheServerMayStandInAFile(t *testing.T) {
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
