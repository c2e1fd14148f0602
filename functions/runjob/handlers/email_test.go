package handlers_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/secret"
)

func TestAMailGoesOutAndItsOutputNamesIt(t *testing.T) {
	t.Parallel()
	o := &office{}
	payload := object{
		"to": []string{"ada@example.org", "Bob <bob@example.org>"}, "cc": []string{"ada@example.org"},
		"bcc": []string{"secret@example.org"}, "subject": "Hello", "text": "hi",
	}
	result, _, err := mail(t.Context(), t, o.open(t, "127.0.0.1:0", nil, nil), payload)
	if err != nil {
		t.Fatal(err)
	}
	var output struct {
		MessageID  string
		Recipients int
	}
	if err := json.Unmarshal(result.Output, &output); err != nil {
		t.Fatal(err)
	}
	if output.MessageID != "<"+jobID.String()+"@example.com>" || output.Recipients != 3 {
		t.Errorf("output %s", result.Output)
	}
	got := o.got()
	if len(got) != 1 || got[0].from != "shop@example.com" ||
		!slices.Equal(got[0].to, []string{"ada@example.org", "bob@example.org", "secret@example.org"}) {
		t.Fatalf("the server got %+v", got)
	}
	if strings.Contains(got[0].raw, "secret@") || !strings.Contains(got[0].raw, "Message-ID: "+output.MessageID+"\r\n") {
		t.Errorf("the message is\n%s", got[0].raw)
	}
}

// A server may have the message although its answer is lost. Receivers know the copy by its Message-ID.
func TestTheCopyOfAMessageWhoseAnswerWasLostHasItsMessageID(t *testing.T) {
	t.Parallel()
	o := &office{loses: 1}
	cfg := o.open(t, "127.0.0.1:0", nil, nil)
	if _, failure, err := attempt(t.Context(), t, cfg, simple(), 1); failure == nil || !failure.Retryable {
		t.Fatalf("the first attempt ended with %v", err)
	}
	if _, _, err := attempt(t.Context(), t, cfg, simple(), 2); err != nil {
		t.Fatal(err)
	}
	got := o.got()
	if len(got) != 2 {
		t.Fatalf("the server got %+v", got)
	}
	ids := make([]string, len(got))
	for i, l := range got {
		m, err := netmail.ReadMessage(strings.NewReader(l.raw))
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = m.Header.Get("Message-Id")
	}
	if ids[0] != ids[1] || !strings.HasPrefix(ids[0], "<"+jobID.String()) {
		t.Errorf("the copies have the ids %q", ids)
	}
}

func TestAReplyOf4IsRetriedAndOf5IsNot(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"connect", "EHLO", "MAIL", "RCPT", "DATA", "."} {
		for answer, want := range map[string]struct {
			code      string
			retryable bool
		}{
			"451 4.3.0 later":       {"WORKER.EMAIL_FAILED", true},
			"421 4.3.2 going down":  {"WORKER.EMAIL_FAILED", true},
			"550 5.7.1 not for you": {"WORKER.EMAIL_REFUSED", false},
			"554 5.0.0 never":       {"WORKER.EMAIL_REFUSED", false},
			"close":                 {"WORKER.EMAIL_FAILED", true},
			"nonsense":              {"WORKER.EMAIL_FAILED", true},
		} {
			t.Run(command+" "+answer, func(t *testing.T) {
				t.Parallel()
				answers := script{command: answer}
				if command == "EHLO" {
					answers["HELO"] = answer
				}
				server := answers.open(t)
				_, failure, err := mail(t.Context(), t, server.cfg, simple())
				if failure == nil || failure.Code != want.code || failure.Retryable != want.retryable {
					t.Fatalf("failed with %+v, %v", failure, err)
				}
				if command == "connect" || command == "EHLO" { // the server's text may name the worker
					answer = answer[:3]
				}
				if answer[0] <= '9' && !strings.Contains(failure.Message, answer) {
					t.Errorf("returned %q", failure.Message)
				}
				if received := server.lines(); command != "." && slices.Contains(received, ".") {
					t.Errorf("sent the message: %q", received)
				}
			})
		}
	}
	t.Run("no server", func(t *testing.T) {
		t.Parallel()
		cfg := script{}.open(t).cfg
		cfg.Host, cfg.Port = "nowhere.invalid", 25
		_, failure, err := mail(t.Context(), t, cfg, simple())
		if failure == nil || failure.Code != "WORKER.EMAIL_FAILED" || !failure.Retryable {
			t.Errorf("failed with %+v, %v", failure, err)
		}
	})
}

