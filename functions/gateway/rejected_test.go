package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

type rejectedRecord struct {
	ID                         uuid.UUID
	Function, Topic, Reason    string
	Partition, Offset          *int64
	Bytes                      int
	Truncated                  bool
	RejectedAt                 time.Time
	RecordedAt, RedrivenAt     *time.Time
	RedriveRefusal, RedrivenBy *string
	Key, Value                 *recordBytes
	Headers                    []struct {
		Name  string
		Value *recordBytes
	}
}

type recordBytes struct{ Encoding, Data string }

// reject stores a record as projection does when ingest has rejected it.
func (h *fixture) reject(offset int64, change ...func(*jobevent.Rejected)) rejectedstore.Rejected {
	h.t.Helper()
	now := time.Now()
	record := jobevent.Rejected{
		Topic: jobevent.TopicCreated, Partition: 1, Offset: offset, Reason: "undecodable: no event", Value: []byte("\xff garbage"),
		Key: []byte("k"), RecordedAt: &now, RecordHeaders: []jobevent.RecordHeader{
			{Key: []byte("who"), Value: []byte("stranger")}, {Key: []byte("who"), Value: []byte("\xfe")}, {Key: []byte("empty")},
		},
	}
	for _, c := range change {
		c(&record)
	}
	r := rejectedstore.NewRecord("ingest", record, uuid.New(), now)
	if _, err := h.store.Rejected.Add(h.t.Context(), []rejectedstore.Rejected{r}); err != nil {
		h.t.Fatal(err)
	}
	return r
}

func (c *client) rejected(query string) (offsets []int64) {
	c.t.Helper()
	for cursor := ""; ; {
		var page struct {
			Rejected   []rejectedRecord
			NextCursor *string
		}
		c.get("/api/rejected?"+query+cursor).ok(http.StatusOK, &page)
		for _, r := range page.Rejected {
			offsets = append(offsets, *r.Offset)
		}
		if page.NextCursor == nil {
			return offsets
		}
		cursor = "&cursor=" + *page.NextCursor
	}
}

// redriven collects the records that a gateway redrives.
type redriven struct {
	mu      sync.Mutex
	records []jobevent.Rejected
	err     error
}

func (r *redriven) redrive(_ context.Context, record jobevent.Rejected) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.records = append(r.records, record)
	}
	return r.err
}

func (r *redriven) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *redriven) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.records)
}

func openRedriving(t *testing.T, change ...func(*gateway.Config)) (*fixture, *redriven) {
	t.Helper()
	to := &redriven{}
	return openWith(t, func(cfg *gateway.Config) {
		cfg.Redrive = to.redrive
		for _, c := range change {
			c(cfg)
		}
	}), to
}

// refusedRedrive returns why the record at a path cannot be redriven.
func (c *client) refusedRedrive(at string) string {
	c.t.Helper()
	r := c.post(at+"/redrive", "")
	r.wantError(apierror.InvalidStateTransition)
	return r.error().Message
}

func TestRejectedRecordsAreListedByPagesAndFilters(t *testing.T) {
	t.Parallel()
	h := open(t)
	for i := range int64(5) {
		h.reject(i, func(r *jobevent.Rejected) {
			if i == 3 {
				r.Topic = jobevent.TopicCommand
			}
		})
	}
	now := time.Now().UTC().Add(time.Hour).Format(time.RFC3339)
	for query, want := range map[string]string{
		"": "[4 3 2 1 0]", "limit=2": "[4 3 2 1 0]", "topic=job-command": "[3]", "function=ingest&topic=job-created&limit=1": "[4 2 1 0]",
		"function=outcome": "[]", "redriven=false": "[4 3 2 1 0]", "redriven=true": "[]", "since=" + now: "[]", "until=" + now: "[4 3 2 1 0]",
	} {
		if got := fmt.Sprint(h.rejected(query)); got != want {
			t.Errorf("%q lists %s, want %s", query, got, want)
		}
	}
	for query, path := range map[string]string{
		"limit=201": "limit", "cursor=x": "cursor", "redriven=yes": "redriven", "since=now": "since", "status=x": "status", "topic=": "topic",
	} {
		h.get("/api/rejected?"+query).wantError(apierror.InvalidJobRequest, path)
	}
}

