package jobstore

import (
	"context"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
)

// answeredFor reports whether one of the jobs has an audit entry.
func answeredFor(jobs []NewJob) bool {
	for i := range jobs {
		if jobs[i].Audit != nil {
			return true
		}
	}
	return false
}

// enterSubmits inserts the audit entries of the new jobs: one for each request, whatever the number of its jobs.
func enterSubmits(ctx context.Context, q *gen.Queries, jobs []NewJob, accepted []Accepted) error {
	var entries []*apidb.Audit
	made := map[*apidb.Audit]*apidb.Audit{} // a copy, since the transaction may run again
	for i := range jobs {
		of := jobs[i].Audit
		if of == nil || !accepted[i].New() && !accepted[i].Merged() {
			continue
		}
		if made[of] == nil {
			entry := *of
			entry.Owner = jobs[i].Request.OwnerID // that of the job to run again, if the installation asked for it
			made[of] = &entry
			entries = append(entries, &entry)
		}
		made[of].JobIDs = append(made[of].JobIDs, accepted[i].JobID)
	}
	if len(entries) == 0 {
		return nil
	}
	return apidb.InsertAudit(ctx, q, entries)
}
