package hooks

import (
	"errors"
	"net/http"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

type hookCounts struct {
	accepted, replayed, rejected int64
	last                         *client.HookRejection
}

// count counts a request by its result. A request that failed because of the installation, and that its sender repeats,
// does not count. hook is nil for an unknown name.
func (a *API) count(hook *Hook, replayed bool, err error) {
	if hook == nil {
		return
	}
	result := telemetry.HookAccepted
	var refused *apierror.Error
	switch {
	case errors.As(err, &refused) && refused.Status() < http.StatusInternalServerError:
		result = telemetry.HookRejected
	case err != nil:
		return
	case replayed:
		result = telemetry.HookReplayed
	}
	telemetry.HookRequest(hook.Name, result)
	a.mu.Lock()
	defer a.mu.Unlock()
	counts := a.counts[hook.Name]
	if counts == nil {
		counts = &hookCounts{}
		a.counts[hook.Name] = counts
	}
	switch result {
	case telemetry.HookRejected:
		counts.rejected++
		counts.last = &client.HookRejection{At: time.Now().UTC(), Message: refused.Message}
	case telemetry.HookReplayed:
		counts.replayed++
	default:
		counts.accepted++
	}
}
