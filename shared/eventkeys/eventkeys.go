// Package eventkeys signs the events between functions and checks their signatures, so that a function knows that an
// event comes from another function and not from another client that reaches its address.
//
// Why: docs/decisions/security.md#network-policies-do-not-separate-functions-behind-knative
package eventkeys

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/reload"
)

const (
	setting = "EVENT_KEYS_FILE"
	prefix  = "whsec_"
	minKey  = 24 // bytes
	maxKey  = 64

	version       = "v1,"
	maxSignatures = 8
)

// The errors of Check.
var (
	errUnsigned = errors.New("event has no signature in " + jobevent.ExtSignature)
	errUnknown  = errors.New("event has no signature by a key of " + setting)
	errNames    = errors.New("event of a deleted job names another version than its id")
)

// Keys are the keys of a file: the first one signs, all verify. The file is read again when it changes.
type Keys struct{ files *reload.Files[[]*key] }

// Open reads the keys of a file, each on a line of its own: whsec_ and base64. No path, no keys: nil.
func Open(path string) (*Keys, error) {
	if path == "" {
		return nil, nil
	}
	files, err := reload.New(setting, func(texts [][]byte) ([]*key, error) { return parse(string(texts[0])) }, path)
	if err != nil {
		return nil, err
	}
	return &Keys{files}, nil
}

// parse returns errors that contain no part of a key.
func parse(text string) ([]*key, error) {
	lines := strings.Fields(text)
	if len(lines) == 0 {
		return nil, errors.New("has no key")
	}
	keys := make([]*key, len(lines))
	for i, line := range lines {
		encoded, found := strings.CutPrefix(line, prefix)
		secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if !found || err != nil || len(secret) < minKey || len(secret) > maxKey {
			return nil, fmt.Errorf("key %d of %d is not %s and %d to %d bytes of base64",
				i+1, len(lines), prefix, minKey, maxKey)
		}
		keys[i] = newKey(secret)
	}
	return keys, nil
}

// Sign sets each event's signature by the first key. The events must be the caller's own: their extensions change.
func (k *Keys) Sign(events []event.Event) {
	if k == nil || len(events) == 0 {
		return
	}
	first := k.files.Get()[0]
	var sum [sha256.Size]byte
	for i := range events {
		text := make([]byte, len(version), len(version)+44)
		copy(text, version)
		text = base64.StdEncoding.AppendEncode(text, first.sum(events[i], sum[:0]))
		if ctx, ok := events[i].Context.(*event.EventContextV1); ok && ctx.Extensions != nil {
			ctx.Extensions[jobevent.ExtSignature] = string(text) // SetExtension checks what is right by construction
			continue
		}
		events[i].SetExtension(jobevent.ExtSignature, string(text))
	}
}

// Check returns an error unless one of the keys has made one of the event's signatures. Without keys every event
// passes.
func (k *Keys) Check(e event.Event) error {
	if k == nil {
		return nil
	}
	signatures := strings.Fields(jobevent.Extension(e, jobevent.ExtSignature))
	if len(signatures) == 0 {
		return errUnsigned
	}
	if len(signatures) > maxSignatures {
		return errUnknown
	}
	var sum, given [sha256.Size]byte
	for _, key := range k.files.Get() {
		want := key.sum(e, sum[:0])
		for _, text := range signatures {
			encoded, found := strings.CutPrefix(text, version)
			if !found || len(encoded) != base64.StdEncoding.EncodedLen(sha256.Size) {
				continue
			}
			got, err := base64.StdEncoding.Strict().AppendDecode(given[:0], []byte(encoded))
			if err == nil && hmac.Equal(got, want) {
				return checkNames(e)
			}
		}
	}
	return errUnknown
}

// checkNames compares the version of a deleted event, which is outside the signature, with the signed id. How the job
// had ended (jobevent.EndOf) is outside the signature, too, and stands nowhere else: a writer to the topic can change
// it.
func checkNames(e event.Event) error {
	version := jobevent.Extension(e, jobevent.ExtVersion)
	if e.Type() == jobevent.TypeDeleted && !strings.HasSuffix(e.ID(), ".deleted"+version) {
		return errNames
	}
	return nil
}

// key is a secret and a pool of HMACs with it.
type key struct{ macs sync.Pool }

// mac is an HMAC and the room for what goes into it.
type mac struct {
	hash.Hash
	head []byte
}

const headMost = 4 << 10 // the buffer of a longer head is not kept

func newKey(secret []byte) *key {
	return &key{sync.Pool{New: func() any { return &mac{Hash: hmac.New(sha256.New, secret)} }}}
}

// sum appends the HMAC-SHA256 of the event's type, id, subject and data to out. Each part has its length before it, so
// two different events never have the same input.
func (k *key) sum(e event.Event, out []byte) []byte {
	m := k.macs.Get().(*mac)
	defer func() {
		if cap(m.head) <= headMost {
			k.macs.Put(m)
		}
	}()
	m.Reset()
	m.head = append(m.head[:0], "jobweaver event v1"...)
	for _, part := range [...]string{e.Type(), e.ID(), e.Subject()} {
		m.head = binary.BigEndian.AppendUint64(m.head, uint64(len(part)))
		m.head = append(m.head, part...)
	}
	m.head = binary.BigEndian.AppendUint64(m.head, uint64(len(e.DataEncoded)))
	m.Write(m.head) // hash.Hash never fails
	m.Write(e.DataEncoded)
	return m.Sum(out)
}
