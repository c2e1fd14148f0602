package jobstore_test

import (
	"testing"

	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
)

// BenchmarkAccept accepts jobs with keys, and so by JobInsertMany.
func BenchmarkAccept(b *testing.B) {
	for _, c := range []struct {
		name        string
		jobs        int
		callbackURL string
	}{
		{"one", 1, ""},
		{"a hundred", 100, ""},
		{"a hundred with a callbackUrl", 100, "https://example.com/ended"},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := apidbtest.New(b)
			for b.Loop() {
				batch := make([]jobstore.NewJob, c.jobs)
				for i := range batch {
					job := apidbtest.NewJob()
					job.Request.IdempotencyKey, job.RequestHash = job.JobID.String(), []byte("hash")
					job.Request.CallbackURL = c.callbackURL
					batch[i] = job
				}
				if _, err := f.Jobs.InsertJobs(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*c.jobs), "µs/job")
		})
	}
}
