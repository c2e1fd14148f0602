package jobevent

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

var (
	anyText = rapid.StringN(0, 30, -1)
	anyJSON = rapid.SampledFrom([]json.RawMessage{
		[]byte(`{"steps":[{"type":"LOG","message":"}\"]\\"}],"ü":[]}`), []byte(`null`), []byte(`-1.5e3`), []byte(`"a\"b"`),
		[]byte(`[[],{},"",true]`), []byte(`{ "a" : [ 1 , 2 ] }`), []byte(`"<&>"`),
	})
	anyInstant = rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMicro(rapid.Int64Range(0, 1<<52).Draw(t, "at")).UTC()
	})
	anyID = rapid.Custom(func(t *rapid.T) (id uuid.UUID) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		return id
	})
)

// someIDs draws them one by one: rapid's slices name their element's generator, and race for it.
func someIDs(t *rapid.T) (ids []uuid.UUID) {
	for range rapid.IntRange(0, 2).Draw(t, "ids") {
		ids = append(ids, anyID.Draw(t, "id"))
	}
	return ids
}

func maybe[T any](t *rapid.T, g *rapid.Generator[T], name string) *T {
	if !rapid.Bool().Draw(t, "with "+name) {
		return nil
	}
	v := g.Draw(t, name)
	return &v
}

// plainEvents are data that write and read their own JSON.
var plainEvents = map[string]*rapid.Generator[appender]{
	"created": rapid.Custom(func(t *rapid.T) appender {
		return Created{
			JobID: anyID.Draw(t, "job"), TraceID: anyID.Draw(t, "trace"), OwnerID: anyText.Draw(t, "owner"),
			JobType: anyText.Draw(t, "type"), Queue: anyText.Draw(t, "queue"), Payload: anyJSON.Draw(t, "payload"),
			Priority: rapid.Int().Draw(t, "priority"), MaxRetryCount: rapid.Int().Draw(t, "retries"),
			RetryPolicy: maybe(t, rapid.Just(retrypolicy.Policy{}), "policy"),
			TimeoutMs:   rapid.Int64().Draw(t, "timeout"), RunAt: maybe(t, anyInstant, "runAt"),
			CreatedAt: anyInstant.Draw(t, "createdAt"), ExpiresAt: maybe(t, anyInstant, "expiresAt"),
			OrderingKey: anyText.Draw(t, "key"), OrderNumber: rapid.Int64().Draw(t, "number"),
			OrderAfter: maybe(t, anyID, "before"), RunAnyway: rapid.Bool().Draw(t, "anyway"),
			After: someIDs(t),
		}
	}),
	"run": rapid.Custom(func(t *rapid.T) appender {
		return Run{
			JobID: anyID.Draw(t, "job"), Attempt: rapid.Int().Draw(t, "attempt"), JobType: anyText.Draw(t, "type"),
			Payload: anyJSON.Draw(t, "payload"), TimeoutMs: rapid.Int64().Draw(t, "timeout"),
			Rank: anyInstant.Draw(t, "rank"), Cancel: rapid.Bool().Draw(t, "cancel"),
			ExpiresAt: maybe(t, anyInstant, "expiresAt"), OwnerID: anyText.Draw(t, "owner"),
		}
	}),
	"completed": rapid.Custom(func(t *rapid.T) appender {
		c := Completed{
			JobID: anyID.Draw(t, "job"), Attempt: rapid.Int().Draw(t, "attempt"), WorkerID: anyText.Draw(t, "worker"),
			StartedAt: anyInstant.Draw(t, "startedAt"), FinishedAt: anyInstant.Draw(t, "finishedAt"),
		}
		if rapid.Bool().Draw(t, "with output") {
			c.Output = anyJSON.Draw(t, "output")
		}
		return c
	}),
	"status": rapid.Custom(func(t *rapid.T) appender {
		s := RawStatus{Status: Status{
			JobID: anyID.Draw(t, "job"), Version: rapid.Int64().Draw(t, "version"), Status: anyText.Draw(t, "status"),
			Attempt: rapid.Int().Draw(t, "attempt"), RetryCount: rapid.Int().Draw(t, "retries"),
			NextRunAt: maybe(t, anyInstant, "nextRunAt"), CallbackDeadlineAt: maybe(t, anyInstant, "deadline"),
			StartedAt: maybe(t, anyInstant, "startedAt"), FinishedAt: maybe(t, anyInstant, "finishedAt"),
			UpdatedAt: anyInstant.Draw(t, "updatedAt"), LastError: maybe(t, rapid.Just(Error{"X", "<\n>"}), "error"),
			LastCommand: maybe(t, rapid.Just(CommandResult{Number: 1, Command: "cancel", Reason: "x"}), "command"),
			BlockedBy:   rapid.SliceOfN(rapid.Just(Block{Kind: "k", ID: "i"}), 0, 1).Draw(t, "blocks"),
		}, History: anyJSON.Draw(t, "history")}
		if rapid.Bool().Draw(t, "with output") {
			s.Output = anyJSON.Draw(t, "output")
		}
		return s
	}),
	"move": rapid.Custom(func(t *rapid.T) appender { return moveAppender{anyMove.Draw(t, "move")} }),
}

