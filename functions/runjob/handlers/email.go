package handlers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/jobweaver/jobweaver/shared/secret"
)

// EmailConfig has the settings of the mail server that EMAIL uses.
type EmailConfig struct {
	Host     string      `envconfig:"SMTP_HOST" desc:"mail server for EMAIL; empty: such jobs fail"`
	Port     int         `envconfig:"SMTP_PORT" desc:"port of the mail server; 0: 587 with starttls, 465 with tls, 25 with none"`
	TLS      string      `envconfig:"SMTP_TLS" default:"starttls" desc:"starttls (never continues without TLS), tls (from the first byte) or none"`
	Username string      `envconfig:"SMTP_USERNAME" desc:"user name at the mail server; empty: no login"`
	Password secret.Text `envconfig:"SMTP_PASSWORD" desc:"password of that user, sent as plain text only under TLS or to this machine"`
	From     string      `envconfig:"SMTP_FROM" desc:"sender of jobs that name none"`
	Senders  []string    `envconfig:"SMTP_ALLOW_FROM" desc:"addresses and @domains that a job may use as its sender and in Reply-To; *: any; empty: only SMTP_FROM, or any if that is empty"`
	To       []string    `envconfig:"SMTP_ALLOW_TO" desc:"permitted recipients, as addresses and @domains; empty: any"`

	RootCAs *x509.CertPool `ignored:"true"` // accepted for the server's certificate; nil: the system's
}

// The values of SMTP_TLS.
const (
	smtpStartTLS = "starttls"
	smtpTLS      = "tls"
	smtpNoTLS    = "none"
)

// Email runs jobs of type EMAIL: each attempt sends one message to the mail server, over a connection of its own. So
// there are no more connections than the worker has slots.
type Email struct {
	server *mailServer // nil: not configured
	from   *address    // nil: each job must name its sender
	cfg    EmailConfig
}

// NewEmail returns the handler. An error begins with the setting's name.
func NewEmail(cfg EmailConfig) (*Email, error) {
	e := &Email{cfg: cfg}
	if cfg.From != "" {
		from, err := parseAddress(cfg.From)
		if err != nil {
			return nil, fmt.Errorf("SMTP_FROM: %w", err)
		}
		e.from = &from
		if len(cfg.Senders) == 0 {
			e.cfg.Senders = []string{from.String()}
		}
	}
	for name, list := range map[string]*[]string{"SMTP_ALLOW_FROM": &e.cfg.Senders, "SMTP_ALLOW_TO": &e.cfg.To} {
		var err error
		if *list, err = parseAllowed(*list); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	ports := map[string]int{smtpStartTLS: 587, smtpTLS: 465, smtpNoTLS: 25}
	if cfg.TLS == "" {
		cfg.TLS = smtpStartTLS
	}
	if ports[cfg.TLS] == 0 {
		return nil, fmt.Errorf("SMTP_TLS: %q is none of starttls, tls and none", cfg.TLS)
	}
	if cfg.Port == 0 {
		cfg.Port = ports[cfg.TLS]
	}
	if cfg.Port < 1 || cfg.Port > 65535 {
		return nil, fmt.Errorf("SMTP_PORT: %d is no port", cfg.Port)
	}
	if cfg.Host == "" {
		return e, nil
	}
	e.server = &mailServer{cfg: cfg, tls: &tls.Config{
		ServerName: cfg.Host, RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12,
	}}
	return e, nil
}

// Run implements Handler.
func (e *Email) Run(ctx context.Context, a *Attempt) (Result, error) {
	if e.server == nil {
		return Result{}, notConfigured("SMTP_HOST")
	}
	mail, err := parseEmail(a.Payload)
	if err != nil {
		return Result{}, invalidPayload(err)
	}
	if mail.from == nil {
		mail.from = e.from
	}
	if mail.from == nil {
		return Result{}, notConfigured("SMTP_FROM")
	}
	if err := e.allows(mail); err != nil {
		return Result{}, invalidPayload(err)
	}
	id := a.JobID.String() + "@" + mail.from.domain // of each attempt: a receiver can drop the second copy of a message
	raw, err := mail.message(id, time.Now())
	if err != nil {
		return Result{}, invalidPayload(fmt.Errorf("write the message: %w", err))
	}
	answer, err := e.server.send(ctx, mail, raw)
	if err != nil {
		return Result{}, err
	}
	a.Log(slog.LevelInfo, "the mail server has it: "+answer)
	output, err := json.Marshal(emailOutput{"<" + id + ">", len(mail.recipients())})
	return Result{Output: output}, err
}

type emailOutput struct {
	MessageID  string `json:"messageId"`
	Recipients int    `json:"recipients"`
}

var (
	errSender    = errors.New("payload.from and payload.replyTo: only senders of SMTP_ALLOW_FROM may be named here")
	errRecipient = errors.New("payload.to, cc and bcc: only recipients of SMTP_ALLOW_TO may be named here")
)

// allows reports whether the operator permits the message's sender and recipients. A mail relay signs everything that
// it receives from here for its domain.
func (e *Email) allows(m *email) error {
	for _, sender := range []*address{m.from, m.replyTo} {
		if sender != nil && !sender.in(e.cfg.Senders) {
			return errSender
		}
	}
	if slices.ContainsFunc(m.recipients(), func(a address) bool { return !a.in(e.cfg.To) }) {
		return errRecipient
	}
	return nil
}

// parseAllowed returns a list of addresses and @domains in the form of parseAddress, so that in can compare them.
func parseAllowed(list []string) ([]string, error) {
	parsed := make([]string, len(list))
	for i, text := range list {
		text = strings.TrimSpace(text)
		whole := text
		if strings.HasPrefix(text, "@") {
			whole = "any" + text
		}
		a, err := parseAddress(whole)
		switch {
		case text == "*":
			parsed[i] = text
		case err != nil || a.name != "":
			return nil, fmt.Errorf("%q is neither an address nor an @domain", text)
		case whole != text:
			parsed[i] = "@" + a.domain
		default:
			parsed[i] = a.String()
		}
	}
	return parsed, nil
}

// in reports whether a list from parseAllowed permits the address. An empty list permits all. Case does not count, but
// only within ASCII: EqualFold would treat ſhop as shop, which is another mailbox.
func (a address) in(list []string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(text string) bool {
		return text == "*" || text == "@"+a.domain || isASCII(text) == a.ascii() && strings.EqualFold(text, a.String())
	})
}
