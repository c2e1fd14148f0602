package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestKeysAreMadePromotedAndRemoved(t *testing.T) {
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
	for _, wrong := range [][]string{{"create"}, {"promote", "x"}, {"remove", added[4]}, {"promote", added[0]}} {
		if _, err := run(t, "", append([]string{"keyset"}, wrong...)...); err == nil {
			t.Errorf("%v passes", wrong)
		}
	}
}