func TestRejectedRecordIsShownWithAllDetails(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := h.reject(7)
	var got rejectedRecord
	h.get("/api/rejected/"+r.ID.String()).ok(http.StatusOK, &got)
	if got.Function != "ingest" || got.Topic != jobevent.TopicCreated || *got.Partition != 1 || *got.Offset != 7 || got.RedriveRefusal != nil ||
		*got.Key != (recordBytes{"text", "k"}) || *got.Value != (recordBytes{"base64", "/yBnYXJiYWdl"}) || got.RecordedAt == nil {
		t.Errorf("shown is %+v", got)
	}
	if len(got.Headers) != 3 || got.Headers[0].Name != "who" || *got.Headers[0].Value != (recordBytes{"text", "stranger"}) ||
		got.Headers[1].Value.Encoding != "base64" || got.Headers[2].Value != nil {
		t.Errorf("headers are %+v", got.Headers)
	}
	bare := h.reject(-1, func(r *jobevent.Rejected) {
		r.Partition, r.Key, r.Value, r.RecordHeaders = -1, nil, nil, []jobevent.RecordHeader{}
	})
	var none rejectedRecord
	h.get("/api/rejected/"+bare.ID.String()).ok(http.StatusOK, &none)
	if none.Partition != nil || none.Offset != nil || none.Key != nil || none.Value != nil || none.Headers == nil || len(none.Headers) != 0 {
		t.Errorf("shown is %+v", none)
	}
	for _, id := range []string{uuid.NewString(), "nonsense"} {
		h.get("/api/rejected/" + id).wantError(apierror.NotFound)
		h.post("/api/rejected/"+id+"/redrive", "").wantError(apierror.NotFound)
		h.do(http.MethodDelete, "/api/rejected/"+id, "").wantError(apierror.NotFound)
	}
}

func TestRejectedRecordIsRedrivenOnceAndAudited(t *testing.T) {
	t.Parallel()
	h, to := openRedriving(t, func(cfg *gateway.Config) { cfg.Auth, cfg.AuditReads = gateway.AuthOn, true })
	admin := h.as("", "admin")
	r := h.reject(7)
	at := "/api/rejected/" + r.ID.String()
	to.fail(errors.New("broker is away"))
	away := admin.post(at+"/redrive", "")
	if away.wantError(apierror.Unavailable); away.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	to.fail(fmt.Errorf("it is no CloudEvent: %w", jobevent.ErrInvalid))
	if refusal := admin.refusedRedrive(at); !strings.Contains(refusal, "no CloudEvent") {
		t.Errorf("got %s", refusal)
	}
	to.fail(nil)
	var got rejectedRecord
	admin.post(at+"/redrive", "").ok(http.StatusOK, &got)
	if got.RedrivenAt == nil || !strings.HasPrefix(*got.RedrivenBy, "key:") || got.RedriveRefusal == nil {
		t.Errorf("answered %+v", got)
	}
	if refusal := admin.refusedRedrive(at); !strings.Contains(refusal, *got.RedrivenBy) {
		t.Errorf("redriven twice: %s", refusal)
	}
	if to.count() != 1 || string(to.records[0].Value) != "\xff garbage" || len(to.records[0].RecordHeaders) != 3 || string(to.records[0].Key) != "k" {
		t.Errorf("put on topics is %+v", to.records)
	}
	admin.get(at).ok(http.StatusOK, nil)
	admin.do(http.MethodDelete, at, "").ok(http.StatusOK, nil)
	admin.get(at).wantError(apierror.NotFound)
	var words []string
	for _, e := range admin.log("") {
		words = append(words, inWords(e))
		var about struct {
			Function, Topic   string
			Partition, Offset int64
		}
		if e.Action != "rejected.read" && (json.Unmarshal(e.Details, &about) != nil || about.Offset != 7 || about.Topic != jobevent.TopicCreated) {
			t.Errorf("%s is entered with %s", e.Action, e.Details)
		}
	}
	resource := " rejected/" + r.ID.String() + " 0"
	if got, want := strings.Join(words, ","), "rejected.discard"+resource+",rejected.read"+resource+",rejected.redrive"+resource; got != want {
		t.Errorf("the log has %s, want %s", got, want)
	}
}