func TestAllRecipientsReceiveAMessageOrNone(t *testing.T) {
	t.Parallel()
	to := []string{"a@example.org", "b@example.org", "c@example.org"}
	for _, c := range []struct {
		name, answers string
		retryable     bool
		messages      []string
	}{
		{"one is refused", "250 ok|550 5.1.1 unknown|250 ok", false, []string{"1 of 3", "b@example.org: 550 5.1.1 unknown"}},
		{"one is greylisted", "250 ok|250 ok|451 4.7.1 greylisted", true, []string{"1 of 3", "c@example.org: 451 4.7.1"}},
		{
			"one is greylisted, another refused", "451 4.7.1 later|550 5.1.1 unknown|250 ok", false,
			[]string{"2 of 3", "a@example.org: 451", "b@example.org: 550"},
		},
		{
			"one is refused, another greylisted", "550 5.1.1 unknown|451 4.7.1 later|250 ok", false,
			[]string{"2 of 3", "a@example.org: 550", "b@example.org: 451"},
		},
		{"the server goes away", "250 ok|close", true, []string{"b@example.org"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := script{"RCPT": c.answers}.open(t)
			payload := simple()
			payload["to"] = to
			_, failure, err := mail(t.Context(), t, server.cfg, payload)
			if failure == nil || failure.Retryable != c.retryable {
				t.Fatalf("failed with %+v, %v", failure, err)
			}
			for _, part := range c.messages {
				if !strings.Contains(failure.Message, part) {
					t.Errorf("returned %q, not %s", failure.Message, part)
				}
			}
			received := server.lines()
			if slices.Contains(received, "DATA") {
				t.Errorf("a recipient received it: %q", received)
			}
			if last := received[len(received)-1]; last != "QUIT" && !strings.Contains(c.answers, "close") {
				t.Errorf("left without a word after %q", last)
			}
		})
	}
}

func TestAHangingServerDoesNotOutlastTheAttempt(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"connect", "EHLO", "STARTTLS", "MAIL", "RCPT", "DATA", "body", "."} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := script{command: "hang", "EHLO": "250-office.test\r\n250 STARTTLS"}.open(t)
			if command == "EHLO" {
				server = script{command: "hang"}.open(t)
			}
			if command == "STARTTLS" {
				server.cfg.TLS = "starttls"
			}
			payload := simple()
			if command == "body" {
				payload["text"] = strings.Repeat("no socket holds that much\n", 1<<19)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer context.AfterFunc(t.Context(), func() { cancel(nil) })()
			go func() {
				<-server.hung
				cancel(handlers.ErrCancelled)
			}()
			_, _, err := mail(ctx, t, server.cfg, payload)
			if !errors.Is(err, handlers.ErrCancelled) {
				t.Errorf("ended with %v", err)
			}
			if received := server.lines(); slices.Contains(received, ".") != (command == ".") {
				t.Errorf("sent half a message: %q", received)
			}
		})
	}
}

// certified returns a TLS configuration for 127.0.0.1, and a pool that trusts it.
func certified(t *testing.T) (*tls.Config, *x509.CertPool) {
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return &tls.Config{Certificates: server.TLS.Certificates}, pool
}

func TestMailIsNeverSentWithoutTheConfiguredTLS(t *testing.T) {
	t.Parallel()
	secure, trusted := certified(t)
	offer := func(s *smtp.Server) { s.TLSConfig = secure }
	wrap := func(l net.Listener) net.Listener { return tls.NewListener(l, secure) }
	for _, c := range []struct {
		name, setting string
		set           func(*smtp.Server)
		wrap          func(net.Listener) net.Listener
		roots         *x509.CertPool
		sent          bool
	}{
		{"STARTTLS", "starttls", offer, nil, trusted, true},
		{"STARTTLS is the default", "", offer, nil, trusted, true},
		{"TLS from the first byte", "tls", nil, wrap, trusted, true},
		{"none, though it is offered", "none", offer, nil, trusted, true},
		{"STARTTLS is not offered", "starttls", nil, nil, trusted, false},
		{"STARTTLS with a certificate of a stranger", "starttls", offer, nil, x509.NewCertPool(), false},
		{"TLS with a certificate of a stranger", "tls", nil, wrap, x509.NewCertPool(), false},
		{"TLS with a server that has none", "tls", nil, nil, trusted, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := &office{}
			cfg := o.open(t, "127.0.0.1:0", c.set, c.wrap)
			cfg.TLS, cfg.RootCAs = c.setting, c.roots
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if c.name == "TLS with a server that has none" {
				cfg = script{"EHLO": "close"}.open(t).cfg
				cfg.TLS = "tls"
			}
			_, failure, err := mail(ctx, t, cfg, simple())
			got := o.got()
			if c.sent && (err != nil || len(got) != 1 || got[0].safe != (c.setting != "none")) {
				t.Errorf("ended with %v, the server got %+v", err, got)
			}
			if !c.sent && (failure == nil || !failure.Retryable || len(got) != 0) {
				t.Errorf("ended with %v, the server got %+v", err, got)
			}
		})
	}
}

