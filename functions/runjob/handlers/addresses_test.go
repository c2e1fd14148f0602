package handlers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/secret"
)

// The addresses of the mail server, the report database and the report store appear only in the worker's log.
func TestAFailureShowsTheOwnerNoInternalAddress(t *testing.T) {
	t.Parallel()
	mailed := func(cfg handlers.EmailConfig) *handlers.Failure {
		_, failure, err := mail(t.Context(), t, cfg, simple())
		if failure == nil {
			t.Fatal(err)
		}
		return failure
	}
	unnamed, away := script{}.open(t).cfg, script{}.open(t).cfg
	unnamed.Host, away.Port = "mail.corp.invalid", 1
	rude := script{"connect": "554 5.7.1 no mail from 10.1.2.3 of mail.corp.invalid"}.open(t).cfg
	file := filepath.Join(t.TempDir(), "queries.json")
	if err := os.WriteFile(file, []byte(`{"one": {"sql": "select 1"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	database := newReporter(t, handlers.ReportConfig{
		Queries: file, DatabaseURL: secret.Of("postgres://clerk:geheim@127.0.0.1:1/ledger"),
	})
	folder := newReporter(t, handlers.ReportConfig{})
	if err := os.RemoveAll(folder.folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder.folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bucket := newReporter(t, handlers.ReportConfig{
		Bucket: "s3://vault?endpoint=http://127.0.0.1:1&use_path_style=true&anonymous=true&region=x",
	})
	const rows = `{"title": "T", "format": "csv", "rows": []}`
	for _, c := range []struct {
		failure *handlers.Failure
		message string
		hides   []string
	}{
		{mailed(unnamed), "connect to the mail server: its name cannot be resolved", []string{"mail.corp.invalid"}},
		{mailed(away), "connect to the mail server: connection refused", []string{"127.0.0.1"}},
		{mailed(rude), "greet the mail server: it answered 554", []string{"10.1.2.3", "mail.corp.invalid"}},
		{mailed(script{"RCPT": "close"}.open(t).cfg), "ada@example.org: the connection was closed", nil},
		{database.failure(ask("one", `{}`, "")), "the report database is unavailable", []string{"127.0.0.1", "clerk", "ledger"}},
		{folder.failure(rows), "the report could not be stored: not a directory", []string{folder.folder}},
		{bucket.failure(rows), "the report could not be stored: connection refused", []string{"127.0.0.1", "vault"}},
	} {
		if c.failure.Message != c.message {
			t.Errorf("the owner reads %q, want %q", c.failure.Message, c.message)
		}
		for _, ours := range c.hides {
			if cause := fmt.Sprint(c.failure.Cause); !strings.Contains(cause, ours) || strings.Contains(cause, "geheim") {
				t.Errorf("%s: the log has %q, want %q in it", c.message, cause, ours)
			}
		}
	}
}
