package interplay

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/jobweaver/jobweaver/shared/client"
)

var viewRules = []Rule{
	{
		"views", "Rises with each transition", "openapi.yaml, version",
		(*facts).checkViews,
	},
	{
		"etag", "The response is 304 if the job has not changed", "openapi.yaml, If-None-Match",
		func(f *facts, found func(_, _, _ string)) {
			f.each(func(j *client.Job) {
				if status := f.Unchanged[j.JobID]; status != 304 && status != 0 {
					found(f.name(j.JobID), "304 for a job that has not changed", fmt.Sprint(status))
				}
			})
		},
	},
	{
		"filters", "`errorCode` is the code of the last failure, even if the job completed later", "docs/scheduling.md, Queries",
		(*facts).checkFilters,
	},
	{
		"statistics", "All counts of jobs are of the instant `asOf`, so they add up.", "openapi.yaml, getStats",
		func(f *facts, found func(_, _, _ string)) {
			if len(f.Counts) > 0 && !countsAgree(f.Record) {
				found(f.Owner, "the counts of the list", fmt.Sprint(f.Counts))
			}
		},
	},
	{
		"dead groups", "Count FAILED jobs by job type and error code", "openapi.yaml, listDeadJobGroups",
		func(f *facts, found func(_, _, _ string)) {
			if f.Dead != nil && !deadAgree(f.Record) {
				found(f.Owner, "the failures of the list", fmt.Sprint(f.Dead))
			}
		},
	},
	{
		"deleted", "A COMPLETED, FAILED or CANCELLED job is deleted with its log.", "openapi.yaml, deleteJob",
		func(f *facts, found func(_, _, _ string)) {
			for _, id := range f.Remaining {
				found(f.name(id), "everything that has ended can be deleted", "it is still there")
			}
		},
	},
	{
		"answered", "The server failed; its log has the trace id.", "docs/errors.md, API.INTERNAL",
		func(f *facts, found func(_, _, _ string)) {
			for _, a := range f.Asked {
				if a.Status == 500 {
					found(fmt.Sprintf("step %d: %s %s", a.Step, a.Method, a.Path), "an answer, whatever the request is", string(a.Answer)+" to "+string(a.Body))
				}
			}
		},
	},
	{
		"understood", "The result is checked like a new request", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, text := range f.Troubles {
				if slices.ContainsFunc(refusals, func(r string) bool { return strings.Contains(text, r) }) {
					continue
				}
				found(f.Owner, "an answer that the contract has for such a request", text)
			}
		},
	},
}

// refusals are what the docs have of requests that are wrong only because of what another step has done.
var refusals = []string{
	"is being removed and takes no new jobs", // a queue
	"the batch is closed",                    // to an event
	"it goes with neither runAt nor delayMs", // to a run-again of a job with throttle
	"the start that throttle has reserved",   // to a PATCH
	"payload.acts is not a known field",      // to a change of the job of another type that a submit policy chose
	"payload.data is not a known field",      // likewise
	"there is no job with this id",           // it was deleted
	"is not one of the queues",
	"must be later than now", // an expiresAt that passed while the request waited for others
	"must not be over",       // the same, of a flow or a batch
}

func (f *facts) checkViews(found func(_, _, _ string)) {
	f.each(func(j *client.Job) {
		l := f.Listed[j.JobID]
		if l == nil {
			if s := f.spec(j.JobID); s == nil || !s.Foreign {
				found(f.name(j.JobID), "the list of its owner has it", "it has not")
			}
			return
		}
		if l.Status != j.Status || l.Version != j.Version || l.Attempt != j.Attempt || l.RetryCount != j.RetryCount {
			found(f.name(j.JobID), fmt.Sprintf("the list shows what GET shows: %s, version %d, attempt %d", j.Status, j.Version, j.Attempt),
				fmt.Sprintf("%s, version %d, attempt %d", l.Status, l.Version, l.Attempt))
		}
	})
	last := map[string]Seen{}
	for _, s := range f.Seen {
		before := last[s.Job]
		if s.Version < before.Version || s.Version == before.Version && s.Status != before.Status && s.Version > 0 {
			found(f.name(s.Job), fmt.Sprintf("a version above %d of %s", before.Version, before.Status), fmt.Sprintf("%d: %s", s.Version, s.Status))
		}
		last[s.Job] = s
	}
}

// checkFilters works out what each filter should have found.
func (f *facts) checkFilters(found func(_, _, _ string)) {
	for text, got := range f.Filters {
		q, err := url.ParseQuery(text)
		if err != nil {
			continue
		}
		f.each(func(j *client.Job) {
			if l := f.Listed[j.JobID]; l == nil {
				return
			}
			fits := true
			for name, values := range q {
				fits = fits && filterFits(j, name, values)
			}
			if fits != slices.Contains(got, j.JobID) {
				found(text, fmt.Sprintf("%s, %s, in it: %v", f.name(j.JobID), j.Status, fits), fmt.Sprint(!fits))
			}
		})
	}
}

func filterFits(j *client.Job, name string, values []string) bool {
	switch name {
	case "status":
		return slices.Contains(values, j.Status)
	case "tag":
		return slices.Contains(j.Tags, values[0])
	case "type":
		return j.JobType == values[0]
	case "queue":
		return j.Queue == values[0]
	case "orderingKey":
		return j.OrderingKey == values[0]
	case "batchId":
		return j.BatchID == values[0]
	case "errorCode":
		return code(j) == values[0]
	case "noErrorCode":
		return code(j) == ""
	case "payload":
		var p struct{ Steps []struct{ Type string } }
		_ = json.Unmarshal(j.Payload, &p)
		return len(p.Steps) > 1 && p.Steps[1].Type == "SLEEP"
	}
	return strings.Contains(name, "limit")
}
