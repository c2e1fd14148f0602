package logstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestLogLinesAreKeptOnceAndInOrder(t *testing.T) {
	t.Parallel()
	h := open(t)
	job := h.Accept(t, apidbtest.NewJob())
	log := func(attempt, first int, text string) jobevent.AttemptLog {
		return jobevent.AttemptLog{JobID: job.JobID, Attempt: attempt, FirstLine: first,
			Lines: []jobevent.LogLine{{At: time.Now(), Level: "INFO", Text: text}}}
	}
	for range 2 {
		if err := h.Logs.Add(t.Context(), []jobevent.AttemptLog{log(2, 0, "c"), log(1, 1, "b"), log(1, 0, "a"), log(1, 0, "a")}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(attempt int) (texts string) {
		lines, _, err := h.Logs.List(t.Context(), apidb.Everyone, job.JobID, logstore.Filter{Attempt: attempt, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			texts += fmt.Sprint(line.Attempt) + line.Text
		}
		return texts
	}
	if all, second := read(0), read(2); all != "1a1b2c" || second != "2c" {
		t.Errorf("all %q, attempt 2 %q", all, second)
	}
	if err := h.Logs.Add(t.Context(), []jobevent.AttemptLog{log(0, 0, "x")}); !errors.Is(err, jobevent.ErrInvalid) {
		t.Errorf("attempt 0: %v", err)
	}
}
