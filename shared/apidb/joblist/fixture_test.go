package joblist_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/idtime"
	"github.com/jobweaver/jobweaver/shared/apidb/joblist"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// row is a job with all that conditions are about.
type row struct {
	id, trace        uuid.UUID
	owner            string
	jobType, queue   string
	tags             []string
	created, updated time.Time
	status           jobstate.Status
	orderingKey      *string
	code             *string
	message          string
	payload          string
	key              *string
	after            []uuid.UUID
	batch, fanOut    *uuid.UUID
}

var (
	began   = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	foreign = uuid.MustParse("11111111-2222-4333-8444-555555555555") // the trace of some jobs
	batch   = uuid.MustParse("22222222-2222-4333-8444-555555555555")
	fanOut  = uuid.MustParse("33333333-2222-4333-8444-555555555555")
)

// payloads are the payloads of jobs. A sealed one is a text.
var payloads = []string{
	`{"order": {"id": "A-17", "lines": [{"sku": "x"}, {"sku": "y", "amount": 12.50}]}, "vip": true}`,
	`{"order": {"id": "a-17", "lines": []}, "vip": false, "full name": "Ada: \"Ü\""}`, `{"order": {"id": 17, "note": null}}`,
	`{"order": {"id": 1.7e1}, "vip": "true"}`, `{"order": {"id": -0.0, "lines": 3}}`, `{"order": "none"}`, `{}`, `"sealed:AAAA"`, `[17]`, `null`,
}

// rows makes jobs of three owners with every combination of values, a tenth of a second apart.
func rows(n int) []row {
	random := rand.New(rand.NewPCG(1, 2))
	one := func(of ...string) *string {
		if s := of[random.IntN(len(of))]; s != "" {
			return &s
		}
		return nil
	}
	made := make([]row, n)
	for i := range made {
		at := began.Add(time.Duration(i) * 100 * time.Millisecond)
		id := idtime.First(at)
		id[6], id[8], id[14], id[15] = 0x70, 0x80, byte(i>>8), byte(i)
		j := row{
			id: id, trace: id, owner: *one("acme", "umbrella", "-"), jobType: *one("MAIL", "SMS"), queue: *one("default", "slow"),
			tags: []string{*one("red", "blue", "NET"), "all"}, created: at, updated: at.Add(time.Second), orderingKey: one("k", "l", ""),
			status: jobstate.All()[random.IntN(len(jobstate.All()))], key: one("", fmt.Sprint("key-", i/20)),
		}
		j.owner = strings.Trim(j.owner, "-")
		j.payload = payloads[random.IntN(len(payloads))]
		j.trace[15]-- // of the request, a moment earlier
		if random.IntN(4) == 0 {
			j.trace = foreign
		}
		if j.key != nil && slices.ContainsFunc(made[max(0, i-20):i], func(r row) bool {
			return r.owner == j.owner && r.key != nil && *r.key == *j.key
		}) {
			j.key = nil
		}
		if j.status == jobstate.Failed || random.IntN(3) == 0 {
			j.code, j.message = one("NET", "DISK", ""), *one("no Route to host", "too late")
		}
		if random.IntN(2) == 0 {
			j.batch = &batch
		}
		if random.IntN(3) == 0 {
			j.fanOut = &fanOut
		}
		if first := slices.IndexFunc(made[:i], func(r row) bool { return r.owner == j.owner }); first >= 0 && random.IntN(3) == 0 {
			j.after = []uuid.UUID{made[first].id}
		}
		switch i { // a search finds these in several sources
		case n / 2:
			j.trace, j.key = j.id, new(j.id.String())
		case n/2 + 1:
			j.key, j.code = new("NET"), new("NET")
		}
		made[i] = j
	}
	return made
}