func TestLoginUsesTheBestMechanism(t *testing.T) {
	t.Parallel()
	secure, trusted := certified(t)
	for _, c := range []struct {
		name, at, setting, password string
		logins                      []string
		code                        string
	}{
		{"PLAIN under TLS", "127.0.0.1:0", "starttls", "right", []string{"PLAIN"}, ""},
		{"LOGIN under TLS", "127.0.0.1:0", "starttls", "right", []string{"LOGIN"}, ""},
		{"PLAIN from the first byte under TLS", "127.0.0.1:0", "tls", "right", []string{"LOGIN", "PLAIN"}, ""},
		{"PLAIN to this machine", "127.0.0.1:0", "none", "right", []string{"PLAIN"}, ""},
		{"a wrong password", "127.0.0.1:0", "starttls", "wrong", []string{"PLAIN"}, "WORKER.EMAIL_REFUSED"},
		{"no way to log in", "127.0.0.1:0", "starttls", "right", nil, "WORKER.EMAIL_FAILED"},
		{"no way that we know", "127.0.0.1:0", "starttls", "right", []string{"GSSAPI"}, "WORKER.EMAIL_FAILED"},
		{"PLAIN in the open", "127.0.0.2:0", "none", "right", []string{"PLAIN"}, "WORKER.EMAIL_FAILED"},
		{"LOGIN in the open", "127.0.0.2:0", "none", "right", []string{"LOGIN"}, "WORKER.EMAIL_FAILED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := &office{password: "right", logins: c.logins}
			var wrap func(net.Listener) net.Listener
			if c.setting == "tls" {
				wrap = func(l net.Listener) net.Listener { return tls.NewListener(l, secure) }
			}
			cfg := o.open(t, c.at, func(s *smtp.Server) { s.TLSConfig = secure }, wrap)
			cfg.TLS, cfg.RootCAs, cfg.Username, cfg.Password = c.setting, trusted, "worker", secret.Of(c.password)
			_, failure, err := mail(t.Context(), t, cfg, simple())
			switch got := o.got(); {
			case c.code == "" && (err != nil || len(got) != 1 || got[0].user != "worker"):
				t.Errorf("ended with %v, the server got %+v", err, got)
			case c.code != "" && (failure == nil || failure.Code != c.code || len(got) != 0):
				t.Errorf("ended with %v, the server got %+v", err, got)
			case err != nil && strings.Contains(err.Error(), "right"):
				t.Errorf("shows the password: %v", err)
			}
		})
	}
}

func TestInternationalAddressesAreSupported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, to, path string
		offered, sent  bool
		utf8           bool
	}{
		{"a host of the whole world", "ada@bücher.example", "ada@xn--bcher-kva.example", false, true, false},
		{"the same, where more is offered", "ada@BÜCHER.example", "ada@xn--bcher-kva.example", true, true, false},
		{"a name of the whole world", "Jörg <jörg@bücher.example>", "jörg@xn--bcher-kva.example", true, true, true},
		{"the same, where it is not taken", "jörg@bücher.example", "", false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := &office{}
			cfg := o.open(t, "127.0.0.1:0", func(s *smtp.Server) { s.EnableSMTPUTF8 = c.offered }, nil)
			payload := simple()
			payload["to"] = []string{c.to}
			_, failure, err := mail(t.Context(), t, cfg, payload)
			got := o.got()
			if c.sent && (err != nil || len(got) != 1 || got[0].to[0] != c.path || got[0].utf8 != c.utf8) {
				t.Errorf("ended with %v, the server got %+v", err, got)
			}
			if !c.sent && (failure == nil || failure.Code != "WORKER.EMAIL_REFUSED" || failure.Retryable || len(got) != 0) {
				t.Errorf("ended with %v, the server got %+v", err, got)
			}
		})
	}
}

func TestAMailWithoutAConfiguredServerFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg  handlers.EmailConfig
		want string
	}{
		{handlers.EmailConfig{}, "SMTP_HOST is not set for this worker"},
		{handlers.EmailConfig{From: "a@b.example"}, "SMTP_HOST is not set for this worker"},
		{handlers.EmailConfig{Host: "127.0.0.1"}, "SMTP_FROM is not set for this worker"},
	} {
		_, failure, err := mail(t.Context(), t, c.cfg, simple())
		if failure == nil || failure.Code != "WORKER.NOT_CONFIGURED" || failure.Retryable || failure.Message != c.want {
			t.Errorf("ended with %v, not %s", err, c.want)
		}
	}
	for want, cfg := range map[string]handlers.EmailConfig{
		"SMTP_TLS: ": {Host: "x", TLS: "yes"},

		`SMTP_TLS: "maybe" is none`: {TLS: "maybe"},
		"SMTP_PORT: -1 is no port":  {Port: -1},
		"SMTP_PORT: ":               {Host: "x", Port: 65536},
		"SMTP_FROM: ":               {From: "nobody"},
	} {
		if _, err := handlers.Builtin(handlers.Config{Email: cfg}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestASecretIsShownNowhere(t *testing.T) {
	t.Parallel()
	cfg := handlers.EmailConfig{Username: "worker", Password: secret.Of("hunter2")}
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("starting", "config", cfg, "password", cfg.Password)
	inJSON, err := json.Marshal(cfg.Password)
	if err != nil {
		t.Fatal(err)
	}
	all := logged.String() + string(inJSON) + fmt.Sprintf("%v %+v %#v %d %x", cfg, cfg, cfg, cfg.Password, cfg.Password)
	if strings.Contains(all, "hunter2") || !strings.Contains(all, "[secret]") {
		t.Error(all)
	}
}
