package statstore

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestTheOldestOfOneMillisecondIsTheLeastID(t *testing.T) {
	t.Parallel()
	first := uuid.MustParse("01a20061-ca11-75a5-8759-82d0be0b9747")
	second := uuid.MustParse("01a20061-ca11-7a2d-bdcd-6ae23f9b3c65")
	for _, order := range [][]uuid.UUID{{first, second}, {second, first}} {
		b := newStatsBuilder(time.Now())
		for _, id := range order {
			b.addCount(&jobCount{Status: jobstate.Pending, N: 1, Oldest: id})
		}
		if *b.Oldest != first {
			t.Errorf("of %v the oldest is %s", order, b.Oldest)
		}
	}
}

func TestFailuresAreOfTheirSpan(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 30, 30, 0, time.UTC)
	b := newStatsBuilder(now)
	for age, code := range map[time.Duration]string{
		0: "NOW", 59 * time.Minute: "HOUR", time.Hour: "DAY", 23 * time.Hour: "DAY", 24 * time.Hour: "MONTH",
		29 * 24 * time.Hour: "MONTH", 30 * 24 * time.Hour: "OLDER",
	} {
		b.addTally(&gen.TalliesOfRow{
			Grain: "minute", At: now.Add(-age), JobType: code, What: "FAILED", N: 1, Times: []int32{0x202020}, Codes: []string{code},
		})
	}
	s := b.done()
	for _, span := range []struct {
		name     string
		failures Failures
		latency  Latency
		want     []string
	}{
		{"hour", s.Failures.Hour, s.Latencies.Hour, []string{"HOUR", "NOW"}},
		{"day", s.Failures.Day, s.Latencies.Day, []string{"DAY", "HOUR", "NOW"}},
		{"month", s.Failures.Month, s.Latencies.Month, []string{"DAY", "MONTH", "HOUR", "NOW"}},
	} {
		var types, codes []string
		var failed int64
		for _, of := range span.failures.Types {
			types, failed = append(types, of.JobType), failed+of.Failed
		}
		for _, of := range span.failures.Codes {
			codes = append(codes, of.Code)
		}
		if !slices.Equal(types, span.want) || !slices.Equal(codes, span.want) || span.latency.Ran.Count != failed {
			t.Errorf("%s: %v, %v, times of %d", span.name, types, codes, span.latency.Ran.Count)
		}
	}
}

func TestATallyCountsTheMostFrequentErrorCodesSeparately(t *testing.T) {
	t.Parallel()
	var of, read codes
	for i := range mostCodes + 30 {
		of.add(string(rune('A'+i)), int64(100+i))
	}
	of.add("", 7)
	read.addEncoded(of.encode())
	read.addEncoded(of.encode())
	read.addEncoded([]byte("{"))
	if len(read) != mostCodes+1 || read[string(rune('A'+mostCodes+29))] != 2*(100+mostCodes+29) {
		t.Errorf("%d codes: %v", len(read), read)
	}
	var before, after int64
	for _, n := range of {
		before += n
	}
	for _, n := range read {
		after += n
	}
	if after != 2*before {
		t.Errorf("%d failures became %d", 2*before, after)
	}
}
