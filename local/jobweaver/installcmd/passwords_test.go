package installcmd

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jobweaver/jobweaver/migrations"
)

// Not parallel: it sets the environment.
func TestRoleHasItsOwnPasswordOrTheCommonOne(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "jobweaver_gateway"), []byte("its own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := migration{roles: true}.made(migrations.Layout{})
	for _, tt := range []struct {
		common, folder, gateway, runjob string
		all                             int
	}{
		{"", "", "", "", 0}, {"", dir, "its own", "", 1}, {"of all", "", "of all", "of all", 13}, {"of all", dir, "its own", "of all", 13},
	} {
		t.Setenv("ROLES_PASSWORD", tt.common)
		folders := slices.DeleteFunc([]string{tt.folder}, func(folder string) bool { return folder == "" })
		got, err := rolePasswords(folders, all)
		if err != nil || len(got) != tt.all || got["jobweaver_gateway"] != tt.gateway || got["jobweaver_runjob"] != tt.runjob {
			t.Errorf("%+v: %v, %v", tt, got, err)
		}
	}
	if _, err := rolePasswords([]string{filepath.Join(dir, "none")}, all); err == nil {
		t.Error("took a folder that is not there")
	}
}
