package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestKeysetKeysAreCreatedPromotedAndRemoved(t *testing.T) {
	t.Setenv("ENCRYPTION_KEYSET_FILE", filepath.Join(t.TempDir(), "keys.json"))
	do := func(args ...string) []string {
		t.Helper()
		out, err := run(t, "", append([]string{"keyset"}, args...)...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return strings.Fields(out)
	}
	if got := do("create"); len(got) != 4 || got[3] != "seals" {
		t.Fatalf("created: %v", got)
	}
	added := do("add")
	if len(added) != 6 || added[3] != "seals" {
		t.Fatalf("added: %v", added)
	}
	if got := do("promote", added[4]); len(got) != 6 || got[2] != added[4] || got[5] != "seals" {
		t.Errorf("promoted: %v", got)
	}
	if got := do("remove", added[0]); len(got) != 4 || got[0] != added[4] {
		t.Errorf("removed: %v", got)
	}
	for _, wrong := range []struct {
		args []string
		want string
	}{
		{[]string{"create"}, "is there already"},
		{[]string{"promote", "x"}, "jobweaver keyset list"},
		{[]string{"promote", added[0]}, "jobweaver keyset list"},
		{[]string{"remove", added[4]}, "promote another key first"},
		{[]string{"remove"}, "jobweaver keyset remove KEY"},
	} {
		_, err := run(t, "", append([]string{"keyset"}, wrong.args...)...)
		if err == nil || !strings.Contains(err.Error(), wrong.want) {
			t.Errorf("%v: %v", wrong.args, err)
		}
	}
}