func TestRecordThatMustNotBeRedrivenIsRefused(t *testing.T) {
	t.Parallel()
	h, to := openRedriving(t)
	offset := int64(100)
	week := time.Now().Add(-jobevent.MaxRetention - time.Minute)
	for name, c := range map[string]struct {
		change func(*jobevent.Rejected)
		want   string
	}{
		"one that was cut":                {func(r *jobevent.Rejected) { r.Truncated = true }, "too large"},
		"one of the release before":       {func(r *jobevent.Rejected) { r.RecordHeaders = nil }, "headers"},
		"one of a foreign topic":          {func(r *jobevent.Rejected) { r.Topic = "payments" }, "payments is not a topic"},
		"one of a queue that is no more":  {func(r *jobevent.Rejected) { r.Topic = "run-job.gone" }, "not a topic"},
		"one of the dead letters":         {func(r *jobevent.Rejected) { r.Topic = jobevent.TopicDeadLetter }, "no function"},
		"one of a compacted topic":        {func(r *jobevent.Rejected) { r.Topic = jobevent.TopicStatus }, "later status"},
		"a heartbeat":                     {func(r *jobevent.Rejected) { r.Topic = jobevent.TopicHeartbeat }, "moment"},
		"one that functions may not know": {func(r *jobevent.Rejected) { r.RecordedAt = &week }, "older than 7 days"},
	} {
		offset++
		at := "/api/rejected/" + h.reject(offset, c.change).ID.String()
		var shown rejectedRecord
		h.get(at).ok(http.StatusOK, &shown)
		refusal := h.refusedRedrive(at)
		if shown.RedriveRefusal == nil || !strings.Contains(*shown.RedriveRefusal, c.want) || !strings.HasSuffix(refusal, *shown.RedriveRefusal) {
			t.Errorf("%s: shown %v, refused with %s", name, shown.RedriveRefusal, refusal)
		}
	}
	h.post("/api/rejected/"+h.reject(9, func(r *jobevent.Rejected) { r.Topic = "run-job.mail" }).ID.String()+"/redrive", "").ok(http.StatusOK, nil)
	if to.count() != 1 {
		t.Errorf("%d records were put on topics", to.count())
	}
}

// Rejected records concern all owners.
func TestOnlyAnAdminOfTheInstallationSeesRejectedRecords(t *testing.T) {
	t.Parallel()
	h, to := openRedriving(t, func(cfg *gateway.Config) { cfg.Auth = gateway.AuthOn })
	id := h.reject(1).ID.String()
	boss := h.as("", "admin")
	for _, c := range []*client{h.as("acme", "admin"), h.as("", "operate", "read"), h.as("acme", "submit")} {
		c.get("/api/rejected").wantError(apierror.Forbidden)
		c.get("/api/rejected/" + id).wantError(apierror.Forbidden)
		c.post("/api/rejected/"+id+"/redrive", "").wantError(apierror.Forbidden)
		c.do(http.MethodDelete, "/api/rejected/"+id, "").wantError(apierror.Forbidden)
	}
	boss.get("/api/rejected", "X-Owner-Id", "acme").wantError(apierror.Forbidden)
	(&client{t: t, base: h.base}).get("/api/rejected").wantError(apierror.Unauthorized)
	if got := boss.rejected(""); len(got) != 1 || to.count() != 0 {
		t.Errorf("left are %v, redriven %d", got, to.count())
	}
}
