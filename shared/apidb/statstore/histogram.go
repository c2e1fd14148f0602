package statstore

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/internal/latency"
)

// A histogram counts durations in buckets that grow by a fifth: bucket i ends at 64 µs · 2^(i/4). So a percentile is
// accurate to a tenth of its value.
type histogram []int64

func (h *histogram) add(bucket int32, n int64) {
	if bucket > latency.Last {
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

// encode returns the stored form: the counts one after another.
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
			return // truncated
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

// quantile returns the middle of the bucket that contains the quantile; 0 without durations.
func (h histogram) quantile(q float64) time.Duration {
	rank := max(int64(math.Ceil(q*float64(h.count()))), 1)
	for bucket, n := range h {
		if rank -= n; rank <= 0 {
			return time.Duration(float64(latency.First) * math.Exp2((float64(bucket)-0.5)/latency.PerDoubling))
		}
	}
	return 0
}

// Bar counts the durations above half of UpTo, up to UpTo. The first bar of all has those from zero on.
type Bar struct {
	UpTo  time.Duration
	Count int64
}

// bars sums up the buckets of each doubling, from the shortest duration to the longest.
func (h histogram) bars() (bars []Bar) {
	for bucket, n := range h {
		doubling := (bucket + latency.PerDoubling - 1) / latency.PerDoubling
		upTo := latency.First << min(doubling, 47) // those above end after 285 years
		switch last := len(bars) - 1; {
		case last >= 0 && bars[last].UpTo == upTo:
			bars[last].Count += n
		case last >= 0 || n > 0:
			bars = append(bars, Bar{upTo, n})
		}
	}
	return bars
}

func (t *tally) addTimes(of int32) {
	t.waited.add(of&latency.None, 1)
	t.took.add(of>>8&latency.None, 1)
	t.ran.add(of>>16&latency.None, 1)
}
