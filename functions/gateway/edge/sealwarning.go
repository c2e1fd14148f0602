package edge

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// PayloadsSealed is why a filter by payload is refused where there is a keyset.
const PayloadsSealed = "cannot be a filter: the keyset of ENCRYPTION_KEYSET_FILE seals payloads, " +
	"which no search can read"

// SealWarning logs that sealed values cannot be opened, at most once a second: with a wrong keyset every request would
// log it.
type SealWarning struct {
	sometimes rate.Sometimes
}

// NewSealWarning makes a warning for all endpoints of a gateway.
func NewSealWarning() *SealWarning {
	return &SealWarning{sometimes: rate.Sometimes{Interval: time.Second}}
}

// Log logs the names of the members that stay sealed.
func (w *SealWarning) Log(ctx context.Context, members []string) {
	w.sometimes.Do(func() {
		telemetry.Logger(ctx).WarnContext(ctx, "cannot open sealed values: wrong key, or altered", "members", members)
	})
}
