package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// Without maximums, one owner's schedules and operations could slow down the others.
func TestSchedulesAndOperationsOfAnOwnerAreLimited(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) {
		cfg.Auth, cfg.Limits.ScheduleLimit, cfg.Limits.OperationLimit = gateway.AuthOn, 2, 2
	})
	acme, other := h.as("acme", "operate"), h.as("other", "operate")
	schedule := func(c *client, method, path, name string) *response {
		body := fmt.Sprintf(`{"name": %q, "cron": "@daily", "job": {"jobType": "MAIL", "payload": 1}}`, name)
		return c.do(method, path, body, "Content-Type", "application/json")
	}
	schedule(acme, http.MethodPost, "/api/schedules", "a").want(http.StatusCreated)
	schedule(acme, http.MethodPut, "/api/schedules/b", "b").want(http.StatusCreated)
	schedule(acme, http.MethodPost, "/api/schedules", "c").wantError(apierror.InvalidStateTransition)
	schedule(acme, http.MethodPut, "/api/schedules/c", "c").wantError(apierror.InvalidStateTransition)
	schedule(acme, http.MethodPut, "/api/schedules/b", "b").want(http.StatusOK)
	schedule(other, http.MethodPost, "/api/schedules", "c").want(http.StatusCreated)
	acme.do(http.MethodDelete, "/api/schedules/a", "").want(http.StatusNoContent)
	schedule(acme, http.MethodPost, "/api/schedules", "c").want(http.StatusCreated)

	operation := func(c *client, key string) *response {
		const body = `{"command": "cancel", "filter": {"queue": "default"}, "idempotencyKey": %q}`
		return c.post("/api/operations", fmt.Sprintf(body, key))
	}
	operation(acme, "1").want(http.StatusAccepted)
	operation(acme, "2").want(http.StatusAccepted)
	operation(acme, "3").wantError(apierror.RateLimited)
	operation(acme, "2").want(http.StatusOK)
	operation(other, "1").want(http.StatusAccepted)
	h.sql(`update operations set finished_at = now(), status = 'COMPLETED', walked = true
		where idempotency_key = '1'`, nil)
	operation(acme, "3").want(http.StatusAccepted)
}

// The metrics cover all owners, so an owner must not read them.
func TestOnlyTheInstallationReadsTheMetricsOfAllOwners(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	h.as("acme", "admin").get("/metrics").wantError(apierror.Forbidden)
	if got := string(h.as("", "read").get("/metrics").want(http.StatusOK).body); !strings.Contains(got, "jobweaver") {
		t.Errorf("it shows %.200s", got)
	}
}
