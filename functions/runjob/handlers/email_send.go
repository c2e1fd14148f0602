package handlers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// How long the server may take, at most as long as RFC 5321 recommends. The attempt's context bounds the whole dialog.
const (
	smtpConnectIn = 30 * time.Second
	smtpAnswerIn  = 2 * time.Minute  // for each command
	smtpTakeIn    = 10 * time.Minute // for the end of the message: giving up here may send it twice
	smtpQuitIn    = time.Second      // its answer does not matter
)

// mailServer is the mail server of SMTP_HOST.
type mailServer struct {
	cfg EmailConfig
	tls *tls.Config
}

// send sends a message and returns the server's last answer. Either all recipients receive it or none: if the server
// refuses one of them, the dialog ends before the message, so that a retry sends no recipient a second one. When its
// context ends, send returns the cause at once.
func (s *mailServer) send(ctx context.Context, m *email, raw []byte) (string, error) {
	address := net.JoinHostPort(s.cfg.Host, strconv.Itoa(s.cfg.Port))
	conn, err := (&net.Dialer{Timeout: smtpConnectIn}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", ended(ctx, trouble("connect to the mail server", err))
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	client, err := s.greet(ctx, conn, m.needsUTF8())
	if err != nil {
		return "", ended(ctx, greeting(err))
	}
	d := dialog{conn: conn, client: client}
	answer, err := d.transact(m, raw)
	if !d.halfway { // otherwise QUIT would end the message with a dot, and send half of it
		d.patience(smtpQuitIn)
		_ = client.Quit()
	}
	if err != nil {
		return "", ended(ctx, err)
	}
	return answer, nil
}

// greet prepares the connection for a message, with TLS and login.
func (s *mailServer) greet(ctx context.Context, conn net.Conn, utf8 bool) (*smtp.Client, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if s.cfg.TLS != smtpTLS {
			return conn, nil
		}
		secure := tls.Client(conn, s.tls)
		return secure, secure.HandshakeContext(ctx)
	}
	policy := gomail.NoTLS // of STARTTLS
	if s.cfg.TLS == smtpStartTLS {
		policy = gomail.TLSMandatory
	}
	options := []gomail.Option{
		gomail.WithDialContextFunc(dial), gomail.WithTLSPolicy(policy), gomail.WithTLSConfig(s.tls),
		gomail.WithTimeout(smtpAnswerIn),
	}
	if s.cfg.Username != "" {
		options = append(options, gomail.WithOpportunisticSMTPAuth(s.logins()...),
			gomail.WithUsername(s.cfg.Username), gomail.WithPassword(s.cfg.Password.Reveal()))
	}
	if !utf8 { // otherwise a next server without SMTPUTF8 would return the message
		options = append(options, gomail.WithoutSMTPUTF8())
	}
	client, err := gomail.NewClient(s.cfg.Host, options...)
	if err != nil {
		return nil, err
	}
	return client.DialToSMTPClientWithContext(ctx)
}

// logins returns the ways to log in, the best first. The library refuses to send a plain password without TLS, except
// to this machine.
func (s *mailServer) logins() []gomail.SMTPAuthType {
	bound := []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256PLUS, gomail.SMTPAuthSCRAMSHA1PLUS}
	scrambled := []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthCramMD5}
	plain := []gomail.SMTPAuthType{gomail.SMTPAuthPlain, gomail.SMTPAuthLogin}
	if s.cfg.TLS != smtpNoTLS {
		return append(append(bound, scrambled[:2]...), append(plain, scrambled[2])...)
	}
	return append(scrambled, plain...)
}

// dialog is an authenticated connection to the server.
type dialog struct {
	conn    net.Conn // below TLS
	client  *smtp.Client
	halfway bool // part of the message was sent, but not its end
}

func (d *dialog) patience(limit time.Duration) { _ = d.conn.SetDeadline(time.Now().Add(limit)) }

func (d *dialog) transact(m *email, raw []byte) (string, error) {
	if offered, _ := d.client.Extension("SMTPUTF8"); m.needsUTF8() && !offered {
		return "", &Failure{
			Code:    string(apierror.EmailRefused),
			Message: "the mail server takes no addresses with characters outside ASCII before the @",
		}
	}
	d.patience(smtpAnswerIn)
	if err := d.client.Mail(m.from.path()); err != nil {
		return "", trouble("name the sender "+m.from.String(), err)
	}
	if err := d.name(m.recipients()); err != nil {
		return "", err
	}
	d.patience(smtpAnswerIn)
	body, err := d.client.Data()
	if err != nil {
		return "", trouble("begin the message", err)
	}
	d.patience(smtpTakeIn)
	d.halfway = true
	if _, err := body.Write(raw); err != nil { // not closed: closing sends the final dot
		return "", trouble("send the message", err)
	}
	d.halfway = false
	if err := body.Close(); err != nil {
		return "", trouble("end the message", err)
	}
	if closer, ok := body.(*smtp.DataCloser); ok {
		return closer.ServerResponse(), nil
	}
	return "", nil
}

// name sends the recipients to the server: all of them, so that one failure names all refused ones.
func (d *dialog) name(recipients []address) error {
	var refusals []string
	refused := &Failure{Code: string(apierror.EmailFailed), Retryable: true, Private: true}
	for _, to := range recipients {
		d.patience(smtpAnswerIn)
		err := d.client.Rcpt(to.path())
		if err == nil {
			continue
		}
		failure := trouble(to.String(), err)
		if !answered(err) {
			return failure
		}
		refusals = append(refusals, failure.Message)
		if !failure.Retryable {
			refused.Code, refused.Retryable = failure.Code, false
		}
	}
	if len(refusals) == 0 {
		return nil
	}
	refused.Message = fmt.Sprintf("sent to none, since the mail server refused %d of %d recipients: %s",
		len(refusals), len(recipients), strings.Join(refusals, "; "))
	return refused
}

// path returns the address as commands contain it.
func (a address) path() string { return "<" + a.String() + ">" }

// trouble returns the failure for a server's answer or a broken connection. An answer that begins with 5 is permanent.
func trouble(doing string, err error) *Failure {
	failure := &Failure{
		Code: string(apierror.EmailFailed), Message: doing + ": " + reason(err), Retryable: true, Cause: err,
	}
	var answer *textproto.Error
	if !errors.As(err, &answer) {
		return failure
	}
	failure.Cause = nil
	failure.Private = true // it may name people
	failure.Message = fmt.Sprintf("%s: %d %s", doing, answer.Code, strings.ReplaceAll(answer.Msg, "\n", " "))
	if answer.Code >= 500 && answer.Code < 600 {
		failure.Code, failure.Retryable = string(apierror.EmailRefused), false
	}
	return failure
}

// greeting is trouble before the message's own commands. The server's text then concerns the worker: it may contain the
// worker's address or user name.
func greeting(err error) *Failure {
	const doing = "greet the mail server"
	failure := trouble(doing, err)
	var answer *textproto.Error
	if errors.As(err, &answer) {
		failure.Message, failure.Cause = fmt.Sprintf("%s: it answered %d", doing, answer.Code), err
	}
	return failure
}

func answered(err error) bool {
	var answer *textproto.Error
	return errors.As(err, &answer)
}

// ended returns the cause of the context's end, if it has ended, instead of an error that followed from it.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