// fill stores the jobs.
func fill(t *testing.T, pool *pgxpool.Pool, all []row) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), "alter table jobs set (autovacuum_enabled = off)"); err != nil {
		t.Fatal(err)
	}
	columns := strings.Fields(`job_id trace_id owner_id job_type queue tags created_at updated_at status version snapshot
		ordering_key error_code idempotency_key request_hash after_ids batch_id fan_out_id element payload spec`)
	_, err := pool.CopyFrom(t.Context(), pgx.Identifier{"jobs"}, columns, pgx.CopyFromSlice(len(all), func(i int) ([]any, error) {
		j := all[i]
		status := jobevent.Status{JobID: j.id}
		if j.code != nil {
			status.LastError = &jobevent.Error{ErrorCode: *j.code, Message: j.message}
		}
		snapshot, err := json.Marshal(status)
		var hash []byte
		if j.key != nil {
			hash = []byte("hash")
		}
		return []any{
			j.id, j.trace, j.owner, j.jobType, j.queue, j.tags, j.created, j.updated, string(j.status), 1, string(snapshot),
			j.orderingKey, j.code, j.key, hash, j.after, j.batch, j.fanOut, i, json.RawMessage(j.payload), json.RawMessage("{}"),
		}, err
	}))
	if err != nil {
		t.Fatal(err)
	}
}

// want is a condition, and the jobs that have it.
type want struct {
	name string
	set  func(*joblist.List)
	fits func(row) bool
}

// wanted has each condition at least once. Without its line here, TestEachConditionIsTried fails.
func wanted(all []row) []want {
	mid, last := all[len(all)/2], all[len(all)-1]
	first := all[slices.IndexFunc(all, func(r row) bool { return r.owner == "acme" })]
	keyed := all[slices.IndexFunc(all, func(r row) bool { return r.key != nil })]
	code, key, none := "NET", *keyed.key, "none"
	search := func(text string, by joblist.SearchBy) func(*joblist.List) {
		return func(l *joblist.List) { l.Search, l.By = text, by }
	}
	payload := func(condition string, in ...int) want {
		return want{"payload", func(l *joblist.List) { l.Payload = condition }, func(r row) bool { return slices.Contains(in, slices.Index(payloads, r.payload)) }}
	}
	named := func(text string) func(row) bool {
		return func(r row) bool { return is(r.key, text) || is(r.code, text) }
	}
	return []want{
		{"jobId", func(l *joblist.List) { l.JobID = &mid.id }, func(r row) bool { return r.id == mid.id }},
		{"status", func(l *joblist.List) { l.Status = []jobstate.Status{jobstate.Failed} }, func(r row) bool { return r.status == jobstate.Failed }},
		{"status", func(l *joblist.List) { l.Status = []jobstate.Status{jobstate.Completed, jobstate.Pending} }, func(r row) bool { return r.status == jobstate.Completed || r.status == jobstate.Pending }},
		{"type", func(l *joblist.List) { l.JobType = "SMS" }, func(r row) bool { return r.jobType == "SMS" }},
		{"queue", func(l *joblist.List) { l.Queue = "slow" }, func(r row) bool { return r.queue == "slow" }},
		{"tag", func(l *joblist.List) { l.Tag = "red" }, func(r row) bool { return slices.Contains(r.tags, "red") }},
		{"tagPrefix", func(l *joblist.List) { l.Tag = "re*" }, func(r row) bool { return slices.Contains(r.tags, "red") }},
		{"since", func(l *joblist.List) { l.Since = &mid.created }, func(r row) bool { return !r.created.Before(mid.created) }},
		{"until", func(l *joblist.List) { l.Until = &mid.created }, func(r row) bool { return r.created.Before(mid.created) }},
		{"acceptedBy", func(l *joblist.List) { l.AcceptedBy = &mid.created }, func(r row) bool { return !r.created.After(mid.created) }},
		{"endedSince", func(l *joblist.List) { l.EndedSince = &mid.updated }, func(r row) bool { return r.status.Terminal() && !r.updated.Before(mid.updated) }},
		{"endedUntil", func(l *joblist.List) { l.EndedUntil = &mid.updated }, func(r row) bool { return r.status.Terminal() && r.updated.Before(mid.updated) }},
		{"orderingKey", func(l *joblist.List) { l.OrderingKey = "k" }, func(r row) bool { return is(r.orderingKey, "k") }},
		{"errorCode", func(l *joblist.List) { l.ErrorCode = code }, func(r row) bool { return is(r.code, code) }},
		{"noErrorCode", func(l *joblist.List) { l.NoErrorCode = true }, func(r row) bool { return r.code == nil }},
		{"traceId", func(l *joblist.List) { l.TraceID = &foreign }, func(r row) bool { return r.trace == foreign }},
		{"traceId", func(l *joblist.List) { l.TraceID = &last.trace }, func(r row) bool { return r.trace == last.trace }},
		{"idempotencyKey", func(l *joblist.List) { l.IdempotencyKey = key }, func(r row) bool { return is(r.key, key) }},
		{"batchId", func(l *joblist.List) { l.BatchID = &batch }, func(r row) bool { return r.batch != nil }},
		{"fanOutId", func(l *joblist.List) { l.FanOutID = &fanOut }, func(r row) bool { return r.fanOut != nil }},
		{"after", func(l *joblist.List) { l.After = &first.id }, func(r row) bool { return slices.Contains(r.after, first.id) }},
		payload("order.id:A-17", 0), payload("order.id:17", 2, 3), payload("order.id:170e-1", 2, 3), payload("order.id:0", 4),
		payload("order.lines[1].amount:12.5", 0), payload("order.lines[0].sku:x", 0), payload("vip:true", 0, 3), payload("['full name']:Ada: \"Ü\"", 1),
		payload("order.note:null", 2), payload("order.lines:[]", 1), payload("order.id:1e999"), payload("order.id:NaN"), payload("[0]:17", 8), payload("none:null"),
		{"owner", func(l *joblist.List) { l.OwnerID = "acme" }, func(r row) bool { return r.owner == "acme" }},
		{"searchId", search(mid.id.String(), ""), func(r row) bool { return r.id == mid.id || r.trace == mid.id }},
		{"searchId", search(foreign.String(), ""), func(r row) bool { return r.trace == foreign }},
		{"searchName", search(code, joblist.ByName), named(code)},
		{"searchName", search(key, joblist.ByName), named(key)},
		{"searchText", search("ROUTE", joblist.ByText), func(r row) bool { return r.code != nil && strings.Contains(r.message, "Route") }},
		{"searchText", search("NET", joblist.ByText), func(r row) bool { return is(r.code, "NET") || slices.Contains(r.tags, "NET") }},
		{"searchText", search("LU", joblist.ByText), func(r row) bool { return slices.Contains(r.tags, "blue") }},
		{"searchText", search(none, joblist.ByText), func(row) bool { return false }},
	}
}

