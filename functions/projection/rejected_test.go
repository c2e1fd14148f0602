package projection_test

import (
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// rejection returns the report of a rejected record, as the host of ingest publishes it.
func rejection(t *testing.T, offset int64, value string) jobevent.Item {
	t.Helper()
	e, err := funchost.Rejected("ingest", &sarama.ConsumerMessage{
		Topic: jobevent.TopicCreated, Offset: offset, Value: []byte(value), Timestamp: time.Now(),
		Headers: []*sarama.RecordHeader{{Key: []byte("who"), Value: []byte("stranger")}},
	}, jobevent.Item{}, nil, "undecodable: no event")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (h *fixture) rejected() []rejectedstore.Rejected {
	h.t.Helper()
	found, _, err := h.store.Rejected.List(h.t.Context(), rejectedstore.Filter{Limit: 100})
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

func TestARejectedRecordIsStoredOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.accept().Subject()
	e := rejection(t, 7, "garbage\x00")
	h.handle(e, status(t, id, 3, jobstate.Completed), rejection(t, 8, "more"))
	h.handle(rejection(t, 7, "garbage\x00"), e)
	found := h.rejected()
	if len(found) != 2 || h.job(id).Status != jobstate.Completed {
		t.Fatalf("kept are %+v", found)
	}
	whole, err := h.store.Rejected.Get(t.Context(), found[1].ID)
	if found[0].Record.Offset == 7 {
		whole, err = h.store.Rejected.Get(t.Context(), found[0].ID)
	}
	if err != nil || whole.Function != "ingest" || string(whole.Record.Value) != "garbage\x00" || !whole.Whole {
		t.Errorf("kept is %+v (%v)", whole, err)
	}
}

// Most records of the topic are dead letters of jobs, and events that Knative could not deliver. Other programs may
// write to it, too.
func TestOnlyRejectedRecordsOfTheTopicAreHandled(t *testing.T) {
	t.Parallel()
	h := open(t)
	host := h.Host()
	for typ, skips := range map[string]bool{
		jobevent.TypeRejected: false, jobevent.TypeDeadLettered: true, jobevent.TypeStatus: true, "": true,
	} {
		if host.Skips(jobevent.TopicDeadLetter, typ) != skips || host.Skips(jobevent.TopicStatus, typ) {
			t.Errorf("of type %q", typ)
		}
	}
}

// Projection stores a forged rejected record if it can read the record, and refuses it otherwise. A forged record must
// not hold projection up.
func TestAForgedRejectedRecordIsStoredOrRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	forge := func(data any) jobevent.Item {
		e, err := jobevent.New(jobevent.TypeRejected, jobevent.Meta{Function: "x\x00" + strings.Repeat("y", 1000), ID: "forged"}, data)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	h.handle(forge(map[string]any{
		"topic": "a\x00b", "partition": -7, "offset": -9, "reason": "\x00", "headers": map[string]string{"\x00": "\x00"}, "value": nil,
	}))
	if found := h.rejected(); len(found) != 1 || found[0].Whole {
		t.Errorf("kept are %+v", found)
	}
	for _, data := range []any{[]int{}, map[string]any{}, map[string]any{"topic": 5}} {
		if _, err := h.Handle(t.Context(), []jobevent.Item{forge(data)}); err == nil {
			t.Errorf("%v is taken", data)
		}
	}
}

func TestOldRejectedRecordsAreDeleted(t *testing.T) {
	t.Parallel()
	h := open(t)
	f, err := projection.New(projection.Config{Rejected: 48 * time.Hour}, h.own.Store)
	if err != nil {
		t.Fatal(err)
	}
	h.handle(rejection(t, 1, "old"), rejection(t, 2, "new"))
	h.exec("update rejected_records set rejected_at = now() - interval '49 hours' where record_offset = 1")
	if err := f.Expire(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if found := h.rejected(); len(found) != 1 || found[0].Record.Offset != 2 {
		t.Errorf("left are %+v", found)
	}
	if _, err := projection.New(projection.Config{Rejected: time.Hour}, nil); err == nil || !strings.HasPrefix(err.Error(), "RETAIN_REJECTED: ") {
		t.Errorf("got %v", err)
	}
}
