// Package sealing encrypts the content of jobs, so that databases and topics never have it in plain. A function without
// the keys carries sealed values like any other JSON or text.
//
// Why few functions have the keys: docs/decisions/security.md#the-keyset-stays-with-the-functions-that-open-values
package sealing

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/reload"
)

// Setting is the name of the setting for the file of keys.
const Setting = "ENCRYPTION_KEYSET_FILE"

// Config is the setting.
type Config struct {
	File string `envconfig:"ENCRYPTION_KEYSET_FILE" desc:"Tink keyset (jobweaver keyset create) that seals payloads, outputs, errors and log lines; empty: nothing is sealed"`
}

// Why a value does not open.
var (
	ErrNoKey   = errors.New("it is sealed with a key that this process does not have")
	ErrAltered = errors.New("it is sealed and does not open: it was altered, or moved from another place")
)

// Sealer seals and opens values. A nil Sealer seals nothing, and opens only values that were never sealed.
type Sealer struct{ keys *reload.Files[keys] }

// New reads the keys of a file, and again whenever it changes. It returns nil if no file is set. An error begins with
// the setting's name.
func New(cfg Config) (*Sealer, error) {
	if cfg.File == "" {
		return nil, nil
	}
	files, err := reload.New(Setting, parse, cfg.File)
	if err != nil {
		return nil, err
	}
	return &Sealer{files}, nil
}

// Base64 without padding; strict, so that a value has one form only.
var encoding = base64.RawURLEncoding.Strict()

// Seal returns a JSON string that opens with the key only, and at this place only. It returns nil for nil.
func (s *Sealer) Seal(at Place, plain json.RawMessage) json.RawMessage {
	if s == nil || plain == nil {
		return plain
	}
	return append(s.append([]byte{'"'}, at, plain), '"')
}

// SealText is Seal for a text. An empty text stays empty.
func (s *Sealer) SealText(at Place, plain string) string {
	if s == nil || plain == "" {
		return plain
	}
	return string(s.append(nil, at, []byte(plain)))
}

func (s *Sealer) append(to []byte, at Place, plain []byte) []byte {
	sealed, err := s.keys.Get().aead.Encrypt(plain, at.name())
	if err != nil {
		panic("seal a value: " + err.Error()) // only for a value that is larger than any memory
	}
	to = append(append(make([]byte, 0, len(to)+jobevent.SealedSize(len(plain))+1), to...), jobevent.SealedPrefix...)
	return encoding.AppendEncode(to, sealed)
}

// Open returns the value that was sealed at this place. It returns a value that was never sealed unchanged. The errors
// are ErrNoKey and ErrAltered.
func (s *Sealer) Open(at Place, value json.RawMessage) (json.RawMessage, error) {
	if len(value) == 0 || value[0] != '"' || !bytes.HasPrefix(value[1:], []byte(jobevent.SealedPrefix)) {
		return value, nil
	}
	if value[len(value)-1] != '"' {
		return nil, ErrAltered
	}
	return s.open(at, value[1+len(jobevent.SealedPrefix):len(value)-1])
}

// OpenText is Open for a text.
func (s *Sealer) OpenText(at Place, value string) (string, error) {
	if !jobevent.IsSealed(value) {
		return value, nil
	}
	plain, err := s.open(at, []byte(value[len(jobevent.SealedPrefix):]))
	return string(plain), err
}

// prefixSize is the length of Tink's prefix of a sealed value: a version and the id of the key.
const prefixSize = 5

func (s *Sealer) open(at Place, value []byte) ([]byte, error) {
	if s == nil {
		return nil, ErrNoKey
	}
	// The decoder ignores line ends, so with them the value would have a second form.
	sealed, err := encoding.AppendDecode(make([]byte, 0, encoding.DecodedLen(len(value))), value)
	if err != nil || len(sealed) < prefixSize || bytes.ContainsAny(value, "\r\n") {
		return nil, ErrAltered
	}
	held := s.keys.Get()
	plain, err := held.aead.Decrypt(sealed, at.name())
	if err == nil {
		if plain == nil {
			plain = []byte{}
		}
		return plain, nil
	}
	if id := binary.BigEndian.Uint32(sealed[1:]); sealed[0] == 1 && !held.ids[id] {
		return nil, fmt.Errorf("%w: key %d", ErrNoKey, id)
	}
	return nil, ErrAltered
}

// Stale reports whether a value should be sealed anew: it is not sealed, or not with the key of new values. Without
// keys no value is stale.
func (s *Sealer) Stale(value json.RawMessage) bool {
	if s == nil {
		return false
	}
	body, ok := bytes.CutPrefix(value, []byte(`"`+jobevent.SealedPrefix))
	if !ok {
		return true
	}
	const shown = 8 // characters that hold the prefix
	head := make([]byte, encoding.DecodedLen(shown))
	if len(body) < shown {
		return false
	}
	n, err := encoding.Decode(head, body[:shown])
	return err == nil && n >= prefixSize && binary.BigEndian.Uint32(head[1:]) != s.keys.Get().primary
}