func is(value *string, text string) bool { return value != nil && *value == text }

// list returns the list with these conditions, and the jobs that it must have, newest first.
func list(owner apidb.Owner, all []row, conditions ...want) (joblist.List, []uuid.UUID) {
	l := joblist.List{Owner: owner, MostSeen: 1_000_000, Max: 1_000_000, Slack: time.Minute}
	for _, c := range conditions {
		c.set(&l)
	}
	ids := []uuid.UUID{}
	for _, r := range slices.Backward(all) {
		if owner.Sees(r.owner) && !slices.ContainsFunc(conditions, func(c want) bool { return !c.fits(r) }) {
			ids = append(ids, r.id)
		}
	}
	return l, ids
}

var owners = []apidb.Owner{apidb.Everyone, apidb.OwnerOf("acme"), apidb.OwnerOf("")}

// combinations yields each pair of conditions that can be combined, and each alone, for each owner.
func combinations(all []row, yield func(name string, owner apidb.Owner, conditions ...want)) {
	each := wanted(all)
	for _, owner := range owners {
		whose := cmp.Or(owner.ID(), fmt.Sprint("all: ", owner.IsEveryone()))
		yield(whose, owner)
		for i, a := range each {
			yield(whose+" "+a.name, owner, a)
			for _, b := range each[i+1:] {
				if a.name != b.name && !(strings.HasPrefix(a.name, "search") && strings.HasPrefix(b.name, "search")) {
					yield(whose+" "+a.name+" "+b.name, owner, a, b)
				}
			}
		}
	}
}
