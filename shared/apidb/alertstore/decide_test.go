package alertstore

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// sent is a notice of an alert, in a minute of a run.
type sent struct {
	minute int
	state  jobspec.NoticeState
}

// naive writes what an alert has to send, from whether its threshold is reached in each minute. It looks at one firing
// after the other, and at the minutes in which each may be announced.
func naive(over []bool, quiet int) (all []sent) {
	last := -quiet
	for from := 0; from < len(over); from++ {
		if !over[from] {
			continue
		}
		until := from
		for until < len(over) && over[until] {
			until++
		}
		announced := false
		for at := max(from, last+quiet); at < until; at += quiet {
			all, last, announced = append(all, sent{at, jobspec.NoticeFiring}), at, true
		}
		if announced && until < len(over) {
			all = append(all, sent{until, jobspec.NoticeResolved})
		}
		from = until
	}
	return all
}

func TestAnAlertSendsTheNoticesOfTheNaiveModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		a := gen.Alert{Failures: 5, Percent: 50, QuietMinutes: int32(1 + r.IntN(12))}
		over, counts := make([]bool, 60), make([]Count, 60)
		for i := range over {
			if i > 0 && r.IntN(4) > 0 {
				counts[i] = counts[i-1]
			} else {
				counts[i] = Count{Failed: r.Int64N(10)}
				counts[i].Ended = counts[i].Failed + r.Int64N(10)
			}
			over[i] = counts[i].Failed >= 5 && counts[i].Failed >= counts[i].Ended-counts[i].Failed
		}
		var got []sent
		start := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
		for i, count := range counts {
			moved, notice := decide(a, count, start.Add(time.Duration(i)*time.Minute))
			a.FiringSince, a.Announced, a.AnnouncedAt = some(moved.firingSince), moved.announced, some(moved.announcedAt)
			if notice != "" {
				got = append(got, sent{i, notice})
			}
			if (a.FiringSince != nil) != over[i] {
				t.Fatalf("seed %d: in minute %d its state is %+v, and the threshold is reached: %v", seed, i, moved, over[i])
			}
		}
		if want := naive(over, int(a.QuietMinutes)); !slices.Equal(got, want) {
			t.Fatalf("seed %d, quiet for %d min, %v: sent %v, want %v", seed, a.QuietMinutes, over, got, want)
		}
	}
}