var anyMove = rapid.Custom(func(t *rapid.T) Move {
	return Move{
		At: anyInstant.Draw(t, "at"), From: anyText.Draw(t, "from"), To: anyText.Draw(t, "to"),
		Attempt: rapid.Int().Draw(t, "attempt"), By: anyText.Draw(t, "by"), Reason: anyText.Draw(t, "reason"),
		Outcome: anyText.Draw(t, "outcome"), WorkerID: anyText.Draw(t, "worker"),
		StartedAt: maybe(t, anyInstant, "startedAt"), FinishedAt: maybe(t, anyInstant, "finishedAt"),
		ErrorCode: anyText.Draw(t, "code"), Message: anyText.Draw(t, "message"),
	}
})

// moveAppender: a Move is never data by itself.
type moveAppender struct{ Move }

func (m moveAppender) appendJSON(b []byte) []byte { return m.AppendJSON(b) }

func TestHandWrittenJSONIsWhatTheEncoderWrites(t *testing.T) {
	t.Parallel()
	for name, g := range plainEvents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				data := g.Draw(t, "data")
				var byHand, byEncoder any
				written := data.appendJSON(nil)
				if err := json.Unmarshal(written, &byHand); err != nil {
					t.Fatalf("wrote %s: %v", written, err)
				}
				body, err := json.Marshal(data)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(body, &byEncoder); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(byHand, byEncoder) {
					t.Errorf("wrote %s\nwant  %s", written, body)
				}
			})
		})
	}
}

func TestThePlainJobsEventsAreReadQuickly(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 17, 0, 0, 123456000, time.UTC)
	job := uuid.Must(uuid.NewV7())
	payload := json.RawMessage(`{"steps":[{"type":"LOG","message":"no-op"}]}`)
	status := RawStatus{Status: Status{JobID: job, Version: 2, Status: "COMPLETED", Attempt: 1, StartedAt: &at, FinishedAt: &at, UpdatedAt: at}, History: []byte(`[{"to":"QUEUED"}]`)}
	for _, data := range []appender{
		Created{JobID: job, JobType: "SIMULATION", Queue: "default", Payload: payload, CreatedAt: at, TimeoutMs: 600000, MaxRetryCount: 3},
		Run{JobID: job, Attempt: 1, JobType: "SIMULATION", Payload: payload, TimeoutMs: 600000, Rank: at, OwnerID: "acme"},
		Completed{JobID: job, Attempt: 1, WorkerID: "w", StartedAt: at, FinishedAt: at, Output: payload},
		status,
	} {
		into := reflect.New(reflect.TypeOf(data))
		if !into.Interface().(quick).readJSON(data.appendJSON(nil)) || !reflect.DeepEqual(into.Elem().Interface(), data) {
			t.Errorf("%T came back as %+v", data, into.Elem())
		}
	}
}

// FuzzQuickReadingAgreesWithTheDecoder: whatever is read quickly, the decoder reads as the same.
func FuzzQuickReadingAgreesWithTheDecoder(f *testing.F) {
	at := time.Date(2026, 11, 21, 17, 0, 0, 0, time.UTC)
	for _, data := range []appender{
		Created{Payload: []byte(`{"a":"\""}`), RunAt: &at, OwnerID: "o", Priority: 9, JobType: "ü"},
		Run{Payload: []byte(`[1,2]`), Cancel: true, Attempt: 10, OwnerID: "o"}, Completed{Output: []byte(`0`)},
		RawStatus{Status: Status{NextRunAt: &at}, History: []byte(`[{}]`)},
	} {
		f.Add(data.appendJSON(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		agree[Created](t, b)
		agree[Run](t, b)
		agree[Completed](t, b)
		agree[RawStatus](t, b)
	})
}

func agree[T any](t *testing.T, b []byte) {
	var quickly, slowly T
	if !any(&quickly).(quick).readJSON(bytes.Clone(b)) {
		return
	}
	if err := jsonv2.Unmarshal(b, &slowly, anyNames); err != nil {
		t.Fatalf("read %s as %+v, the decoder: %v", b, quickly, err)
	}
	if !reflect.DeepEqual(quickly, slowly) {
		t.Errorf("read %s as\n%+v, the decoder\n%+v", b, quickly, slowly)
	}
}

func BenchmarkNewAndDecode(b *testing.B) {
	job := uuid.Must(uuid.NewV7())
	data := Completed{JobID: job, Attempt: 1, WorkerID: "host-abcdefghij", StartedAt: time.Now().UTC(), FinishedAt: time.Now().UTC()}
	meta := Meta{Function: "runjob", ID: OutcomeID(job, 1, "completed"), JobID: job, TraceID: job}
	var e event.Event
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e, _ = New(TypeCompleted, meta, data)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeAs[Completed](e, TypeCompleted); err != nil {
				b.Fatal(err)
			}
		}
	})
}
