package doctor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/eventkeys"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// signing are the secrets with which an installation signs, and the functions that need them.
var signing = []struct {
	setting, kept string // kept is its name in the worker's database
	functions     []string
	of            func(*Environment) []string
	check         func([]string) error
}{
	{
		"WEBHOOK_SECRETS", "webhook", []string{"gateway", "notify", "runjob"},
		func(e *Environment) []string { return e.Webhook.Secrets.Reveal() },
		func(texts []string) error { _, err := webhook.NewSigner(texts); return err },
	},
	{
		"CALLBACK_SECRETS", "callback", []string{"gateway", "runjob", "pull"},
		func(e *Environment) []string { return e.Callback.Secrets.Reveal() },
		func(texts []string) error { _, err := webhook.NewCallbackKeys(texts); return err },
	},
}

// sealed are the functions that open sealed values.
var sealed = []string{"gateway", "cron", "notify", "pull", "runjob"}

func secrets(ctx context.Context, l *look) {
	for _, s := range signing {
		for i := range l.Environments {
			e := &l.Environments[i]
			texts := s.of(e)
			switch err := s.check(texts); {
			case !e.runs(s.functions...):
			case err != nil:
				l.find(e.Name, err.Error(), "make another: whsec_$(openssl rand -base64 32)")
			case len(texts) > 0:
				l.fact("%s of %s: %d, fingerprint %s", s.setting, e.Name, len(texts), fingerprint(texts...))
			case e.Name != Serve:
				l.find(e.Name, s.setting+" is not set", "give "+strings.Join(s.functions, ", ")+" the same one")
			}
			if e.Name == Serve {
				l.kept(ctx, s.setting, s.kept, texts)
			}
		}
		l.agree(s.setting, func(e *Environment) (string, bool) { return fingerprint(s.of(e)...), e.runs(s.functions...) })
	}
	for i := range l.Environments {
		l.apart(&l.Environments[i])
	}
	l.keys()
	l.files()
}

// kept compares the setting of serve with the secret that it keeps in the database for processes without the setting.
func (l *look) kept(ctx context.Context, setting, name string, texts []string) {
	for d := range l.answering() {
		if d.Set.Name != migrations.Worker.Name {
			continue
		}
		var is string
		err := d.conn.QueryRow(ctx, "SELECT secret FROM installation_secrets WHERE name = $1", name).Scan(&is)
		switch {
		case migrations.Refused(err) && len(texts) == 0:
			l.find(d.where, setting+" is not set, and the user may not read the secret that serve keeps there",
				"set "+setting+", the same for all processes")
		case err == nil && len(texts) > 0 && !slices.Contains(texts, is):
			l.find(setting, "the database has another secret, which processes of serve without the setting use",
				"set it for all processes, and delete the row "+name+" of installation_secrets in "+d.where)
		case err == nil && len(texts) == 0:
			l.fact("%s is in the database, fingerprint %s", setting, fingerprint(is))
		case errors.Is(err, pgx.ErrNoRows) && len(texts) == 0:
			l.fact("%s: serve makes one at its first start", setting)
		case err != nil && !migrations.Refused(err) && len(texts) == 0:
			l.unseen("%s: %v", d.where, err)
		}
	}
}

// apart finds a secret that serves two purposes.
func (l *look) apart(e *Environment) {
	for _, one := range e.Webhook.Secrets.Reveal() {
		if slices.Contains(e.Callback.Secrets.Reveal(), one) {
			l.find(e.Name, "CALLBACK_SECRETS has a secret of WEBHOOK_SECRETS, which others can derive keys from",
				"make another for one of them")
		}
	}
}

// keys checks the files of keys, and that all functions have the same.
func (l *look) keys() {
	for i := range l.Environments {
		e := &l.Environments[i]
		if _, err := eventkeys.Open(e.Host.EventKeysFile); err != nil {
			l.find(e.Name, err.Error(), "write the file again: whsec_$(openssl rand -base64 32), one a line")
		}
		if _, err := sealing.New(e.Sealing); err != nil {
			l.find(e.Name, err.Error(), "restore the keyset from its copy: without it sealed data is lost")
		}
		for setting, path := range map[string]string{
			"EVENT_KEYS_FILE": e.Host.EventKeysFile, sealing.Setting: e.Sealing.File,
		} {
			if path != "" {
				l.fact("%s of %s: fingerprint %s", setting, e.Name, content(path))
			}
		}
	}
	l.agree("EVENT_KEYS_FILE", func(e *Environment) (string, bool) { return content(e.Host.EventKeysFile), true })
	l.agree(sealing.Setting, func(e *Environment) (string, bool) { return content(e.Sealing.File), e.runs(sealed...) })
}

// content returns a digest of a file.
func content(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return fingerprint(string(text))
}

// secretFiles are settings of files that only their user should read. Certificates are public.
var secretFiles = []string{
	"DATABASE_URL_FILE", "DATABASE_DIRECT_URL_FILE", "DATABASE_PASSWORD_FILE", "API_DATABASE_URL_FILE",
	"SCHEDULER_DATABASE_URL_FILE", "WORKER_DATABASE_URL_FILE", "WEBHOOK_SECRETS_FILE", "CALLBACK_SECRETS_FILE",
	"BOOTSTRAP_API_KEY_FILE", "EVENT_KEYS_FILE", "ENCRYPTION_KEYSET_FILE", "KAFKA_SASL_PASSWORD_FILE",
	"KAFKA_SASL_TOKEN_FILE", "KAFKA_TLS_KEY_FILE", "TLS_KEY_FILE", "SMTP_PASSWORD_FILE", "GATEWAY_API_KEY_FILE",
	"OTEL_EXPORTER_OTLP_CLIENT_KEY",
}

// files finds files with secrets that every user of the machine may read.
func (l *look) files() {
	for i := range l.Environments {
		e := &l.Environments[i]
		for _, setting := range slices.Sorted(maps.Keys(e.Files)) {
			path := e.Files[setting]
			if info, err := os.Stat(path); err == nil && slices.Contains(secretFiles, setting) && info.Mode().Perm()&0o004 != 0 {
				l.find(path, "every user of the machine can read this file of "+setting, "chmod o-r "+path)
			}
		}
	}
}

// fingerprint distinguishes secrets, also those of two machines. It shows nothing of them, as they have at least 24
// random bytes.
func fingerprint(texts ...string) string {
	if len(texts) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte("jobweaver doctor\x00" + strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:4])
}
