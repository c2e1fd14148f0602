package interplay

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/jobweaver/jobweaver/shared/client"
)

// emailType is the type whose jobs the witness sees only as a mail server: what arrives names the job, and no attempt.
const emailType = "EMAIL"

const (
	mailFrom   = "interplay@shop.test"
	mailHidden = "archive@shop.test" // of bcc
)

// Mail is a message that the mail server of the test got as a whole.
type Mail struct {
	Job  string    `json:"job"` // of its Message-ID
	ID   string    `json:"id"`
	Name string    `json:"name"` // of the request
	To   []string  `json:"to"`   // of the envelope
	At   time.Time `json:"at"`
	How  string    `json:"how"`            // the act: ok; fail and fatal: refused; drop: kept, and its answer lost
	Bare string    `json:"bare,omitempty"` // what is wrong in its headers
}

// payload of an EMAIL job: its text has the acts.
func (x *run) mailPayload(j Job) map[string]any {
	acts, _ := json.Marshal(j.Acts) //nolint:errchkjson // plain values
	return map[string]any{
		"to": []string{"Ädä Lovelace <ada@" + x.owner + ".test>"}, "cc": []string{"bob@" + x.owner + ".test"}, "bcc": []string{mailHidden},
		"subject": j.Name, "text": string(acts),
	}
}

func recipients(owner string) []string {
	return []string{"ada@" + owner + ".test", "bob@" + owner + ".test", mailHidden}
}

// serveMail serves SMTP until the witness is closed.
func (w *Witness) serveMail() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("open the mail server: %w", err)
	}
	w.smtp = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &mailSession{w: w, conn: c}, nil }))
	w.smtp.Domain, w.smtp.ErrorLog = "witness.test", slog.NewLogLogger(slog.DiscardHandler, 0)
	w.MailPort = listener.Addr().(*net.TCPAddr).Port
	go func() { _ = w.smtp.Serve(listener) }()
	return nil
}

type mailSession struct {
	w    *Witness
	conn *smtp.Conn
	to   []string
}

func (s *mailSession) Reset()        { s.to = nil }
func (s *mailSession) Logout() error { return nil }

func (s *mailSession) Mail(string, *smtp.MailOptions) error { return nil }

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return nil
}

// Data does the act of the job's n-th message.
func (s *mailSession) Data(r io.Reader) error {
	raw, err := netmail.ReadMessage(r)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(quotedprintable.NewReader(raw.Body))
	if err != nil {
		return err
	}
	_, host, _ := strings.Cut(s.to[0], "@")
	l := s.w.of(strings.TrimSuffix(host, ".test"))
	if l == nil {
		return &smtp.SMTPError{Code: 550, Message: "gone"}
	}
	m := &Mail{ID: raw.Header.Get("Message-Id"), Name: raw.Header.Get("Subject"), To: s.to, At: time.Now()}
	m.Job, _, _ = strings.Cut(strings.TrimPrefix(m.ID, "<"), "@")
	if list, err := raw.Header.AddressList("To"); err != nil || list[0].Name != "Ädä Lovelace" || raw.Header.Get("Bcc") != "" {
		m.Bare = fmt.Sprintf("To %q, Bcc %q", raw.Header.Get("To"), raw.Header.Get("Bcc"))
	}
	var acts []Act
	if err := json.Unmarshal(body, &acts); err != nil || len(acts) == 0 {
		acts = []Act{{Do: actOK}}
	}
	m.How = l.mailed(m, acts)
	switch m.How {
	case actFail:
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "later"}
	case actFatal:
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "never"}
	case actDrop:
		return s.conn.Conn().Close()
	}
	return nil
}

// mailed writes a message down, and returns the act for it.
func (l *Log) mailed(m *Mail, acts []Act) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.starts[m.Job]
	l.starts[m.Job]++
	m.How = acts[min(n, len(acts)-1)].Do
	l.mails = append(l.mails, m)
	return m.How
}

func (m *Mail) kept() bool { return m.How == actOK || m.How == actDrop }

var mailRules = []Rule{
	{
		"mailed", "the server takes the message | completed", "docs/job-types.md, EMAIL",
		func(f *facts, found func(_, _, _ string)) {
			f.each(func(j *client.Job) {
				list := f.mails(j.JobID)
				taken := slices.ContainsFunc(list, func(m *Mail) bool { return m.How == actOK })
				if j.JobType == emailType && j.Status == client.Completed && !taken {
					found(f.name(j.JobID), "COMPLETED only with the server's 250", fmt.Sprintf("COMPLETED, and %d messages came", len(list)))
				}
				refused := slices.ContainsFunc(list, func(m *Mail) bool { return m.How == actFatal })
				if j.JobType == emailType && code(j) == "WORKER.EMAIL_REFUSED" && !refused {
					found(f.name(j.JobID), "a message that was refused with 550", fmt.Sprintf("%d messages came, and none was refused", len(list)))
				}
			})
		},
	},
	{
		"mailed once", "In one case a message can be sent twice", "docs/job-types.md, EMAIL",
		func(f *facts, found func(_, _, _ string)) {
			f.each(func(j *client.Job) {
				var before *Mail
				for _, m := range f.mails(j.JobID) {
					if before != nil && len(f.lives(j)) == 1 && before.How != actDrop && !f.disturbed(before.At.Add(-time.Second), m.At) &&
						len(f.may(j.JobID, "cancel")) == 0 {
						found(f.name(j.JobID), "one message: the server took it, and its answer was not lost", "another one at "+m.At.String())
					}
					if before = m; !m.kept() {
						before = nil
					}
				}
			})
		},
	},
	{
		"addressed", "All attempts of a job send the same Message-ID", "docs/job-types.md, EMAIL",
		func(f *facts, found func(_, _, _ string)) {
			for _, m := range f.Mails {
				switch want := "<" + m.Job + "@shop.test>"; {
				case m.ID != want:
					found(f.name(m.Job), "the Message-ID "+want, m.ID)
				case !slices.Equal(m.To, recipients(f.Owner)):
					found(f.name(m.Job), fmt.Sprint(recipients(f.Owner)), fmt.Sprint(m.To))
				case m.Bare != "":
					found(f.name(m.Job), "the name in To as it was asked for, and no Bcc", m.Bare)
				case f.Jobs[m.Job] == nil && !f.deleted(m.Job):
					found(m.Job, "only jobs send mails", "there is no such job")
				}
			}
		},
	},
}

// mails returns the messages of a job in the order of their arrival.
func (f *facts) mails(id string) (list []*Mail) {
	for _, m := range f.Mails {
		if m.Job == id {
			list = append(list, m)
		}
	}
	return list
}
