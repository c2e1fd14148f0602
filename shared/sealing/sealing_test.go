package sealing_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// newKeys makes a file of keys.
func newKeys(t testing.TB) (*sealing.Keyset, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keyset.json")
	keys, err := sealing.CreateKeyset(path)
	if err != nil {
		t.Fatal(err)
	}
	return keys, path
}

func newSealer(t testing.TB, path string) *sealing.Sealer {
	t.Helper()
	s, err := sealing.New(sealing.Config{File: path})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var job, another = uuid.MustParse("0199f0f0-0000-7000-8000-000000000001"), uuid.MustParse("0199f0f0-0000-7000-8000-000000000002")

func TestWhatIsSealedOpensOnlyAtItsPlace(t *testing.T) {
	t.Parallel()
	_, path := newKeys(t)
	s := newSealer(t, path)
	places := []sealing.Place{
		sealing.OfJob(job, sealing.Payload), sealing.OfJob(job, sealing.Message), sealing.OfJob(another, sealing.Payload),
		sealing.OfAttempt(job, 1, sealing.Output), sealing.OfAttempt(job, 2, sealing.Output), sealing.OfAttempt(job, 11, sealing.Output),
		sealing.OfAttempt(job, 1, sealing.LogLine), sealing.OfAttempt(job, 1, sealing.Progress), sealing.OfAttempt(another, 1, sealing.Output),
		sealing.OfSchedule("a", "b"), sealing.OfSchedule("a", ""), sealing.OfSchedule("ab", ""),
		sealing.OfStep(job, "a"), sealing.OfStep(job, "b"), sealing.OfStep(another, "a"),
	}
	plain := json.RawMessage(`{"a":"b"}`)
	for i, at := range places {
		sealed, text := s.Seal(at, plain), s.SealText(at, "hello")
		if !json.Valid(sealed) || bytes.Contains(sealed, plain) || !jobevent.IsSealed(text) || strings.Contains(text, "hello") {
			t.Fatalf("sealed: %s %s", sealed, text)
		}
		if want := jobevent.SealedSize(len(plain)) + 2; len(sealed) != want {
			t.Errorf("it has %d bytes, not %d", len(sealed), want)
		}
		for j, other := range places {
			opened, err := s.Open(other, sealed)
			openedText, errText := s.OpenText(other, text)
			switch {
			case i == j && (err != nil || errText != nil || string(opened) != string(plain) || openedText != "hello"):
				t.Errorf("place %d: opened %s %q: %v %v", i, opened, openedText, err, errText)
			case i != j && (!errors.Is(err, sealing.ErrAltered) || !errors.Is(errText, sealing.ErrAltered) || opened != nil || openedText != ""):
				t.Errorf("moved from %d to %d it opens as %s %q: %v %v", i, j, opened, openedText, err, errText)
			}
		}
	}
}

func TestTheSameValueIsSealedAnotherWayEachTime(t *testing.T) {
	t.Parallel()
	_, path := newKeys(t)
	s, at := newSealer(t, path), sealing.OfJob(job, sealing.Payload)
	if bytes.Equal(s.Seal(at, json.RawMessage(`1`)), s.Seal(at, json.RawMessage(`1`))) {
		t.Error("who sees both knows that they are the same")
	}
}

func TestWhatWasNeverSealedStaysAsItIs(t *testing.T) {
	t.Parallel()
	_, path := newKeys(t)
	at := sealing.OfJob(job, sealing.Payload)
	for _, s := range []*sealing.Sealer{nil, newSealer(t, path)} {
		for _, value := range []string{`null`, `{}`, `""`, `"`, `"sealed"`, `"sealed:v2:abc"`, `{"a":"sealed:v1:abc"}`, ``} {
			if got, err := s.Open(at, json.RawMessage(value)); err != nil || string(got) != value {
				t.Errorf("%q became %q: %v", value, got, err)
			}
			if got, err := s.OpenText(at, value); err != nil || got != value {
				t.Errorf("text %q became %q: %v", value, got, err)
			}
		}
		if s.Seal(at, nil) != nil || s.SealText(at, "") != "" {
			t.Error("there is something where nothing was")
		}
	}
}

func TestWithoutKeysNothingIsSealedAndNothingSealedOpens(t *testing.T) {
	t.Parallel()
	_, path := newKeys(t)
	at := sealing.OfJob(job, sealing.Payload)
	var none *sealing.Sealer
	if got := none.Seal(at, json.RawMessage(`1`)); string(got) != `1` {
		t.Errorf("got %s", got)
	}
	if _, err := none.Open(at, newSealer(t, path).Seal(at, json.RawMessage(`1`))); !errors.Is(err, sealing.ErrNoKey) {
		t.Errorf("got %v", err)
	}
	if s, err := sealing.New(sealing.Config{}); s != nil || err != nil {
		t.Errorf("no file: %v, %v", s, err)
	}
}

func TestAnAlteredValueDoesNotOpen(t *testing.T) {
	t.Parallel()
	_, path := newKeys(t)
	s, at := newSealer(t, path), sealing.OfJob(job, sealing.Payload)
	sealed := s.Seal(at, json.RawMessage(`{"amount":1}`))
	body := sealed[1+len(jobevent.SealedPrefix) : len(sealed)-1]
	wrap := func(body string) json.RawMessage { return json.RawMessage(`"` + jobevent.SealedPrefix + body + `"`) }
	for name, altered := range map[string]json.RawMessage{
		"cut":                wrap(string(body[:len(body)-1])),
		"empty":              wrap(""),
		"short":              wrap("AQ"),
		"longer":             wrap(string(body) + "A"),
		"another form":       wrap(string(body) + "=="),
		"with ends of lines": wrap(string(body[:8]) + "\n" + string(body[8:])),
		"of another code":    wrap(string(body[:8]) + "+" + string(body[9:])),
		"without its quote":  sealed[:len(sealed)-1],
	} {
		if opened, err := s.Open(at, altered); !errors.Is(err, sealing.ErrAltered) || opened != nil {
			t.Errorf("%s: it opens as %s: %v", name, opened, err)
		}
	}
	for i := range body {
		altered := bytes.Clone(body)
		altered[i] = map[bool]byte{true: 'B', false: 'A'}[altered[i] == 'A']
		if opened, err := s.Open(at, wrap(string(altered))); err == nil || opened != nil {
			t.Fatalf("altered at %d it opens as %s", i, opened)
		}
	}
}

func TestKeysAreRotatedWithoutAnyoneWaiting(t *testing.T) {
	t.Parallel()
	keys, path := newKeys(t)
	at := sealing.OfJob(job, sealing.Payload)
	plain := json.RawMessage(`"x"`)
	// Each step is tried by two processes: one that has not read the changed file yet, and one that has.
	behind := newSealer(t, path)
	old := behind.Seal(at, plain)
	second, err := keys.Add()
	if err != nil {
		t.Fatal(err)
	}
	ahead := newSealer(t, path)
	bothOpen := func(step string, values ...json.RawMessage) {
		t.Helper()
		for _, s := range []*sealing.Sealer{behind, ahead} {
			for _, value := range values {
				if got, err := s.Open(at, value); err != nil || string(got) != string(plain) {
					t.Errorf("%s: got %s, %v", step, got, err)
				}
			}
		}
	}
	if ahead.Stale(old) || behind.Stale(old) {
		t.Error("an added key seals before it is promoted")
	}
	bothOpen("added", old, ahead.Seal(at, plain))
	behind = ahead
	if err := keys.Promote(second); err != nil {
		t.Fatal(err)
	}
	ahead = newSealer(t, path)
	fresh := ahead.Seal(at, plain)
	if !ahead.Stale(old) || ahead.Stale(fresh) || !behind.Stale(fresh) || !ahead.Stale(plain) {
		t.Error("the promoted key does not seal")
	}
	bothOpen("promoted", old, fresh, behind.Seal(at, plain))
	behind = ahead
	all, err := keys.Keys()
	if err != nil || len(all) != 2 || all[0].Primary || !all[1].Primary || all[1].ID != second {
		t.Fatalf("keys %v: %v", all, err)
	}
	if err := keys.Remove(second); err == nil {
		t.Error("the key in use was removed")
	}
	if err := keys.Remove(all[0].ID); err != nil {
		t.Fatal(err)
	}
	ahead = newSealer(t, path)
	bothOpen("removed", fresh)
	if _, err := ahead.Open(at, old); !errors.Is(err, sealing.ErrNoKey) {
		t.Errorf("what was sealed with a key that is gone: %v", err)
	}
}

func TestAChangedFileIsSeenAndABrokenOneIsNot(t *testing.T) {
	t.Parallel()
	keys, path := newKeys(t)
	s, at := newSealer(t, path), sealing.OfJob(job, sealing.Payload)
	old := s.Seal(at, json.RawMessage(`1`))
	if err := os.WriteFile(path, []byte(`{"primaryKeyId":1,"key":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the invalid file", func() bool { _, err := sealing.OpenKeyset(path); return err != nil })
	if _, err := s.Open(at, old); err != nil {
		t.Fatalf("with a broken file: %v", err)
	}
	id, err := keys.Add() // writes the file anew
	if err != nil || keys.Promote(id) != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the new keyset", func() bool { return s.Stale(old) })
	if _, err := s.Open(at, old); err != nil {
		t.Error(err)
	}
}

func TestOnlyOurKindOfKeysIsTaken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	of := func(handle *keyset.Handle, err error) []byte {
		var text bytes.Buffer
		if err := errors.Join(err, insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&text))); err != nil {
			t.Fatal(err)
		}
		return text.Bytes()
	}
	for name, text := range map[string][]byte{
		"nothing": nil, "text": []byte("secret-canary"), "JSON": []byte(`{"secret-canary":1}`),
		"nonces of 96 bits":  of(keyset.NewHandle(aead.AES256GCMKeyTemplate())),
		"nonces of 160 bits": of(keyset.NewHandle(aead.XAES256GCM160BitNonceKeyTemplate())),
		"no prefix":          of(keyset.NewHandle(aead.XAES256GCM192BitNonceNoPrefixKeyTemplate())),
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := sealing.New(sealing.Config{File: path})
		if err == nil || !strings.HasPrefix(err.Error(), sealing.Setting+": ") || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sealing.New(sealing.Config{File: path + "x"}); err == nil {
		t.Error("a file that is not there is taken")
	}
}

func TestAKeysetIsItsOwnersAndIsNeverOverwritten(t *testing.T) {
	t.Parallel()
	keys, path := newKeys(t)
	if _, err := sealing.CreateKeyset(path); err == nil {
		t.Error("it was overwritten")
	}
	if _, err := keys.Add(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("there are %v: %v", left, err)
	}
}
