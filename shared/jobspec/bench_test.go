package jobspec

import (
	"strings"
	"testing"
)

func BenchmarkBatch(b *testing.B) {
	const jobs = 500
	one := `{"jobType":"SIMULATION","payload":{"steps":[{"type":"COMPUTE","iterations":1}]}}`
	body := []byte(`{"jobs":[` + strings.Repeat(one+",", jobs-1) + one + `]}`)
	b.ReportAllocs()
	for b.Loop() {
		raws, err := DecodeBatch(body)
		if err != nil {
			b.Fatal(err)
		}
		for _, raw := range raws {
			if _, err := Decode(raw); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*jobs), "ns/job")
}
