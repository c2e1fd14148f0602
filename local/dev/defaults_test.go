package dev

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

func TestAnInstallationKeepsTheSecretsItMadeItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var first, second, other defaults
	for _, d := range []struct {
		settings *defaults
		dir      string
	}{{&first, dir}, {&second, dir}, {&other, t.TempDir()}} {
		if err := d.settings.furnishSecrets(d.dir); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(first.webhook.Reveal(), second.webhook.Reveal()) || !slices.Equal(first.callback.Reveal(), second.callback.Reveal()) {
		t.Error("the second run made secrets of its own")
	}
	all := slices.Concat(first.webhook, first.callback, other.webhook, other.callback).Reveal()
	slices.Sort(all)
	if len(slices.Compact(all)) != 4 {
		t.Error("secrets repeat")
	}
	if _, err := webhook.NewCallbackKeys(all); err != nil {
		t.Error(err)
	}
	for _, name := range []string{webhookFile, callbackFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("the folder has %v, %v", files, err)
	}
}

func TestABrokenSecretIsNamedAndNotReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), webhookFile)
	if err := os.WriteFile(path, []byte("whsec_aGFsZg=="), 0o600); err != nil {
		t.Fatal(err)
	}
	err := new(defaults).furnishSecrets(filepath.Dir(path))
	if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "aGFsZg") {
		t.Errorf("got %v", err)
	}
}

func TestTheEnvironmentOverridesDefaults(t *testing.T) {
	own := "whsec_" + strings.Repeat("b", 32)
	file := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte(own+"\n"+own+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := defaults{
		webhook: secret.AllOf("a"), callback: secret.AllOf("b"),
		onLoopback: true, callbackURL: "http://127.0.0.1:1/api/jobs/callback", reports: "file:///reports",
	}
	load := func() (cfg handlers.Config) {
		for _, part := range cfg.Parts() {
			if err := envsettings.Load(part); err != nil {
				t.Fatal(err)
			}
			settings.apply(part)
		}
		return cfg
	}
	got := load()
	if !slices.Equal(got.Outbound.Allow, loopback) || !slices.Equal(got.Webhook.Secrets.Reveal(), settings.webhook.Reveal()) ||
		!slices.Equal(got.Callback.Secrets.Reveal(), settings.callback.Reveal()) || got.Calls.CallbackURL != settings.callbackURL ||
		got.Report.Bucket != settings.reports {
		t.Errorf("where nothing is set: %+v", got)
	}
	settings.onLoopback = false // clients elsewhere must not reach what listens on loopback
	if got := load(); len(got.Outbound.Allow) != 0 {
		t.Errorf("for others from outside %v may be called", got.Outbound.Allow)
	}
	settings.onLoopback = true
	t.Setenv("OUTBOUND_ALLOW", "")
	t.Setenv("WEBHOOK_SECRETS", own)
	t.Setenv("CALLBACK_SECRETS_FILE", file)
	t.Setenv("CALLBACK_URL", "https://example.org/")
	t.Setenv("REPORT_BUCKET", "s3://reports")
	got = load()
	if len(got.Outbound.Allow) != 0 || !slices.Equal(got.Webhook.Secrets.Reveal(), []string{own}) ||
		!slices.Equal(got.Callback.Secrets.Reveal(), []string{own, own}) || got.Calls.CallbackURL != "https://example.org/" ||
		got.Report.Bucket != "s3://reports" {
		t.Errorf("where all is set: %+v", got)
	}
}
