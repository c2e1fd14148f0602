package apidb

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
)

// A histogram counts durations in buckets that grow by a fifth: bucket i ends at 64 µs · 2^(i/4). So a
// percentile is right to a tenth, whatever its size.
type histogram []int64

const (
	firstBucket = 64 * time.Microsecond
	perDoubling = 4
	lastBucket  = 200  // ends after 2,000 years
	noBucket    = 0xff // nothing to count
)

func bucketOf(d time.Duration) int32 {
	if d <= firstBucket {
		return 0
	}
	return min(int32(math.Ceil(perDoubling*math.Log2(float64(d)/float64(firstBucket)))), lastBucket)
}

func (h *histogram) add(bucket int32, n int64) {
	if bucket > lastBucket {
		return
	}
	for len(*h) <= int(bucket) {
		*h = append(*h, 0)
	}
	(*h)[bucket] += n
}

func (h *histogram) addAll(other histogram) {
	for bucket, n := range other {
		if n != 0 {
			h.add(int32(bucket), n)
		}
	}
}

// encode is what is stored: the counts one after another.
func (h histogram) encode() []byte {
	stored := make([]byte, 0, len(h)+binary.MaxVarintLen64)
	for _, n := range h {
		stored = binary.AppendVarint(stored, n)
	}
	return stored
}

func (h *histogram) addEncoded(stored []byte) {
	for bucket := int32(0); len(stored) > 0; bucket++ {
		n, size := binary.Varint(stored)
		if size <= 0 {
			return // broken off
		}
		if n != 0 {
			h.add(bucket, n)
		}
		stored = stored[size:]
	}
}

func (h histogram) count() (n int64) {
	for _, of := range h {
		n += of
	}
	return n
}

// quantile is the middle of the bucket in which it lies; 0 of nothing.
func (h histogram) quantile(q float64) time.Duration {
	rank := max(int64(math.Ceil(q*float64(h.count()))), 1)
	for bucket, n := range h {
		if rank -= n; rank <= 0 {
			return time.Duration(float64(firstBucket) * math.Exp2((float64(bucket)-0.5)/perDoubling))
		}
	}
	return 0
}

// times are the buckets of a job that has ended, in one number: from acceptance to start (bits 0–7, of a
// first attempt only: before a later one others ran), from acceptance to end (8–15), from start to end
// (16–23). Clocks differ, so nothing takes less than nothing. It is accepted when its id was made.
func times(word *StatusWord) int32 {
	waited, took, ran := int32(noBucket), int32(noBucket), int32(noBucket)
	finishedAt := word.UpdatedAt
	if word.FinishedAt != nil {
		finishedAt = *word.FinishedAt
	}
	if acceptedAt, known := idtime.Of(word.JobID); known {
		took = bucketOf(finishedAt.Sub(acceptedAt))
		if word.StartedAt != nil && word.Attempt == 1 {
			waited = bucketOf(word.StartedAt.Sub(acceptedAt))
		}
	}
	if word.StartedAt != nil {
		ran = bucketOf(finishedAt.Sub(*word.StartedAt))
	}
	return waited | took<<8 | ran<<16
}

func (t *tally) addTimes(of int32) {
	t.waited.add(of&noBucket, 1)
	t.took.add(of>>8&noBucket, 1)
	t.ran.add(of>>16&noBucket, 1)
}
