package jobevent

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
)

func TestMurmur2AgreesWithTheJavaClient(t *testing.T) {
	t.Parallel()
	// Vectors of Kafka's own UtilsTest.
	for in, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107,
	} {
		if got := int32(murmur2([]byte(in))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestRoutingKeyLandsOnItsPartition(t *testing.T) {
	t.Parallel()
	for p := range int32(MaxRunPartitions) {
		for _, partitions := range []int32{RunPartitions, p + 1, p + 2, 2*p + 7, MaxRunPartitions} {
			if got := PartitionOf(RoutingKey(p), partitions); p < partitions && got != p {
				t.Errorf("key %q lands on %d of %d, want %d", RoutingKey(p), got, partitions, p)
			}
		}
		if key := RoutingKey(p); !regexp.MustCompile(`^[\w-]{8}$`).MatchString(key) {
			t.Errorf("key %q is not plain text", key)
		}
	}
}

func TestEveryTypeButSubmitHasATopicOfTheList(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, topic := range Topics([]string{"default", "mail"}) {
		names[topic.Name] = true
	}
	if !names["run-job.mail"] {
		t.Error("no topic for queue mail")
	}
	if types := Types(); len(types) != len(topicOfType)+1 || !slices.IsSorted(types) {
		t.Errorf("the types are %q", types)
	}
	for _, typ := range Types() {
		e, err := New(typ, Meta{Function: "test", ID: "1"}, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		topic, err := e.Topic()
		if again, _ := TopicOf(e.Event()); err != nil || !names[topic] || again != topic {
			t.Errorf("TopicOf(%s) = %q, %v", typ, topic, err)
		}
	}
	if _, err := TopicOf(event.New()); !errors.Is(err, ErrInvalid) {
		t.Errorf("event without type: %v", err)
	}
}

// The event may arrive before the status with the end, or without it.
func TestADeletedEventHasTheEndOfTheJob(t *testing.T) {
	t.Parallel()
	e, err := NewDeleted(Meta{Function: "test", JobID: uuid.New()}, 7)
	if err != nil {
		t.Fatal(err)
	}
	if end, err := EndOf(e); end != nil || err != nil {
		t.Errorf("without an end: %+v, %v", end, err)
	}
	want := End{Status: "FAILED", At: time.Date(2026, 11, 22, 1, 2, 3, 4000, time.UTC), Attempt: 3, ErrorCode: "A.B"}
	SetEnd(&e, want)
	if err := e.Event().Validate(); err != nil {
		t.Fatal(err)
	}
	if end, err := EndOf(e); err != nil || end == nil || *end != want {
		t.Errorf("got %+v, %v", end, err)
	}
	for _, bad := range []struct{ name, text string }{
		{extEndedAs, "RUNNING"}, {extEndedAt, "now"}, {extAttempt, "-1"}, {extErrorOf, "A\x00"}, {extErrorOf, "\xff"},
		{extEndedAt, "9999-12-31T23:59:59-23:59"}, {extEndedAt, "0000-01-01T00:00:00+23:59"},
	} {
		broken := e.Event()
		broken.SetExtension(bad.name, bad.text)
		if end, err := EndOf(ItemOf(broken)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s %q: %+v, %v", bad.name, bad.text, end, err)
		}
	}
}

func TestADeletedEventHasItsVersionWithoutData(t *testing.T) {
	t.Parallel()
	job := uuid.New()
	deleted, err := NewDeleted(Meta{Function: "test", JobID: job}, 7)
	if err != nil {
		t.Fatal(err)
	}
	e := deleted.Event()
	if err := e.Validate(); err != nil || e.Data() != nil || e.DataContentType() != "" || e.ID() != DeletedID(job, 7) {
		t.Errorf("%s (%v)", e, err)
	}
	if version, err := DeletedVersion(deleted); version != 7 || err != nil {
		t.Errorf("version %d, %v", version, err)
	}
	for _, bad := range []any{nil, "", "0", "-1", "x", "9223372036854775808", int32(7)} {
		e.SetExtension(ExtVersion, bad)
		if version, err := DeletedVersion(ItemOf(e)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%v is version %d, %v", bad, version, err)
		}
	}
	e.SetExtension(ExtVersion, "7")
	e.SetType(TypeStatus)
	if _, err := DeletedVersion(ItemOf(e)); !errors.Is(err, ErrInvalid) {
		t.Error("a status is a deleted event")
	}
}

func TestAnEventIsNotMuchLargerThanWhatItCarries(t *testing.T) {
	t.Parallel()
	payload := []byte(`"` + strings.Repeat("<&>\u2028", 1000) + `"`)
	e, err := New(TypeRun, Meta{Function: "test", ID: "1"}, Run{Payload: payload})
	if err != nil || len(e.Data()) > len(payload)+300 || !json.Valid(e.Data()) || !bytes.Contains(e.Data(), payload) {
		t.Errorf("%d bytes of payload make %d (%v)", len(payload), len(e.Data()), err)
	}
}

// The API's trigger apply_change looks for the answer there.
func TestTheAnswerToACommandEndsAStatus(t *testing.T) {
	t.Parallel()
	status := RawStatus{
		Status: Status{Status: "PENDING"}, History: []byte(`[{"to":"PENDING"}]`),
		LastCommand: &CommandResult{Number: 7, Command: CommandChange, Applied: true},
	}
	text, err := Encode(status)
	if err != nil || !bytes.HasSuffix(text, []byte(`"lastCommand":{"number":7,"command":"change","applied":true}}`)) {
		t.Errorf("%s, %v", text, err)
	}
	it, err := New(TypeStatus, Meta{Function: "test", ID: "1"}, status)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode[RawStatus](it)
	if plain := back.WithoutHistory(); err != nil || *plain.LastCommand != *status.LastCommand || plain.History != nil ||
		string(back.History) != string(status.History) {
		t.Errorf("read %+v, %v", back, err)
	}
}

func TestNewBuildsAValidEvent(t *testing.T) {
	t.Parallel()
	job, trace := uuid.Must(uuid.NewV7()), uuid.New()
	e, err := New(TypeRun, Meta{Function: "ingest", ID: RunID(job, 1), JobID: job, Key: RoutingKey(7), TraceID: trace, Queue: "mail"},
		Run{JobID: job, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Event().Validate(); err != nil {
		t.Error(err)
	}
	if topic, _ := e.Topic(); topic != "run-job.mail" {
		t.Errorf("topic %q", topic)
	}
	if e.TraceID() != trace || e.Subject() != job.String() || e.Source() != "/jobweaver/ingest" {
		t.Errorf("attributes: %s", e)
	}
	back, err := Decode[Run](e)
	if err != nil || back.JobID != job {
		t.Errorf("decoded %+v, %v", back, err)
	}
	if _, err := Decode[[]int](e); !errors.Is(err, ErrInvalid) {
		t.Errorf("wrong shape: %v", err)
	}
}
