package gateway

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// chaos F2: the poller looks every 50 ms, also while the database refuses it.
func TestWhoWaitsForAnEndFloodsNoLogWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		ctx, stop := context.WithCancel(telemetry.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&out, nil))))
		back := time.Now().Add(150 * time.Second)
		e := newEndings(func(_ context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
			if time.Now().Before(back) {
				return nil, errors.New("refused")
			}
			return ids, nil
		})
		go e.run(ctx)
		e.wait(ctx, uuid.New())
		stop()
		<-e.closing
		if time.Now().Before(back) {
			t.Error("the wait ended while the database was away")
		}
		if lines := strings.Count(out.String(), "\n"); lines != 4 {
			t.Errorf("logged %d lines in 150 s, want its begin, two reminders and its end: %s", lines, out.String())
		}
	})
}
