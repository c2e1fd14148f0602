package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/local/kept"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// secrets sign the calls that go out and those that come back. All processes of an installation must have the same.
type secrets struct{ webhook, callback secret.Texts }

// apply sets those that the environment does not set.
func (s secrets) apply(cfg any) {
	switch cfg := cfg.(type) {
	case *webhook.Config:
		if len(cfg.Secrets.Reveal()) == 0 {
			cfg.Secrets = s.webhook
		}
	case *webhook.CallbackConfig:
		if len(cfg.Secrets.Reveal()) == 0 {
			cfg.Secrets = s.callback
		}
	}
}

// keepSecrets makes the secrets at the first start, and reads them at the next ones. They are in the worker's database,
// which its functions' roles cannot read them from: a process with such a role has only those of its settings.
// Why: docs/decisions/security.md#serve-keeps-its-secrets-in-the-database
func keepSecrets(ctx context.Context, url string) (s secrets, err error) {
	if url == "" || !unset("WEBHOOK_SECRETS") && !unset("CALLBACK_SECRETS") {
		return s, nil
	}
	conn, err := pgpool.Connect(ctx, url)
	if err != nil {
		return s, fmt.Errorf("read secrets: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	for name, to := range map[string]*secret.Texts{"webhook": &s.webhook, "callback": &s.callback} {
		text, err := keepSecret(ctx, conn, name)
		if migrations.Refused(err) {
			return secrets{}, nil
		}
		if err != nil {
			return s, fmt.Errorf("keep secret %s: %w", name, err)
		}
		*to = secret.AllOf(text)
	}
	return s, nil
}

func keepSecret(ctx context.Context, conn *pgx.Conn, name string) (text string, err error) {
	_, err = conn.Exec(ctx, "INSERT INTO installation_secrets VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
		name, kept.SigningSecret().New())
	if err == nil {
		err = conn.QueryRow(ctx, "SELECT secret FROM installation_secrets WHERE name = $1", name).Scan(&text)
	}
	return text, err
}

// firstKey makes an administrator's API key if the installation has no key at all, and writes it into a file, or prints
// it this once. Where BOOTSTRAP_API_KEY is set, or AUTH is off, there is no need for one.
func firstKey(ctx context.Context, url, file string, out io.Writer) error {
	var cfg gateway.Config
	if err := envsettings.Load(&cfg); err != nil {
		return err
	}
	if cfg.BootstrapKey.IsSet() || cfg.Auth == gateway.AuthOff {
		return nil
	}
	store, err := apidb.Open(ctx, url)
	if err != nil {
		return err
	}
	defer store.Close()
	keys := keystore.New(store)
	some, err := keys.List(ctx, apidb.Everyone, "", 1)
	if err != nil || len(some) > 0 {
		return err
	}
	key := apikey.New()
	if file != "" { // before the database has it: otherwise a full disk would leave a key that is lost
		text, err := kept.APIKey().At(file, 0o600)
		if err != nil {
			return err
		}
		key, _ = apikey.Parse(text)
	}
	hash := key.Hash()
	if _, err := keys.EnsureAdmin(ctx, key.ID(), hash[:], keystore.Bootstrap); err != nil {
		return err
	}
	if file != "" {
		_, err = fmt.Fprintf(out, "The first API key, an administrator's, is in %s.\n", file)
		return err
	}
	_, err = fmt.Fprintf(out, "The first API key, an administrator's, which is shown only this once:\n\n"+
		"  export JOBWEAVER_API_KEY=%s\n\n", key.Reveal())
	return err
}

// unset reports whether the environment has neither a setting nor a file of it.
func unset(name string) bool {
	_, given := os.LookupEnv(name)
	_, inFile := os.LookupEnv(name + "_FILE")
	return !given && !inFile
}
