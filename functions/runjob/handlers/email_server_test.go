package handlers_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// letter is a message that a server has accepted.
type letter struct {
	from       string
	to         []string
	raw        string
	utf8, safe bool
	user       string // that logged in
}

// office is a real mail server that keeps the messages that it accepts.
type office struct {
	password string // empty: no login is needed
	logins   []string
	loses    int // answers to messages that it has kept

	mu      sync.Mutex
	letters []letter
}

// open serves the office on the address, until the test ends.
func (o *office) open(t *testing.T, at string, set func(*smtp.Server), wrap func(net.Listener) net.Listener) handlers.EmailConfig {
	t.Helper()
	listener, err := net.Listen("tcp", at)
	if err != nil {
		t.Skip(err) // some systems do not have all of 127.0.0.0/8
	}
	server := smtp.NewServer(o)
	server.Domain, server.AllowInsecureAuth, server.ErrorLog = "office.test", true, slog.NewLogLogger(slog.DiscardHandler, 0)
	if set != nil {
		set(server)
	}
	if wrap != nil {
		listener = wrap(listener)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { _, _ = server.Close(), listener.Close(); <-done })
	address := listener.Addr().(*net.TCPAddr)
	return handlers.EmailConfig{Host: address.IP.String(), Port: address.Port, TLS: "none", From: "Shop <shop@example.com>", Senders: []string{"*"}}
}

func (o *office) got() []letter {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.letters
}

// NewSession implements smtp.Backend.
func (o *office) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &visitor{office: o, conn: c}, nil
}

type visitor struct {
	office *office
	conn   *smtp.Conn
	letter letter
}

func (v *visitor) Reset()        { v.letter = letter{user: v.letter.user} }
func (v *visitor) Logout() error { return nil }

func (v *visitor) Mail(from string, o *smtp.MailOptions) error {
	if v.office.password != "" && v.letter.user == "" {
		return smtp.ErrAuthRequired
	}
	v.letter.from, v.letter.utf8 = from, o.UTF8
	_, v.letter.safe = v.conn.TLSConnectionState()
	return nil
}

func (v *visitor) Rcpt(to string, _ *smtp.RcptOptions) error {
	v.letter.to = append(v.letter.to, to)
	return nil
}

func (v *visitor) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	v.letter.raw = string(raw)
	v.office.mu.Lock()
	v.office.letters = append(v.office.letters, v.letter)
	if v.office.loses > 0 {
		v.office.loses--
		_ = v.conn.Conn().Close()
	}
	v.office.mu.Unlock()
	return err
}

func (v *visitor) AuthMechanisms() []string { return v.office.logins }

func (v *visitor) Auth(mech string) (sasl.Server, error) {
	check := func(user, password string) error {
		if password != v.office.password {
			return smtp.ErrAuthFailed
		}
		v.letter.user = user
		return nil
	}
	if mech == sasl.Plain {
		return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
	}
	return &loginServer{check: check}, nil
}

// loginServer is the server of the old LOGIN mechanism, for which the library has a client only.
type loginServer struct {
	step  int
	user  string
	check func(user, password string) error
}

// Next implements sasl.Server.
func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	l.step++
	switch l.step {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.user = string(response)
		return []byte("Password:"), false, nil
	default:
		return nil, true, l.check(l.user, string(response))
	}
}

// script is a server with scripted answers by command ("connect" and "." too). An answer may be "hang" or "close".
// Several answers are separated by |: each time the next one is sent, and the last one repeats.
type script map[string]string

type scripted struct {
	cfg handlers.EmailConfig

	mu       sync.Mutex
	received []string
	hung     chan struct{} // closed when it hangs
}

func (s script) open(t *testing.T) *scripted {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(context.Background())
	server := &scripted{hung: make(chan struct{}), cfg: handlers.EmailConfig{
		Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, TLS: "none", From: "shop@example.com",
	}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer context.AfterFunc(ended, func() { _ = conn.Close() })()
				defer func() { _ = conn.Close() }()
				server.talk(ended, conn.(*net.TCPConn), s)
			})
		}
	})
	t.Cleanup(func() { end(); _ = listener.Close(); all.Wait() })
	return server
}

func (s *scripted) talk(ended context.Context, conn *net.TCPConn, answers script) {
	usual := script{
		"connect": "220 hello", "EHLO": "250-office.test\r\n250 8BITMIME", "DATA": "354 go on", ".": "250 queued as 17",
		"QUIT": "221 bye",
	}
	times := map[string]int{}
	answer := func(command string) string { // returns the answer; empty: the connection ends
		text, ok := answers[command]
		if !ok {
			text = cmp.Or(usual[command], "250 ok")
		}
		several := strings.Split(text, "|")
		text = several[min(times[command], len(several)-1)]
		times[command]++
		switch text {
		case "hang":
			close(s.hung)
			<-ended.Done()
			return ""
		case "close":
			return ""
		}
		if _, err := fmt.Fprintf(conn, "%s\r\n", text); err != nil {
			return ""
		}
		return text
	}
	sent := answer("connect")
	for lines := bufio.NewReaderSize(conn, 1<<10); sent != ""; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(sent, "354") && line != "." { // of the message
			if answers["body"] == "hang" {
				sent = answer("body")
			}
			continue
		}
		s.mu.Lock()
		s.received = append(s.received, line)
		s.mu.Unlock()
		command, _, _ := strings.Cut(line, " ")
		sent = answer(command)
	}
}

func (s *scripted) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received
}

var jobID = uuid.MustParse("0193a4a5-0000-7000-8000-000000000017")

// mail runs an attempt of EMAIL.
func mail(ctx context.Context, t *testing.T, cfg handlers.EmailConfig, payload any) (handlers.Result, *handlers.Failure, error) {
	t.Helper()
	return attempt(ctx, t, cfg, payload, 2)
}

func attempt(
	ctx context.Context, t *testing.T, cfg handlers.EmailConfig, payload any, number int,
) (handlers.Result, *handlers.Failure, error) {
	t.Helper()
	text, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	h, err := handlers.NewEmail(cfg)
	if err != nil {
		t.Fatal(err)
	}
	run := jobevent.Run{JobID: jobID, Attempt: number, Payload: text}
	result, err := h.Run(ctx, handlers.NewAttempt(run, uuid.Nil, func(slog.Level, string) {}, nil))
	var failure *handlers.Failure
	errors.As(err, &failure)
	return result, failure, err
}

type object = map[string]any

func simple() object {
	return object{"to": []string{"ada@example.org"}, "subject": "Hello", "text": "hi"}
}
