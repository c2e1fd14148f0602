package jobstore_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// What lists of 200,000 jobs cost:
//
//	go test ./shared/apidb/jobstore -run '^$' -bench Lists
func BenchmarkLists(b *testing.B) {
	s := open(b)
	fillOwned(b, s, 200_000, 10_000)
	s.Exec(b, "update jobs set error_code = 'NET', snapshot = $1 where status = 'FAILED'",
		`{"lastError":{"errorCode":"NET","message":"no route to host"}}`)
	s.Exec(b, "vacuum analyze jobs")
	failed, everyone, acme := []jobstate.Status{jobstate.Failed}, apidb.Everyone, apidb.OwnerOf("acme")
	for _, c := range []struct {
		name  string
		owner apidb.Owner
		f     jobstore.Filter
	}{
		{"all", everyone, jobstore.Filter{Limit: 50}},
		{"an owner's", acme, jobstore.Filter{Limit: 50}},
		{"failed", everyone, jobstore.Filter{Filter: apibody.Filter{Status: failed}, Limit: 50}},
		{"an owner's failed", acme, jobstore.Filter{Filter: apibody.Filter{Status: failed}, Limit: 50}},
		{"of an ordering key", everyone, jobstore.Filter{Filter: apibody.Filter{OrderingKey: "k"}, Limit: 50}},
		{"of a code", everyone, jobstore.Filter{Filter: apibody.Filter{ErrorCode: "NET"}, Limit: 50}},
		{"of a tag that none has", everyone, jobstore.Filter{Filter: apibody.Filter{Tag: "none"}, Limit: 50}},
		{"an owner's of a tag that none has", acme, jobstore.Filter{Filter: apibody.Filter{Tag: "none"}, Limit: 50}},
		{"found by name", everyone, jobstore.Filter{Filter: apibody.Filter{Search: "NET"}, Limit: 50}},
		{"found by id", everyone, jobstore.Filter{Filter: apibody.Filter{Search: uuid.NewString()}, Limit: 50}},
		{"found by message", everyone, jobstore.Filter{Filter: apibody.Filter{Search: "to host"}, Limit: 50}},
		{"not found", everyone, jobstore.Filter{Filter: apibody.Filter{Search: "none"}, Limit: 50}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Jobs.ListJobs(b.Context(), c.owner, c.f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := s.Jobs.CountDead(b.Context(), everyone, jobstore.Filter{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, filter := range []apibody.Filter{{Tag: "none"}, {Search: "none"}, {ErrorCode: "none"}} {
		b.Run("operation", func(b *testing.B) {
			for b.Loop() {
				op, _, err := s.Operations.InsertOperation(b.Context(), operationstore.NewOperation{
					ID: uuid.Must(uuid.NewV7()), By: "me", Whose: everyone, Request: apibody.Operation{Command: jobevent.CommandRetry, Filter: &filter},
				})
				for more := true; more && err == nil; {
					_, more, err = s.Operations.Operate(b.Context(), op.ID)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
