package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apikey"
)

func TestTheLogHasTheSendersOfRefusedRequests(t *testing.T) {
	t.Parallel()
	h, log := openLogged(t, func(cfg *gateway.Config) {
		cfg.Auth = gateway.AuthOn
		cfg.Limits.AuthFailureLimit = 5
		withHooks(t, twoHooks)(cfg)
	})
	unknown, reader := apikey.New(), h.as("acme", "read")
	guesser := &client{t: t, base: h.base, key: unknown.Reveal()}
	h.get("/api/jobs").want(http.StatusUnauthorized)
	for range 2 {
		guesser.get("/api/jobs").want(http.StatusUnauthorized)
		h.post("/api/jobs/callback", `{}`, "X-Callback-Secret", "no-secret").want(http.StatusUnauthorized)
	}
	h.post("/hooks/tokens", `{}`, "X-Token", "no-secret").want(http.StatusUnauthorized)
	guesser.get("/api/jobs").want(http.StatusTooManyRequests)
	reader.post("/api/jobs", plainJob).want(http.StatusForbidden)
	reader.get("/api/jobs?nothing=1").want(http.StatusBadRequest)
	h.stop()

	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	find := func(parts ...string) {
		t.Helper()
		for _, line := range lines {
			found := strings.Contains(line, `msg="requests refused" address=127.0.0.1 `)
			for _, part := range parts {
				found = found && strings.Contains(line, part+" ")
			}
			if found {
				return
			}
		}
		t.Errorf("no line has %q:\n%s", parts, log)
	}
	find("errorCode=API.UNAUTHORIZED", "tries=6", "method=POST", "path=/hooks/:name")
	find("errorCode=API.RATE_LIMITED", "tries=1", "path=/api/jobs", "key="+unknown.ID())
	find("errorCode=API.FORBIDDEN", "tries=1", "method=POST", "path=/api/jobs", "actor=key:"+reader.id())
	if n := strings.Count(log.String(), "requests refused"); n != 3 {
		t.Errorf("%d lines:\n%s", n, log)
	}
	for _, secret := range []string{unknown.Reveal(), reader.key, "no-secret"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}
