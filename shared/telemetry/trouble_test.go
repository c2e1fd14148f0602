package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

type withField struct{ error }

func (withField) LogFields() []any { return []any{"stack", "here"} }

func logged(t *testing.T) (context.Context, func() []string) {
	t.Helper()
	var out strings.Builder
	ctx := telemetry.WithLogger(t.Context(), slog.New(slog.NewTextHandler(&out, nil)))
	return ctx, func() []string {
		return regexp.MustCompile(`msg="?([^"=]*[^"= ])"? `).FindAllString(out.String(), -1)
	}
}

// An outage must not fill the log.
func TestAnOutageIsLoggedWhenItBeginsOnceAMinuteAndWhenItEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logged(t)
		trouble := telemetry.Trouble{What: "look"}
		for range 2 {
			trouble.Note(ctx, nil)
			for range 150 * 20 { // every 50 ms
				trouble.Note(ctx, withField{errors.New("refused")})
				<-time.After(50 * time.Millisecond)
			}
			if !trouble.Ongoing() {
				t.Error("there is no outage")
			}
			trouble.Note(ctx, nil)
		}
		if trouble.Ongoing() {
			t.Error("the outage has not ended")
		}
		begins, still, ends := `msg="failing; retrying until it works" `, `msg="still failing" `, `msg="works again" `
		want := []string{begins, still, still, ends, begins, still, still, ends}
		if got := lines(); !slices.Equal(got, want) {
			t.Errorf("logged %q, want %q", got, want)
		}
	})
}

// Occasional errors among successes are one outage.
func TestAnOutageEndsOnlyAfterItsQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logged(t)
		trouble := telemetry.Trouble{What: "consume", Quiet: 5 * time.Second}
		for range 10 {
			trouble.Note(ctx, errors.New("refused"))
			<-time.After(time.Second)
			trouble.Note(ctx, nil)
		}
		if got := lines(); len(got) != 1 {
			t.Errorf("logged %q", got)
		}
		<-time.After(5 * time.Second)
		if trouble.Note(ctx, nil); trouble.Ongoing() || len(lines()) != 2 {
			t.Errorf("after the quiet: ongoing %t, logged %q", trouble.Ongoing(), lines())
		}
	})
}
