package pgpool

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// renewal reads an address again for each new connection, since the file that it stands in, its password, and the
// files in its passfile, sslrootcert, sslcert and sslkey, may have changed. While one cannot be read or does not fit,
// what was read earlier stays.
type renewal struct {
	url    string
	answer answer

	mu     sync.Mutex
	good   *pgx.ConnConfig
	broken string // the error that was logged; empty: none
}

// Renewal returns the function that reads an address again before each new connection of a pool.
func Renewal(address string) func(context.Context, *pgx.ConnConfig) error {
	return (&renewal{url: address}).beforeConnect
}

// certificateSetting is the name of the certificate in an address, for the metric of its expiry.
const certificateSetting = "sslcert"

// beforeConnect is pgxpool's BeforeConnect; cfg is a copy of the pool's configuration.
func (r *renewal) beforeConnect(ctx context.Context, cfg *pgx.ConnConfig) error {
	now, source, err := read(r.url)
	if err == nil {
		err = r.answer.fill(ctx, source, now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.good, r.broken = now, ""
		if now.TLSConfig != nil && len(now.TLSConfig.Certificates) > 0 {
			tlsfiles.NoteExpiry(certificateSetting, now.TLSConfig.Certificates[0].Certificate)
		}
	case r.good == nil && errors.Is(err, errNoPassword):
		return err
	case err.Error() != r.broken:
		r.broken = err.Error()
		telemetry.Logger(ctx).WarnContext(ctx,
			"a file of the database's address, or its password, is not usable, the old content stays in use", "error", err)
	}
	if r.good != nil {
		fresh := r.good.Copy()
		cfg.Host, cfg.Port, cfg.Database = fresh.Host, fresh.Port, fresh.Database
		cfg.User, cfg.Password = fresh.User, fresh.Password
		cfg.TLSConfig, cfg.Fallbacks = fresh.TLSConfig, fresh.Fallbacks
	}
	return nil
}
