package dev

import (
	"cmp"
	"net/url"
	"os"
	"path/filepath"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/functions/pull"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/local/kept"
	"github.com/jobweaver/jobweaver/local/mailcatch"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// loopback may be called here, because a developer's own services run there.
var loopback = []string{"127.0.0.0/8", "::1/128"}

// defaults are the settings of an installation on a laptop, unless the environment sets them.
type defaults struct {
	webhook     secret.Texts
	callback    secret.Texts
	callbackURL string
	onLoopback  bool // only this machine reaches the gateway
	keyset      string
	reports     string // URL of the folder for reports
	mails       *mailcatch.Server
}

// apply sets the defaults in a struct of settings that was read.
func (d *defaults) apply(cfg any) {
	switch cfg := cfg.(type) {
	case *gateway.Config:
		if unset("AUTH") && d.onLoopback {
			cfg.Auth = gateway.AuthOff
		}
	case *sealing.Config:
		if unset(sealing.Setting) {
			cfg.File = d.keyset
		}
	case *outbound.Config:
		if unset("OUTBOUND_ALLOW") && d.onLoopback {
			cfg.Allow = loopback // clients elsewhere must not reach what listens on this machine only
		}
	case *webhook.Config:
		if unset("WEBHOOK_SECRETS") {
			cfg.Secrets = d.webhook
		}
	case *webhook.CallbackConfig:
		if unset("CALLBACK_SECRETS") {
			cfg.Secrets = d.callback
		}
	case *pull.Config:
		if unset("CALLBACK_URL") {
			cfg.CallbackURL = d.callbackURL
		}
	case *handlers.CallsConfig:
		if unset("CALLBACK_URL") {
			cfg.CallbackURL = d.callbackURL
		}
	case *handlers.ReportConfig:
		if unset("REPORT_BUCKET") {
			cfg.Bucket = d.reports
		}
	case *handlers.EmailConfig:
		if unset("SMTP_HOST") && d.mails != nil {
			*cfg = handlers.EmailConfig{
				Host: d.mails.Host(), Port: d.mails.Port(), TLS: "none", From: cmp.Or(cfg.From, "JobWeaver <jobweaver@localhost>"),
				Senders: cfg.Senders, To: cfg.To,
			}
			if unset("SMTP_ALLOW_FROM") {
				cfg.Senders = []string{"*"} // no mail leaves this machine
			}
		}
	}
}

func unset(name string) bool {
	_, given := os.LookupEnv(name)
	_, inFile := os.LookupEnv(name + "_FILE")
	return !given && !inFile
}

// reportFolder returns the URL of the folder for reports.
func reportFolder(dir string) string {
	return (&url.URL{Scheme: "file", Path: filepath.Join(dir, "reports")}).String()
}

// The files of an installation's own secrets.
const (
	webhookFile  = "webhook.secret"
	callbackFile = "callback.secret"
	adminFile    = "admin.key"

	private = 0o600
)

// furnishSecrets reads the secrets of an earlier run, or makes them.
func (d *defaults) furnishSecrets(dir string) error {
	ours, err := kept.SigningSecret().At(filepath.Join(dir, webhookFile), private)
	if err != nil {
		return err
	}
	theirs, err := kept.SigningSecret().At(filepath.Join(dir, callbackFile), private)
	if err != nil {
		return err
	}
	d.webhook, d.callback = secret.AllOf(ours), secret.AllOf(theirs)
	return nil
}

// adminKey returns the installation's own key, from an earlier run or new, and the path of its file.
func adminKey(dir string) (key apikey.Key, path string, err error) {
	path = filepath.Join(dir, adminFile)
	text, err := kept.APIKey().At(path, private)
	key, _ = apikey.Parse(text)
	return key, path, err
}

// AdminKey returns the API key of the installation's administrator; empty: no key is needed.
func AdminKey(o Options) (string, error) {
	d := defaults{onLoopback: o.onLoopback()}
	var cfg gateway.Config
	err := envsettings.Load(&cfg)
	if d.apply(&cfg); err != nil || cfg.Auth == gateway.AuthOff || cfg.BootstrapKey.IsSet() {
		return cfg.BootstrapKey.Reveal(), err
	}
	key, _, err := adminKey(o.Dir)
	return key.Reveal(), err
}
