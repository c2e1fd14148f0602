package sealing

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/xaesgcm"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// XAES-256-GCM derives a key for each value from a nonce of 192 bits, so random nonces never repeat. The 96 bits of
// AES-GCM are used up after 2³² values, which may be those of one day.
var template = aead.XAES256GCM192BitNonceKeyTemplate

// Keyset is a file of keys that can be changed.
type Keyset struct {
	path    string
	manager *keyset.Manager
}

// Key is one key of a keyset.
type Key struct {
	ID      uint32
	Primary bool // seals new values; other keys only open old ones
}

// CreateKeyset makes a file with one key, readable by its owner only. It never overwrites a file.
func CreateKeyset(path string) (*Keyset, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("create keyset: %s is there already", path)
	}
	k := &Keyset{path, keyset.NewManager()}
	id, err := k.manager.Add(template())
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return k, k.promote(id)
}

// OpenKeyset reads a file.
func OpenKeyset(path string) (*Keyset, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read keyset: %w", err)
	}
	handle, err := read(text)
	if err != nil {
		return nil, fmt.Errorf("read keyset %s: %w", path, err)
	}
	return &Keyset{path, keyset.NewManagerFromHandle(handle)}, nil
}

// Add makes another key, which only opens values until it is promoted.
func (k *Keyset) Add() (id uint32, err error) {
	if id, err = k.manager.Add(template()); err != nil {
		return 0, fmt.Errorf("make key: %w", err)
	}
	return id, k.write()
}

// Promote makes a key the one that seals new values.
func (k *Keyset) Promote(id uint32) error {
	if _, err := k.find(id); err != nil {
		return fmt.Errorf("promote key %d: %w", id, err)
	}
	return k.promote(id)
}

func (k *Keyset) promote(id uint32) error {
	if err := k.manager.SetPrimary(id); err != nil {
		return fmt.Errorf("promote key %d: %w", id, err)
	}
	return k.write()
}

// Remove deletes a key. Values that are still sealed with it no longer open.
func (k *Keyset) Remove(id uint32) error {
	key, err := k.find(id)
	if err == nil && key.Primary {
		err = errors.New("it seals new values: promote another key first")
	}
	if err != nil {
		return fmt.Errorf("remove key %d: %w", id, err)
	}
	if err := k.manager.Delete(id); err != nil {
		return fmt.Errorf("remove key %d: %w", id, err)
	}
	return k.write()
}

func (k *Keyset) find(id uint32) (Key, error) {
	keys, err := k.Keys()
	if err != nil {
		return Key{}, err
	}
	at := slices.IndexFunc(keys, func(key Key) bool { return key.ID == id })
	if at < 0 {
		return Key{}, errors.New("no such key: jobweaver keyset list shows them")
	}
	return keys[at], nil
}

// Keys lists the keys, the oldest first.
func (k *Keyset) Keys() ([]Key, error) {
	handle, err := k.manager.Handle()
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	info := handle.KeysetInfo()
	keys := make([]Key, 0, handle.Len())
	for _, key := range info.GetKeyInfo() {
		keys = append(keys, Key{ID: key.GetKeyId(), Primary: key.GetKeyId() == info.GetPrimaryKeyId()})
	}
	return keys, nil
}

// write replaces the file as a whole, so that no process reads half of it and no key in use is lost.
func (k *Keyset) write() (err error) {
	handle, err := k.manager.Handle()
	if err != nil {
		return fmt.Errorf("write keyset: %w", err)
	}
	part, err := os.CreateTemp(filepath.Dir(k.path), filepath.Base(k.path)+".*.part") // 0600
	if err != nil {
		return fmt.Errorf("write keyset: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write keyset: %w", errors.Join(err, os.Remove(part.Name())))
		}
	}()
	var text bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&text)); err != nil {
		return errors.Join(err, part.Close())
	}
	text.WriteByte('\n')
	_, err = part.Write(text.Bytes())
	if err := errors.Join(err, part.Sync(), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), k.path)
}

// keys is the part of a keyset that a Sealer uses.
type keys struct {
	aead    tink.AEAD
	primary uint32
	ids     map[uint32]bool // of the keys that can open values
}

// parse reads texts[0], the content of the only file.
func parse(texts [][]byte) (keys, error) {
	handle, err := read(texts[0])
	if err != nil {
		return keys{}, err
	}
	cipher, err := aead.New(handle)
	if err != nil {
		return keys{}, errKeyset
	}
	info := handle.KeysetInfo()
	k := keys{aead: cipher, primary: info.GetPrimaryKeyId(), ids: map[uint32]bool{}}
	for i := range handle.Len() {
		if entry, err := handle.Entry(i); err == nil && entry.KeyStatus() == keyset.Enabled {
			k.ids[entry.KeyID()] = true
		}
	}
	return k, nil
}

// The library's own errors may repeat the content of the file.
var (
	errKeyset = errors.New("it is not a Tink keyset in JSON; jobweaver keyset create makes one")
	errCipher = errors.New("its keys must be as jobweaver keyset makes them: XAES-256-GCM, 192-bit nonces, Tink's prefix")
)

func read(text []byte) (*keyset.Handle, error) {
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(text)))
	if err != nil {
		return nil, errKeyset
	}
	if _, err := handle.Primary(); err != nil {
		return nil, errKeyset
	}
	for i := range handle.Len() {
		entry, err := handle.Entry(i)
		if err != nil {
			return nil, errKeyset
		}
		ours, ok := entry.Key().Parameters().(*xaesgcm.Parameters)
		if !ok || ours.Variant() != xaesgcm.VariantTink || ours.SaltSizeInBytes() != 12 {
			return nil, errCipher
		}
	}
	return handle, nil
}
