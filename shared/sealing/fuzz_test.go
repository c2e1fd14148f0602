package sealing_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// FuzzOpen checks that a sealed value with any changes opens as the original value or not at all, and that a value with
// the prefix of sealed values is never returned as a plain one.
func FuzzOpen(f *testing.F) {
	_, path := newKeys(f)
	s, at := newSealer(f, path), sealing.OfJob(job, sealing.Payload)
	plain := json.RawMessage(`{"steps":[{"type":"LOG","message":"hi"}]}`)
	sealed := s.Seal(at, plain)
	f.Add([]byte{}, 0, 0)
	f.Add([]byte("A"), 20, 1)
	f.Add([]byte("\n"), 30, 0)
	f.Add([]byte("="), len(sealed)-1, 0)
	f.Add([]byte(`\u0041`), 12, 1)
	f.Add([]byte(`"sealed:v1:AQ"`), 0, len(sealed))
	// The arguments replace n bytes, from an index on, by others.
	f.Fuzz(func(t *testing.T, with []byte, from, n int) {
		from = min(max(from, 0), len(sealed))
		n = min(max(n, 0), len(sealed)-from)
		altered := append(append(bytes.Clone(sealed[:from]), with...), sealed[from+n:]...)
		got, err := s.Open(at, altered)
		if bytes.Equal(altered, sealed) {
			if err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("it does not open: %v", err)
			}
			return
		}
		if bytes.HasPrefix(altered, []byte(`"`+jobevent.SealedPrefix)) {
			if err == nil || got != nil || !errors.Is(err, sealing.ErrAltered) && !errors.Is(err, sealing.ErrNoKey) {
				t.Fatalf("altered to %q it opens as %q: %v", altered, got, err)
			}
			return
		}
		if err != nil || !bytes.Equal(got, altered) {
			t.Fatalf("%q was never sealed and became %q: %v", altered, got, err)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	_, path := newKeys(b)
	s, at := newSealer(b, path), sealing.OfJob(job, sealing.Payload)
	var none *sealing.Sealer
	plain := json.RawMessage(`{"steps":[{"type":"LOG","message":"hi"}]}`)
	sealed := s.Seal(at, plain)
	for name, s := range map[string]*sealing.Sealer{"with": s, "without": none} {
		b.Run("seal "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Seal(sealing.OfJob(job, sealing.Payload), plain)
			}
		})
		b.Run("open "+name, func(b *testing.B) {
			b.ReportAllocs()
			value := sealed
			if s == nil {
				value = plain
			}
			for b.Loop() {
				if _, err := s.Open(sealing.OfJob(job, sealing.Payload), value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
