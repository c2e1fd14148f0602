package funchost

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/eventkeys"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

const eventKey = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

func newKeysFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(eventKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func sign(t *testing.T, path string, e event.Event) event.Event {
	t.Helper()
	keys, err := eventkeys.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	keys.Sign([]event.Event{e})
	return e
}

// Without verification, any client that reaches the address of a function or of the Broker could publish internal
// events.
func TestOverHTTPOnlySignedEventsAreHandled(t *testing.T) {
	t.Parallel()
	path, job := newKeysFile(t), uuid.New()
	e := sign(t, path, ofJob(t, jobevent.TypeDeadLettered, job.String()+".1.dead", job).Event())
	headers := []string{
		"Ce-Specversion", "1.0", "Ce-Source", "/jobweaver/runjob", "Ce-Type", e.Type(), "Ce-Id", e.ID(),
		"Ce-Subject", e.Subject(), "Content-Type", "application/json",
	}
	signature := []string{"Ce-Jwsig", jobevent.Extension(e, jobevent.ExtSignature)}
	for _, tt := range []struct {
		name    string
		cfg     Config
		headers []string
		body    string
		status  int
	}{
		{"signed", Config{EventKeysFile: path}, slices.Concat(headers, signature), "{}", 202},
		{"not signed", Config{EventKeysFile: path}, headers, "{}", 403},
		{"signed with other data", Config{EventKeysFile: path}, slices.Concat(headers, signature), `{"a":1}`, 403},
		{"not signed, verified everywhere", Config{EventKeysFile: path, EventVerify: verifyAll}, headers, "{}", 403},
		{"not signed, and not verified", Config{EventKeysFile: path, EventVerify: verifyOff}, headers, "{}", 202},
		{"not signed, without keys", Config{}, headers, "{}", 202},
		{"a ping", Config{EventKeysFile: path}, []string{
			"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/test", "Ce-Type", typePing}, "", 202},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var called atomic.Bool
			s := newSite(t, tt.cfg, Function{
				Handle: func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { called.Store(true); return nil, nil },
				Tick: func(context.Context) ([]jobevent.Item, time.Duration, error) {
					called.Store(true)
					return nil, time.Hour, nil
				},
			})
			if got := s.do("POST", "/", tt.body, tt.headers...); got.status != tt.status || called.Load() != (tt.status == 202) {
				t.Errorf("answered %+v, called %t", got, called.Load())
			}
		})
	}
}

func TestEventsForTheSinkAreSigned(t *testing.T) {
	t.Parallel()
	path, job := newKeysFile(t), uuid.New()
	keys, err := eventkeys.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, Config{EventKeysFile: path, EventVerify: verifyOff}, Function{
		Handle: func(context.Context, []jobevent.Item) ([]jobevent.Item, error) {
			return []jobevent.Item{ofJob(t, jobevent.TypeStatus, job.String()+".v1", job)}, nil
		},
	})
	s.do("POST", "/", "{}", binary("1")...)
	e, _ := s.sink.get(job.String() + ".v1")
	if err := keys.Check(e); err != nil {
		t.Errorf("%v: %v", e, err)
	}
}

func TestWithEventVerifyAllOnlySignedRecordsAreHandled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	answered, rejected := p.answered(), p.rejected()
	p.send(0, 1) // unsigned: there are no keys yet
	p.cfg.EventKeysFile, p.cfg.EventSign, p.cfg.EventVerify = newKeysFile(t), verifyAll, verifyAll
	p.send(1, 2)
	p.run(p.function(func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) { return p.answers(batch), nil }))
	if ids := answered.wait(t, 1); !slices.Equal(ids, []string{"1"}) {
		t.Errorf("handled %v", ids)
	}
	e, _ := answered.get("1")
	keys, err := eventkeys.Open(p.cfg.EventKeysFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Check(e); err != nil {
		t.Errorf("the answer: %v", err)
	}
	letter, _ := rejected.get(rejected.wait(t, 1)[0])
	data, err := jobevent.Decode[jobevent.Rejected](jobevent.ItemOf(letter))
	if err != nil || !strings.HasPrefix(data.Reason, "unsigned: ") || !strings.HasPrefix(data.Headers["ce_id"], "0+") {
		t.Errorf("the dead letter: %+v, %v", data, err)
	}
}

func TestTheSettingsOfSigningAreChecked(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"STATUS_EVENTS": {StatusEvents: "some"},
		"EVENT_SIGN":    {EventSign: "off"}, "EVENT_VERIFY": {EventVerify: "kafka"},
		"EVENT_VERIFY: is all": {EventVerify: verifyAll}, "EVENT_KEYS_FILE": {EventKeysFile: "/nowhere", Sink: "http://sink"},
	} {
		cfg.NoListen = true
		if err := Run(t.Context(), cfg, Function{Name: "f"}); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
