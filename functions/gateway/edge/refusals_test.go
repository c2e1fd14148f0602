package edge_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// An attacker must not fill the log: not by many requests, and not from many addresses.
func TestAMinuteOfRefusalsHasABoundedNumberOfLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		ctx, stop := context.WithCancel(telemetry.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&log, nil))))
		refusals, ended := edge.NewRefusals(), make(chan struct{})
		go func() { refusals.Run(ctx); close(ended) }()
		note := func(address, message string) {
			c, _ := gin.CreateTestContext(httptest.NewRecorder())
			c.Request = httptest.NewRequest("GET", "/api/jobs", nil)
			c.Request.RemoteAddr = address
			c.Set("traceId", uuid.New())
			refusals.Note(c, edge.NewErrorBody(c, apierror.New(apierror.Unauthorized, "%s", message)))
		}
		for i := range 1000 {
			note("192.0.2.1:4711", "no")
			note(fmt.Sprintf("[2001:db8:0:%x::1]:1", i), strings.Repeat("x", 10_000))
			note(fmt.Sprintf("[2001:db8:0:1::%x]:1", i), "of one network")
		}
		<-time.After(time.Minute)
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 101 || log.Len() > 101*600 {
			t.Errorf("%d lines of %d bytes", len(lines), log.Len())
		}
		for _, want := range []string{
			`address=192.0.2.1 actor="" errorCode=API.UNAUTHORIZED tries=1000 `, `address=2001:db8:0:1::/64 actor="" errorCode=API.UNAUTHORIZED tries=1001 `,
			`msg="requests of further addresses refused" tries=901`,
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %s", want)
			}
		}
		log.Reset()
		<-time.After(time.Minute)
		synctest.Wait()
		if log.Len() > 0 {
			t.Errorf("a minute without a refusal logged %s", &log)
		}
		note("192.0.2.1:4711", "no")
		stop()
		<-ended
		if n := strings.Count(log.String(), "tries=1 "); n != 1 {
			t.Errorf("the end logged %q", &log)
		}
	})
}
