package statusstore_test

import (
	"testing"

	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// BenchmarkEnds applies the ends of jobs, a batch of a hundred at a time.
func BenchmarkEnds(b *testing.B) {
	withCallback := func(job *jobstore.NewJob) { job.Request.CallbackURL = "https://example.com/ended" }
	for _, c := range []struct {
		name   string
		status jobstate.Status
		change func(*jobstore.NewJob)
	}{
		{"of completed jobs", jobstate.Completed, func(*jobstore.NewJob) {}},
		{"of failed jobs", jobstate.Failed, func(*jobstore.NewJob) {}},
		{"of jobs with a callbackUrl", jobstate.Completed, withCallback},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := apidbtest.New(b)
			const jobs = 100
			for b.Loop() {
				b.StopTimer()
				accept, ends := make([]jobstore.NewJob, jobs), make([]statusstore.PublishedStatus, jobs)
				for i := range accept {
					accept[i] = apidbtest.NewJob()
					c.change(&accept[i])
					ends[i] = apidbtest.Status(accept[i].JobID, 5, c.status, apidbtest.OfAttempt(1))
				}
				if _, err := f.Jobs.InsertJobs(b.Context(), accept); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if n, err := f.Statuses.ApplyStatuses(b.Context(), ends); err != nil || n != jobs {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*jobs), "µs/job")
		})
	}
}
