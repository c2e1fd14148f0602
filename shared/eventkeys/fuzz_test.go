package eventkeys

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// FuzzCheck checks that an event passes only with the type, id, subject and data that were signed, whatever its
// signature contains.
func FuzzCheck(f *testing.F) {
	keys, others := open(f, newSecret()), open(f, newSecret())
	for _, signature := range []string{"", "v1,", "v1,AAAA", "v2,x", "v1," + strings.Repeat("A", 43) + "=", " \x00\xff "} {
		f.Add(jobevent.TypeRun, "id", "subject", []byte(`{}`), signature)
	}
	f.Fuzz(func(t *testing.T, typ, id, subject string, data []byte, signature string) {
		e := event.New()
		e.SetType(jobevent.TypeCompleted)
		e.SetID("a")
		e.SetSubject("b")
		e.SetSource("/jobweaver/runjob")
		e.DataEncoded = []byte(`{"c":1}`)
		signed := []event.Event{e}
		keys.Sign(signed)
		e = signed[0]
		if err := keys.Check(e); err != nil {
			t.Fatalf("what was signed is refused: %v", err)
		}
		if others.Check(e) == nil {
			t.Fatal("another key's signature counts")
		}
		same := typ == e.Type() && id == e.ID() && subject == e.Subject() && bytes.Equal(data, e.DataEncoded)
		other := e.Clone()
		other.SetType(typ)
		other.SetID(id)
		other.SetSubject(subject)
		other.DataEncoded = data
		if keys.Check(other) == nil && !same {
			t.Fatalf("a signature counts for %q %q %q %q", typ, id, subject, data)
		}
		guess := other.Clone()
		guess.SetExtension(jobevent.ExtSignature, signature)
		if keys.Check(guess) == nil && !(same && strings.Contains(signature, jobevent.Extension(e, jobevent.ExtSignature))) {
			t.Fatalf("%q is taken for a signature", signature)
		}
	})
}

// FuzzParse checks that a file of keys is read or refused, and that an error contains no part of a key.
func FuzzParse(f *testing.F) {
	f.Add("")
	f.Add(newSecret() + "\n" + newSecret())
	f.Add(prefix + "AAAA\n\n" + prefix + "!")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := parse(text)
		lines := strings.Fields(text)
		if err == nil && (len(keys) == 0 || len(keys) != len(lines)) {
			t.Fatalf("%d keys of %d lines", len(keys), len(lines))
		}
		for _, line := range lines {
			if secret := strings.TrimPrefix(line, prefix); err != nil && len(secret) > 8 && strings.Contains(err.Error(), secret) {
				t.Fatalf("the error has a key in it: %v", err)
			}
		}
	})
}
