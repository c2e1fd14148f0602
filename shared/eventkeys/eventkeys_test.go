package eventkeys

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func newSecret() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return prefix + base64.StdEncoding.EncodeToString(secret)
}

func open(t testing.TB, lines ...string) *Keys {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	write(t, path, lines...)
	keys, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func write(t testing.TB, path string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newEvent(t testing.TB) event.Event {
	t.Helper()
	job := uuid.New()
	e, err := jobevent.New(jobevent.TypeCompleted, jobevent.Meta{
		Function: "runjob", ID: jobevent.OutcomeID(job, 1, "completed"), JobID: job, TraceID: uuid.New(),
	}, jobevent.Completed{JobID: job, Attempt: 1, WorkerID: "w", Output: []byte(`{"a": 1}`)})
	if err != nil {
		t.Fatal(err)
	}
	return e.Event()
}

func signed(t testing.TB, k *Keys) event.Event {
	t.Helper()
	events := []event.Event{newEvent(t)}
	k.Sign(events)
	return events[0]
}

func TestWhatIsSignedIsKnown(t *testing.T) {
	t.Parallel()
	keys := open(t, newSecret())
	e := signed(t, keys)
	if err := keys.Check(e); err != nil {
		t.Error(err)
	}
	// Attributes that may change on the way are not signed: the trace parent, the key, and the extensions that a Broker
	// adds.
	e.SetExtension(jobevent.ExtTraceParent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	e.SetExtension("knativearrivaltime", "2026-01-01T00:00:00Z")
	if err := keys.Check(e); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotSignedByUsIsNotKnown(t *testing.T) {
	t.Parallel()
	keys := open(t, newSecret())
	for name, change := range map[string]func(e *event.Event){
		"no signature":       func(e *event.Event) { e.SetExtension(jobevent.ExtSignature, nil) },
		"an empty one":       func(e *event.Event) { e.SetExtension(jobevent.ExtSignature, " ") },
		"another version":    func(e *event.Event) { set(e, strings.Replace(get(*e), "v1,", "v2,", 1)) },
		"no version":         func(e *event.Event) { set(e, strings.TrimPrefix(get(*e), "v1,")) },
		"a shorter one":      func(e *event.Event) { set(e, get(*e)[:20]) },
		"no base64":          func(e *event.Event) { set(e, "v1,"+strings.Repeat("?", 44)) },
		"too many":           func(e *event.Event) { set(e, strings.Repeat(get(*e)+" ", maxSignatures+1)) },
		"another type":       func(e *event.Event) { e.SetType(jobevent.TypeFailed) },
		"another id":         func(e *event.Event) { e.SetID("other") },
		"another subject":    func(e *event.Event) { e.SetSubject(uuid.NewString()) },
		"no subject":         func(e *event.Event) { e.Context.(*event.EventContextV1).Subject = nil },
		"other data":         func(e *event.Event) { e.DataEncoded = []byte(`{}`) },
		"no data":            func(e *event.Event) { e.DataEncoded = nil },
		"another key":        func(e *event.Event) { open(t, newSecret()).Sign([]event.Event{*e}) },
		"a part moved":       func(e *event.Event) { e.SetID(e.ID() + e.Subject()[:1]); e.SetSubject(e.Subject()[1:]) },
		"data moved forward": func(e *event.Event) { e.SetSubject(e.Subject() + "{"); e.DataEncoded = e.DataEncoded[1:] },
	} {
		e := signed(t, keys)
		if change(&e); keys.Check(e) == nil {
			t.Errorf("%s passes", name)
		}
	}
}

func get(e event.Event) string { return jobevent.Extension(e, jobevent.ExtSignature) }

func set(e *event.Event, text string) { e.SetExtension(jobevent.ExtSignature, text) }

// The version of a deleted job is in an extension, which is not signed, and in the id, which is signed.
func TestADeletedJobsVersionIsSigned(t *testing.T) {
	t.Parallel()
	keys := open(t, newSecret())
	deleted, err := jobevent.NewDeleted(jobevent.Meta{Function: "command", JobID: uuid.New()}, 12)
	if err != nil {
		t.Fatal(err)
	}
	e := deleted.Event()
	keys.Sign([]event.Event{e})
	if err := keys.Check(e); err != nil {
		t.Error(err)
	}
	for _, version := range []string{"2", "112", "13", ""} {
		if e.SetExtension(jobevent.ExtVersion, version); keys.Check(e) == nil {
			t.Errorf("version %q passes", version)
		}
	}
}

func TestTheSignatureIsTheDocumentedOne(t *testing.T) {
	t.Parallel()
	secret := newSecret()
	e := signed(t, open(t, secret))
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, prefix))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	text.WriteString("jobweaver event v1")
	for _, part := range []string{e.Type(), e.ID(), e.Subject(), string(e.Data())} {
		text.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		text.WriteString(part)
	}
	mac := hmac.New(sha256.New, raw)
	mac.Write(text.Bytes())
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); get(e) != want {
		t.Errorf("signed %s, want %s", get(e), want)
	}
}

func TestKeysAreExchangedWithoutAnEventThatIsNotKnown(t *testing.T) {
	t.Parallel()
	old, young := newSecret(), newSecret()
	path := filepath.Join(t.TempDir(), "keys")
	write(t, path, old)
	keys, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	before := signed(t, keys)
	write(t, path, young, old)
	for deadline := time.Now().Add(time.Minute); keys.Check(signed(t, open(t, young))) != nil; <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the new key is never known")
		}
	}
	if err := keys.Check(before); err != nil {
		t.Errorf("an event by the old key: %v", err)
	}
	if err := open(t, young).Check(signed(t, keys)); err != nil {
		t.Errorf("the first key does not sign: %v", err)
	}
	both := before
	set(&both, get(signed(t, open(t, newSecret())))+" "+get(before))
	if err := keys.Check(both); err != nil {
		t.Errorf("of two signatures one is ours: %v", err)
	}
}

func TestAFileWithoutGoodKeysIsRefusedAndNotShown(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "secret", "whsec_c2VjcmV0", newSecret() + "\nwhsec_secret"} {
		path := filepath.Join(t.TempDir(), "keys")
		write(t, path, text)
		if _, err := Open(path); err == nil || !strings.HasPrefix(err.Error(), setting+": ") || strings.Contains(err.Error(), "c2Vjcm") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if keys, err := Open(""); keys != nil || err != nil {
		t.Errorf("no file: %v, %v", keys, err)
	}
}

func TestWithoutKeysNothingIsSignedAndAllPasses(t *testing.T) {
	t.Parallel()
	var keys *Keys
	if e := signed(t, keys); get(e) != "" || keys.Check(e) != nil {
		t.Errorf("signed %q", get(e))
	}
}

func BenchmarkSign(b *testing.B) {
	keys := open(b, newSecret())
	events := []event.Event{newEvent(b)}
	events[0].DataEncoded = bytes.Repeat([]byte("a"), 400)
	b.ReportAllocs()
	for b.Loop() {
		keys.Sign(events)
	}
}

func BenchmarkCheck(b *testing.B) {
	keys := open(b, newSecret())
	events := []event.Event{newEvent(b)}
	events[0].DataEncoded = bytes.Repeat([]byte("a"), 400)
	keys.Sign(events)
	b.ReportAllocs()
	for b.Loop() {
		if err := keys.Check(events[0]); err != nil {
			b.Fatal(err)
		}
	}
}
