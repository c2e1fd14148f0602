// Package mailcatch is a mail server that forwards nothing: it keeps the mails that it receives in memory and shows
// them on a page. Only this machine can reach the server and the page.
package mailcatch

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/emersion/go-smtp"
)

// The default ports of SMTP and of the page, as in similar programs.
const (
	DefaultPort     = 1025
	DefaultPagePort = 8025
)

// Config has the loopback ports on which the server listens.
type Config struct {
	Port, PagePort int  // 0: any free port
	OrAnother      bool // if a port is in use, take a free one
}

// Server is a running mail server.
type Server struct {
	mails net.Listener
	page  net.Listener
	box   *box

	smtp *smtp.Server
	http *http.Server
	all  sync.WaitGroup
}

// maxMessage is the most bytes of one message. A job has at most half a MiB.
const maxMessage = 16 << 20

// Start opens both ports and serves them until Close.
func Start(cfg Config) (*Server, error) {
	s := &Server{box: newBox(maxMessages, maxBytes)}
	var err error
	if s.mails, err = listen(cfg.Port, cfg.OrAnother); err != nil {
		return nil, fmt.Errorf("open the port for mails: %w", err)
	}
	if s.page, err = listen(cfg.PagePort, cfg.OrAnother); err != nil {
		_ = s.mails.Close()
		return nil, fmt.Errorf("open the port of the page of mails: %w", err)
	}
	s.smtp = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{box: s.box}, nil }))
	s.smtp.Domain, s.smtp.EnableSMTPUTF8 = "localhost", true
	s.smtp.MaxMessageBytes, s.smtp.ReadTimeout, s.smtp.WriteTimeout = maxMessage, 5*time.Minute, time.Minute
	log := slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug)
	s.smtp.ErrorLog = log
	s.http = &http.Server{
		Handler: newPage(s.box), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: log,
	}
	s.all.Go(func() { _ = s.smtp.Serve(s.mails) })
	s.all.Go(func() { _ = s.http.Serve(s.page) })
	return s, nil
}

func listen(port int, orAnother bool) (net.Listener, error) {
	at := func(port int) (net.Listener, error) {
		return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	listener, err := at(port)
	if orAnother && errors.Is(err, syscall.EADDRINUSE) {
		return at(0)
	}
	return listener, err
}

// Host returns the host at which the server receives mails.
func (s *Server) Host() string { return "127.0.0.1" }

// Port returns the port on Host at which the server receives mails.
func (s *Server) Port() int { return s.mails.Addr().(*net.TCPAddr).Port }

// URL returns the address of the page.
func (s *Server) URL() string { return "http://" + s.page.Addr().String() }

// Close stops the server. Its mails are lost.
func (s *Server) Close() error {
	err := errors.Join(s.smtp.Close(), s.http.Close())
	// The servers close only listeners that they know, and they know them only after Serve has begun.
	_, _ = s.mails.Close(), s.page.Close()
	s.all.Wait()
	return err
}

// session is one connection over which mails arrive.
type session struct {
	box      *box
	envelope envelope
}

func (s *session) Reset()        { s.envelope = envelope{} }
func (s *session) Logout() error { return nil }

// Mail implements smtp.Session.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.envelope = envelope{From: from}
	return nil
}

// Rcpt implements smtp.Session.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.envelope.To = append(s.envelope.To, to)
	return nil
}

// Data implements smtp.Session.
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.box.put(s.envelope, raw, time.Now())
	return nil
}
