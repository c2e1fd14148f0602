package keys

import (
	"context"
	"errors"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const bootstrapPause = time.Second // between two tries

// Bootstrap stores the key of BOOTSTRAP_API_KEY as soon as the database answers.
type Bootstrap struct {
	store   *keystore.Store
	keyring *access.Keyring
	key     *apikey.Key   // nil: there is nothing to do
	done    chan struct{} // closed when the key is stored or cannot be used, or if there is none
}

// ParseBootstrapKey reads the setting; nil: it is empty.
func ParseBootstrapKey(setting secret.Text) (*apikey.Key, error) {
	if !setting.IsSet() {
		return nil, nil
	}
	key, ok := apikey.Parse(setting.Reveal())
	if !ok {
		return nil, errors.New("BOOTSTRAP_API_KEY: is not an API key as jobweaver keys generate prints it")
	}
	return &key, nil
}

// NewBootstrap makes a Bootstrap of a key. It does nothing without a key, or without a keyring because authentication
// is off.
func NewBootstrap(key *apikey.Key, store *keystore.Store, keyring *access.Keyring) *Bootstrap {
	b := &Bootstrap{store: store, keyring: keyring, key: key, done: make(chan struct{})}
	if key == nil || keyring == nil {
		b.key = nil
		close(b.done)
	}
	return b
}

// Done is closed when Run has nothing left to do.
func (b *Bootstrap) Done() <-chan struct{} { return b.done }

// Run stores the key. It tries again until the database answers or ctx ends.
func (b *Bootstrap) Run(ctx context.Context) {
	if b.key == nil {
		return
	}
	defer close(b.done)
	hash := b.key.Hash()
	trouble := telemetry.Trouble{What: "keep BOOTSTRAP_API_KEY"}
	for {
		bounded, cancel := context.WithTimeout(ctx, edge.RequestPatience)
		kept, err := b.store.EnsureAdmin(bounded, b.key.ID(), hash[:], keystore.Bootstrap)
		cancel()
		trouble.Note(ctx, err)
		switch {
		case err == nil && !b.key.Matches(kept.Hash):
			telemetry.Logger(ctx).ErrorContext(ctx, "BOOTSTRAP_API_KEY is not valid: another key has its id", "key", b.key)
			return
		case err == nil && !kept.Live(time.Now()):
			telemetry.Logger(ctx).WarnContext(ctx, "BOOTSTRAP_API_KEY is not valid: it was revoked", "key", b.key)
			return
		case err == nil:
			b.keyring.Forget(b.key.ID())
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(bootstrapPause):
		}
	}
}
