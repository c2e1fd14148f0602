package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const bootstrapAgain = time.Second

// openGate has everybody say who they are, where AUTH is on. An error begins with the setting that is wrong.
func (f *Function) openGate() error {
	tokens, err := access.NewIssuer(f.cfg.OIDC)
	if err != nil {
		return err
	}
	if _, ok := apikey.Parse(f.cfg.BootstrapKey.Reveal()); f.cfg.BootstrapKey.IsSet() && !ok {
		return errors.New("BOOTSTRAP_API_KEY: is no API key, as jobweaver keys generate prints one")
	}
	if f.cfg.Auth == AuthOn {
		f.gate = &access.Gate{Keys: access.NewKeyring(f.store.keys), Tokens: tokens}
	}
	if f.cfg.Auth != AuthOn || !f.cfg.BootstrapKey.IsSet() {
		close(f.settled)
	}
	return nil
}

// ready: the database answers, and who comes with the key of the setting would be let in. Otherwise the first to call
// a new installation, as soon as it says that it is ready, would be sent away.
func (f *Function) ready(ctx context.Context) error {
	select {
	case <-f.settled:
		err := f.store.Ping(ctx)
		if err == nil {
			f.unserved.Note(ctx, nil)
		}
		return err
	case <-ctx.Done():
		return errors.New("BOOTSTRAP_API_KEY is not kept yet")
	}
}

// keepBootstrapKey makes sure that the key of the setting is there, as soon as the database answers.
func (f *Function) keepBootstrapKey(ctx context.Context) {
	key, ok := apikey.Parse(f.cfg.BootstrapKey.Reveal())
	if !ok {
		return
	}
	defer close(f.settled)
	hash := key.Hash()
	trouble := telemetry.Trouble{What: "keep BOOTSTRAP_API_KEY"}
	for {
		bounded, cancel := context.WithTimeout(ctx, edge.RequestPatience)
		kept, err := f.store.keys.EnsureAdmin(bounded, key.ID(), hash[:], keystore.Bootstrap)
		cancel()
		trouble.Note(ctx, err)
		switch {
		case err == nil && !key.Matches(kept.Hash):
			telemetry.Logger(ctx).Error("BOOTSTRAP_API_KEY lets nobody in: another key has its id", "key", key)
			return
		case err == nil && !kept.Live(time.Now()):
			telemetry.Logger(ctx).Warn("BOOTSTRAP_API_KEY lets nobody in: it was revoked", "key", key)
			return
		case err == nil:
			f.forget(key.ID())
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(bootstrapAgain):
		}
	}
}
