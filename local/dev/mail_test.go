package dev_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/local/mailcatch"
	"github.com/jobweaver/jobweaver/shared/client"
)

// greylist is a mail server that refuses each mail once, and mails for unknown@ always.
type greylist struct {
	mu    sync.Mutex
	known map[string]bool
	taken []string
}

func (g *greylist) open(t *testing.T) handlers.EmailConfig {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return g, nil }))
	server.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { _, _ = server.Close(), listener.Close(); <-done })
	return handlers.EmailConfig{
		Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, TLS: "none", From: "shop@example.com",
	}
}

func (g *greylist) Reset()                               {}
func (g *greylist) Logout() error                        { return nil }
func (g *greylist) Mail(string, *smtp.MailOptions) error { return nil }

func (g *greylist) Rcpt(to string, _ *smtp.RcptOptions) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case strings.HasPrefix(to, "unknown@"):
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	case !g.known[to]:
		g.known[to] = true
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "greylisted"}
	}
	return nil
}

func (g *greylist) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken = append(g.taken, string(raw))
	return err
}

func TestMailsGoOut(t *testing.T) {
	t.Parallel()
	mails, err := mailcatch.Start(mailcatch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mails.Close() })
	grey := &greylist{known: map[string]bool{}}
	hesitant, err := handlers.NewEmail(grey.open(t))
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, newFolder(t))
	o.Mails, o.Handlers = mails, map[string]handlers.Handler{"HESITANT": hesitant.Run}
	err = dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		v := &visit{t: t, api: client.New(url, "")}
		v.mailIsCaught(ctx, mails)
		v.mailIsGreylisted(ctx, grey)
		v.mailIsRefused(ctx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (v *visit) mailIsCaught(ctx context.Context, mails *mailcatch.Server) {
	job := v.end(ctx, v.submit(ctx, "EMAIL", `{"to": ["Ada <ada@example.org>"], "subject": "Grüße", "text": "hi"}`, ""))
	var output struct {
		MessageID  string
		Recipients int
	}
	if err := json.Unmarshal(job.Output, &output); err != nil || output.Recipients != 1 {
		v.t.Errorf("%s with %s, %+v: %v", job.Status, job.Output, job.LastError, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, mails.URL()+"/api/messages", http.NoBody)
	if err != nil {
		v.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	id := job.JobID + "@localhost"
	if err != nil || !strings.Contains(string(body), `"subject":"Grüße"`) || !strings.Contains(string(body), id) || output.MessageID != "<"+id+">" {
		v.t.Errorf("caught %s, output %s, %v", body, job.Output, err)
	}
}

// mailIsGreylisted: a mail that is refused temporarily is sent again later, and arrives once.
func (v *visit) mailIsGreylisted(ctx context.Context, grey *greylist) {
	soon := `, "retryPolicy": {"type": "fixed", "delayMs": 100}`
	job := v.end(ctx, v.submit(ctx, "HESITANT", `{"to": ["ada@example.org"], "subject": "Hello", "text": "hi"}`, soon))
	grey.mu.Lock()
	defer grey.mu.Unlock()
	if job.Status != "COMPLETED" || job.Attempt != 2 || job.RetryCount != 1 || len(grey.taken) != 1 ||
		!strings.Contains(grey.taken[0], job.JobID+"@example.com") {
		v.t.Errorf("%s after %d attempts, took %q", job.Status, job.Attempt, grey.taken)
	}
}

// mailIsRefused: a mail that is refused for good is not sent again; an invalid mail is not even accepted.
func (v *visit) mailIsRefused(ctx context.Context) {
	job := v.end(ctx, v.submit(ctx, "HESITANT", `{"to": ["unknown@example.org"], "subject": "Hello", "text": "hi"}`, ""))
	if job.Status != "FAILED" || job.Attempt != 1 || job.LastError.ErrorCode != "WORKER.EMAIL_REFUSED" ||
		!strings.Contains(job.LastError.Message, "unknown@example.org: 550 5.1.1 no such user") {
		v.t.Errorf("%s after %d attempts with %+v", job.Status, job.Attempt, job.LastError)
	}
	_, err := v.api.SubmitJSON(ctx, []byte(`{"jobType": "EMAIL", "payload": {"to": ["no address"], "subject": "Hello", "text": "hi"}}`))
	var refused *client.Error
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "payload.to[0]") {
		v.t.Errorf("a mail without an address is answered with %v", err)
	}
}
