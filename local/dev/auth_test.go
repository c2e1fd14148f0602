package dev_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
)

// An installation that listens on all addresses makes itself a key, and finds it again at its next start.
func TestAnInstallationThatOthersReachAsksForAKey(t *testing.T) {
	t.Parallel()
	var output strings.Builder
	o := options(t, newFolder(t))
	o.Host, o.Out = "0.0.0.0", writer(func(text string) { output.WriteString(text) })
	err := dev.Run(t.Context(), o, func(ctx context.Context, at string) error {
		if _, err := client.New(at, "").Do(ctx, http.MethodGet, "/api/jobs", "", nil, nil); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("without a key: %v", err)
		}
		key, err := dev.AdminKey(o)
		if err != nil {
			return err
		}
		path := filepath.Join(o.Dir, "admin.key")
		text, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil || strings.TrimSpace(string(text)) != key || info.Mode().Perm() != 0o600 {
			t.Errorf("kept is %v, %v, %v", info, err, statErr)
		}
		if strings.Contains(output.String(), key) || !strings.Contains(output.String(), path) {
			t.Errorf("got %s", output.String())
		}
		for { // it is stored as soon as the database answers
			_, err := client.New(at, key).Do(ctx, http.MethodGet, "/api/keys", "", nil, nil)
			if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "401") {
				return err
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
