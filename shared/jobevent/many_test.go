package jobevent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

func anItem(t testing.TB, typ string, m Meta, data any) Item {
	t.Helper()
	m.Function = "test"
	it, err := New(typ, m, data)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// everySort returns one item of each type that is transported with others, all of one function.
func everySort(t testing.TB) []Item {
	job, trace, at := uuid.New(), uuid.New(), time.Date(2026, 11, 23, 1, 2, 3, 4000, time.UTC)
	meta := func(id string) Meta { return Meta{ID: id, JobID: job, TraceID: trace} }
	run := meta("")
	run.Key, run.Queue = RoutingKey(7), "mail"
	callback := meta(OutcomeID(job, 2, "callback"))
	return []Item{
		anItem(t, TypeCreated, meta(""), &Created{
			JobID: job, TraceID: trace, JobType: "SIMULATION", Queue: "mail", CreatedAt: at,
			Payload: json.RawMessage(`{"a":"<&> \u2028 é","a":1e400,"kind":3,"jobId":null}`),
		}),
		anItem(t, TypeRun, run, &Run{
			JobID: job, Attempt: 2, JobType: "SIMULATION", Payload: json.RawMessage(`[1, 2]`), Spec: Spec{TimeoutMs: 5}, Rank: at,
		}),
		anItem(t, TypeCompleted, callback, &Completed{JobID: job, Attempt: 2, FinishedAt: at, Output: json.RawMessage(`"x"`)}),
		anItem(t, TypeFailed, meta(""), &Failed{JobID: job, Attempt: 2, Kind: KindLost, FinishedAt: at}),
		anItem(t, TypeWaiting, meta(""), &Waiting{JobID: job, Attempt: 2, StartedAt: at}),
		anItem(t, TypeCommand, meta(CommandID(job, 1)), Command{JobID: job, Number: 1, Command: CommandCancel}),
		anItem(t, TypeCommand, Meta{ID: "report." + job.String()}, Command{Command: CommandReport, Reports: []ReportJob{{job, 4}}}),
		anItem(t, TypeAttemptCancel, meta(AttemptCancelID(job, 2)), AttemptCancel{JobID: job, Attempt: 2}),
		anItem(t, TypeAttemptLog, meta(AttemptLogID(job, 2, 0)), AttemptLog{JobID: job, Attempt: 2, Lines: []LogLine{{at, "info", "hi"}}}),
	}
}

// unpackAll takes events apart and fails for an item that cannot be read.
func unpackAll(t testing.TB, events []event.Event) (all []Item) {
	t.Helper()
	for _, e := range events {
		items, err := Unpack(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range items {
			if it.Err != nil {
				t.Fatal(it.Err)
			}
			all = append(all, it)
		}
	}
	return all
}

// same fails the test unless a handler reads the same from both items.
func same(t testing.TB, got, want Item) {
	t.Helper()
	if about(got) != about(want) {
		t.Errorf("got %s, want %s", about(got), about(want))
	}
	if err := got.Event().Validate(); err != nil {
		t.Error(err)
	}
	read := func(e Item) any {
		var data any
		var err error
		switch e.Type() {
		case TypeCreated:
			data, err = Decode[Created](e)
		case TypeRun:
			data, err = Decode[Run](e)
		case TypeCompleted:
			data, err = Decode[Completed](e)
		case TypeFailed:
			data, err = Decode[Failed](e)
		case TypeWaiting:
			data, err = Decode[Waiting](e)
		case TypeCommand:
			data, err = Decode[Command](e)
		case TypeAttemptCancel:
			data, err = Decode[AttemptCancel](e)
		case TypeAttemptLog:
			data, err = Decode[AttemptLog](e)
		}
		if err != nil {
			t.Errorf("read %s: %v", e.ID(), err)
		}
		text, err := json.Marshal(data)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if read(got) != read(want) {
		t.Errorf("%s\nis %s\nwant %s", want.ID(), read(got), read(want))
	}
}

func about(it Item) string {
	return fmt.Sprint(it, it.Subject(), it.JobID(), it.Source(), it.TraceParent(), it.TraceID(), it.Queue())
}

func byID(a, b Item) int { return strings.Compare(a.Type()+a.ID(), b.Type()+b.ID()) }

func TestWhatIsPackedReadsAsBefore(t *testing.T) {
	t.Parallel()
	var items []Item
	for range 3 {
		items = append(items, everySort(t)...)
	}
	packed, of := Pack(items)
	if len(packed) != 5+3 || len(of) != len(packed) { // one for each type of event, and for each attempt to run
		t.Fatalf("%d events", len(packed))
	}
	got := unpackAll(t, packed)
	slices.SortFunc(got, byID)
	slices.SortFunc(items, byID)
	for i := range items {
		same(t, got[i], items[i])
		same(t, unpackAll(t, []event.Event{items[i].Alone()})[0], items[i])
	}
	again, _ := Pack(slices.Clone(items))
	other, _ := Pack(slices.Clone(items))
	for i := range again {
		if again[i].ID() != other[i].ID() {
			t.Errorf("the same items are %s and %s", again[i].ID(), other[i].ID())
		}
	}
}

func TestPackedEventsAreWhereTheirItemsBelong(t *testing.T) {
	t.Parallel()
	packed, _ := Pack(everySort(t))
	topics := map[string]string{}
	for _, e := range packed {
		topic, err := TopicOf(e)
		if err != nil {
			t.Fatal(err)
		}
		topics[e.Type()] = topic
		if e.Type() == TypesRun && Extension(e, ExtPartitionKey) != RoutingKey(7) {
			t.Errorf("attempts to run go to %q", Extension(e, ExtPartitionKey))
		}
		if key := Extension(e, ExtPartitionKey); key == "" {
			t.Errorf("%s has no key", e.ID())
		}
	}
	want := map[string]string{
		TypesCreated: TopicCreated, TypesRun: "run-job.mail", TypesEnded: TopicEnded, TypesCommand: TopicCommand,
		TypesAttemptCancels: TopicAttemptCancel, TypesAttemptLogs: TopicAttemptLog,
	}
	if !maps.Equal(topics, want) {
		t.Errorf("topics are %v", topics)
	}
}

// Attempts of one event must all go to the worker that dispatch chose.
func TestAttemptsAreTogetherOnlyWhereTheyGoToOnePartitionOfOneQueue(t *testing.T) {
	t.Parallel()
	var items []Item
	for i := range 8 * (MaxRunsAlone + 1) {
		job := uuid.New()
		items = append(items, anItem(t, TypeRun, Meta{
			ID: RunID(job, 1), JobID: job, Key: RoutingKey(int32(i % 4)), Queue: []string{"a", "b"}[i/4%2],
		}, Run{JobID: job, Attempt: 1}))
	}
	packed, of := Pack(items)
	if len(packed) != 8 {
		t.Errorf("%d events", len(packed))
	}
	for i, e := range packed {
		for _, n := range of[i] {
			if items[n].Key() != Extension(e, ExtPartitionKey) || items[n].Queue() != Extension(e, ExtQueue) {
				t.Errorf("%s is in %s", items[n], e)
			}
		}
	}
}

func TestEventsArePackedWithinTheLimits(t *testing.T) {
	t.Parallel()
	many := func(n, bytes int, typ string) (items []Item) {
		for range n {
			job := uuid.New()
			items = append(items, anItem(t, typ, Meta{ID: job.String() + ".x", JobID: job, Key: "p1"}, Created{
				JobID: job, Payload: json.RawMessage(`"` + strings.Repeat("x", bytes) + `"`),
			}))
		}
		return items
	}
	for name, tt := range map[string]struct {
		items []Item
		want  []int // in each event
	}{
		"none":               {nil, nil},
		"as many as fit":     {many(501, 10, TypeCreated), []int{500, 1}},
		"attempts":           {many(130, 10, TypeRun), []int{64, 64, 2}},
		"as much as fits":    {many(5, 200<<10, TypeCreated), []int{2, 2, 1}},
		"one that is larger": {many(2, 600<<10, TypeCreated), []int{1, 1}},
	} {
		packed, of := Pack(tt.items)
		var got []int
		for i, e := range packed {
			got = append(got, len(of[i]))
			if n := len(e.DataEncoded); n > MaxItemBytes+MaxItems+64 && len(of[i]) > 1 || !IsPacked(e) {
				t.Errorf("%s: an event of %d bytes of type %s", name, n, e.Type())
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v items, want %v", name, got, tt.want)
		}
		if n := len(unpackAll(t, packed)); n != len(tt.items) {
			t.Errorf("%s: %d items come out", name, n)
		}
	}
}

// Long attempts go out a few at a time, and a scaler counts records.
func TestFewAttemptsForAPartitionAreSpread(t *testing.T) {
	t.Parallel()
	var items []Item
	for i := range MaxRunsAlone + (MaxRunsAlone + 1) {
		job := uuid.New()
		items = append(items, anItem(t, TypeRun, Meta{
			ID: RunID(job, 1), JobID: job, Key: RoutingKey(int32(i / MaxRunsAlone % 2)), Queue: "q",
		}, Run{JobID: job, Attempt: 1}))
		items = append(items, anItem(t, TypeCommand, Meta{ID: CommandID(job, 1), JobID: job}, Command{JobID: job, Number: 1}))
	}
	sizes := map[string][]int{}
	packed, of := Pack(items)
	for i, e := range packed {
		sizes[e.Type()] = append(sizes[e.Type()], len(of[i]))
	}
	alone, together := 0, 0
	for _, n := range sizes[TypesRun] {
		if n == 1 {
			alone++
		} else {
			together += n
		}
	}
	if alone != MaxRunsAlone || together != MaxRunsAlone+1 || len(sizes[TypesCommand]) != 1 {
		t.Errorf("events have %v items", sizes)
	}
	if n := len(unpackAll(t, packed)); n != len(items) {
		t.Errorf("%d of %d items come out", n, len(items))
	}
}

// aStatus returns a status as the scheduler publishes it.
func aStatus(t testing.TB, version int64, history, output string) Item {
	t.Helper()
	job, trace := uuid.New(), uuid.New()
	return anItem(t, TypeStatus, Meta{ID: StatusID(job, version), JobID: job, TraceID: trace}, RawStatus{
		History: json.RawMessage(history), LastCommand: &CommandResult{Number: 1, Command: CommandCancel},
		Status: Status{JobID: job, Version: version, Status: "COMPLETED", Output: json.RawMessage(output)},
	})
}

// The API stores the JSON, and its trigger looks for the answer to a command at its end.
func TestAStatusForFunctionsHasTheJSONOfThePublicOne(t *testing.T) {
	t.Parallel()
	public := []Item{
		aStatus(t, 1, `[]`, `"x"`), aStatus(t, 2, `[{"to": "PENDING" ,"kind":3}]`, `{"a":"<&> \u2028 é","a":1e400}`),
		aStatus(t, 3, `[ ]`, `{"eventId":null,"status":{"jobId":7}}`),
	}
	var items []Item
	for _, it := range public {
		items = append(items, it.ForFunctions())
	}
	events, of := Pack(items)
	if len(events) != 1 || events[0].Type() != TypesStatus || !slices.Equal(of[0], []int{0, 1, 2}) {
		t.Fatalf("%v in %v", of, events)
	}
	if topic, err := TopicOf(events[0]); topic != TopicStatuses || err != nil {
		t.Errorf("it belongs to %q, %v", topic, err)
	}
	for i, got := range unpackAll(t, events) {
		want := public[i]
		if about(got) != about(want) || !bytes.Equal(got.Data(), want.Data()) {
			t.Errorf("got %s %s, want %s %s", about(got), got.Data(), about(want), want.Data())
		}
		is, err := Decode[RawStatus](got)
		was, before := Decode[RawStatus](want)
		if err != nil || before != nil || !reflect.DeepEqual(is, was) {
			t.Errorf("read %+v, %v, want %+v, %v", is, err, was, before)
		}
	}
	if events, _ := Pack(append(items, public...)); len(events) != 1+len(public) || events[1].Type() != TypeStatus {
		t.Errorf("the public statuses are not alone: %v", events)
	}
}

func TestEventsThatOthersReadStayAsTheyAre(t *testing.T) {
	t.Parallel()
	job := uuid.New()
	meta := Meta{ID: "1", JobID: job}
	deleted, err := NewDeleted(meta, 3)
	if err != nil {
		t.Fatal(err)
	}
	items := []Item{
		anItem(t, TypeStatus, meta, Status{JobID: job}), anItem(t, TypeDeadLettered, meta, DeadLettered{JobID: job}),
		anItem(t, TypeHeartbeat, meta, Heartbeat{}), anItem(t, TypeControl, meta, Control{}),
		deleted,
	}
	packed, of := Pack(items)
	for i, e := range packed {
		if e.Type() != items[i].Type() || e.ID() != items[i].ID() || !slices.Equal(of[i], []int{i}) {
			t.Errorf("%s became %s", items[i], e)
		}
	}
}

func TestWhatIsNoJSONMakesNoItem(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{`{"a`, `1 2`, ` `} {
		if it, err := New(TypeRun, Meta{}, &Run{Payload: json.RawMessage(payload)}); err == nil {
			t.Errorf("%q makes %s", payload, it.Data())
		}
	}
}

func TestABadItemIsBadAlone(t *testing.T) {
	t.Parallel()
	bad := []string{
		`1`, `null`, `"x"`, `[]`, `{}`, `{"eventId":""}`, `{"eventId":" 1"}`, `{"eventId":7}`, `{"eventId":"a\nb"}`,
		`{"eventId":"1","kind":4}`, `{"eventId":"1","traceparent":[]}`, "{\"eventId\":\"\xff\"}",
		`{"eventId":"` + strings.Repeat("x", maxEventID+1) + `"}`, `{"eventId":"1","jobId":{}}`,
	}
	created, _ := Pack(everySort(t)[:1])
	checkBadAlone(t, created[0], bad)
	status, _ := Pack([]Item{aStatus(t, 1, `[]`, `1`).ForFunctions()})
	job := uuid.NewString()
	checkBadAlone(t, status[0], append(bad, `{"eventId":"1"}`, `{"eventId":"1","jobId":"`+job+`","status":17}`,
		`{"eventId":"1","jobId":"`+job+`","version":1,"history":[]}`, // not nested
		"{\"eventId\":\"1\",\"status\":{\"a\":\"\xff\"}}"))
}

// checkBadAlone fails the test unless each of the bad items, among good ones in an event, is bad alone.
func checkBadAlone(t *testing.T, good event.Event, items []string) {
	t.Helper()
	item := rawItem(good, 0)
	for _, bad := range items {
		e := good.Clone()
		e.DataEncoded = []byte(`{"items":[` + string(item) + "," + bad + "," + string(item) + `]}`)
		items, err := Unpack(e)
		if err != nil || len(items) != 3 || items[0].Err != nil || items[2].Err != nil {
			t.Errorf("%s: %v", bad, err)
			continue
		}
		if !errors.Is(items[1].Err, ErrInvalid) {
			t.Errorf("%s: %v", bad, items[1].Err)
		}
		alone := items[1].Alone()
		again, err := Unpack(alone)
		if err != nil || len(again) != 1 || !errors.Is(again[0].Err, ErrInvalid) || alone.ID() != e.ID()+"/1" ||
			Extension(alone, ExtPartitionKey) != Extension(e, ExtPartitionKey) || alone.Type() != e.Type() {
			t.Errorf("%s alone is %s: %v", bad, alone, err)
		}
	}
}

func TestAnItemOfManyIsRefusedAsAnEventOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, it := range everySort(t) {
		if items, err := Unpack(it.Event()); !errors.Is(err, ErrInvalid) || items != nil {
			t.Errorf("%s: %v, %v", it, items, err)
		}
	}
}

func TestAnEventWithoutItemsIsInvalid(t *testing.T) {
	t.Parallel()
	packed, _ := Pack(everySort(t)[:1])
	for _, data := range []string{
		``, `null`, `[]`, `{}`, `{"items":null}`, `{"items":[]}`, `{"items":{}}`, `{"items":[1`, `{"items":[1]}x`,
		`{"items":[` + strings.Repeat("1,", MaxItems) + `1]}`,
	} {
		e := packed[0].Clone()
		e.DataEncoded = []byte(data)
		if items, err := Unpack(e); !errors.Is(err, ErrInvalid) || items != nil {
			t.Errorf("%.40s: %d items, %v", data, len(items), err)
		}
	}
}

func TestATraceparentThatIsNoneIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "x", "00-" + strings.Repeat("g", 32) + "-0123456789abcdef-01", "00-" + strings.Repeat("a", 32) + "_0123456789abcdef-01",
		"00-" + strings.Repeat("a", 32) + "-0123456789abcdeé-1", "01-" + strings.Repeat("a", 32) + "-0123456789abcdef-01",
	} {
		e := event.New()
		e.SetType(TypesRun)
		e.DataEncoded = fmt.Appendf(nil, `{"items":[{"eventId":"1","traceparent":%q}]}`, text)
		items, err := Unpack(e)
		if err != nil || items[0].Err != nil || items[0].TraceParent() != "" || items[0].TraceID() != uuid.Nil {
			t.Errorf("%q: %v, %v", text, items, err)
		}
	}
}

// FuzzUnpack checks that each item of any event can be handled and published again, or has an error, and that Alone
// returns the same item.
func FuzzUnpack(f *testing.F) {
	packed, _ := Pack(append(everySort(f), aStatus(f, 1, `[]`, `1`).ForFunctions()))
	for i, e := range packed {
		f.Add(byte(i), e.DataEncoded)
	}
	for i, typ := range []string{TypeCreated, TypeRun, TypeCompleted} {
		followed, _ := Pack(alike(f, typ, MaxRunsAlone+1))
		f.Add(byte(i), followed[0].DataEncoded)
	}
	f.Add(byte(6), []byte(`{"items":[{"eventId":"a","status": {} },{"eventId":"b","status":[]},{"eventId":"c","jobId":"d"}]}`))
	f.Add(byte(0), []byte(`{"items":[{"eventId":"a","jobId":"00000000-0000-0000-0000-000000000000"},1,{"eventId":"b","eventId":"c"}]}`))
	f.Add(byte(5), []byte(`{"items":[{"jobId":"00000000-0000-0000-0000-000000000001"}]}`)) // a type without a usual id
	f.Add(byte(2), []byte(`{"items":[{"eventId":"a","kind":"completed","traceparent":"00-0-0-00"}],"items":[]}`))
	f.Fuzz(func(t *testing.T, sort byte, data []byte) {
		e := packed[int(sort)%len(packed)].Clone()
		e.DataEncoded = data
		items, err := Unpack(e)
		if err != nil != (items == nil) || err != nil && !errors.Is(err, ErrInvalid) || len(items) > MaxItems {
			t.Fatalf("%d items, %v", len(items), err)
		}
		for _, item := range items {
			if item.Err != nil && !errors.Is(item.Err, ErrInvalid) || item.Err == nil && item.Event().Validate() != nil {
				t.Fatalf("%v, %v", item.Err, item.Event())
			}
			again, err := Unpack(item.Alone())
			if err != nil || len(again) != 1 || (again[0].Err == nil) != (item.Err == nil) {
				t.Fatalf("alone: %v, %v, was %v", again, err, item.Err)
			}
			if item.Err != nil {
				continue
			}
			if about(again[0]) != about(item) || !bytes.Equal(again[0].Data(), item.Data()) || len(item.Data()) == 0 {
				t.Errorf("alone it is %s", about(again[0]))
			}
			is, failed := json.Marshal(again[0].read) // whether it was decoded with other items or by itself
			was, err := json.Marshal(item.read)
			if string(is) != string(was) || err != nil || failed != nil {
				t.Errorf("alone it reads as %s, not %s", is, was)
			}
		}
	})
}

// FuzzPack checks that packed items read as before, however they are distributed over events.
func FuzzPack(f *testing.F) {
	f.Add("job.1.run", `{"a":"\ud800 <"}`, "p1", "mail", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add("x", `null`, "", "", "")
	f.Fuzz(func(t *testing.T, id, payload, key, queue, parent string) {
		if !json.Valid([]byte(payload)) || !isItemID(id) {
			return
		}
		job := uuid.New()
		it, err := New(TypeRun, Meta{ID: id, JobID: job, Key: key, Queue: queue},
			Run{JobID: job, Attempt: 1, JobType: "X", Payload: json.RawMessage(payload), Rank: time.Unix(0, 0).UTC()})
		if err != nil {
			t.Fatal(err)
		}
		if parent != "" {
			it.SetTraceParent(parent)
		}
		events, of := Pack(append(everySort(t), it))
		n := 0
		for i, e := range events {
			items, err := Unpack(e)
			if err != nil || len(items) != len(of[i]) {
				t.Fatal(len(items), err)
			}
			for _, got := range items {
				n++
				if got.Err != nil { // such as a payload that is not UTF-8, which is refused alone, too
					if _, before := Decode[Run](ItemOf(it.Event())); before == nil || e.Type() != TypesRun {
						t.Errorf("%v", got.Err)
					}
				} else if got.ID() == id {
					is, err := Decode[Run](got)
					was, before := Decode[Run](ItemOf(it.Event()))
					if err != nil != (before != nil) || is.JobID != was.JobID || string(is.Payload) != string(was.Payload) ||
						got.JobID() != job {
						t.Errorf("read %+v, %v; before %+v, %v", is, err, was, before)
					}
				}
			}
		}
		if n != len(everySort(t))+1 {
			t.Errorf("%d items", n)
		}
	})
}

// FuzzPackStatus checks that a status for functions arrives unchanged.
func FuzzPackStatus(f *testing.F) {
	f.Add("job.v1", `{"a":"\ud83d\ude00 <","status":{}}`, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "cause")
	f.Add("job.v2", `{ "history" : [ ] , "a":1e400,"a":2 }`, "x", "")
	f.Fuzz(func(t *testing.T, id, data, parent, cause string) {
		var object map[string]jsontext.Value
		if jsonv2.Unmarshal([]byte(data), &object, anyNames) != nil || strings.TrimSpace(data) != data || data[0] != '{' || !isItemID(id) {
			return
		}
		public := Item{typ: TypeStatus, id: id, source: "/test", jobID: uuid.New(), data: []byte(data), cause: cause}
		public.SetTraceParent(parent)
		events, _ := Pack([]Item{aStatus(t, 1, `[]`, `1`).ForFunctions(), public.ForFunctions()})
		for _, e := range events {
			items, err := Unpack(e)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range items {
				if it.Err != nil || it.Type() != TypeStatus || it.ID() == id && (it.JobID() != public.JobID() || string(it.Data()) != data) {
					t.Errorf("%v %s is %s", it.Err, data, it.Data())
				}
			}
		}
	})
}

// benchItems are 64 orders to run an attempt, as dispatch makes them.
func benchItems(b *testing.B) []Item {
	items := make([]Item, MaxRunItems)
	rank := time.Now().UTC()
	for i := range items {
		job := uuid.Must(uuid.NewV7())
		items[i] = anItem(b, TypeRun, Meta{
			JobID: job, TraceID: uuid.New(), Key: RoutingKey(1), Queue: DefaultQueue,
		}, &Run{
			JobID: job, Attempt: 1, JobType: "SIMULATION", Spec: Spec{TimeoutMs: 600_000}, Rank: rank,
			Payload: json.RawMessage(`{"steps":[{"type":"LOG","message":"hi"}]}`),
		})
	}
	return items
}

// BenchmarkPack creates and packs items, and reports the time for a job.
func BenchmarkPack(b *testing.B) {
	b.ReportAllocs()
	for range b.N / MaxRunItems {
		Pack(benchItems(b))
	}
}

// BenchmarkUnpack reads packed items, and reports the time for a job.
func BenchmarkUnpack(b *testing.B) {
	packed, _ := Pack(benchItems(b))
	b.ReportAllocs()
	for range b.N / MaxRunItems {
		items, err := Unpack(packed[0])
		if err != nil {
			b.Fatal(err)
		}
		for _, it := range items {
			if _, err := Decode[Run](it); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkReadStatus reads statuses, each in an event of its own and together, and reports the time for one.
func BenchmarkReadStatus(b *testing.B) {
	history := `[{"at":"2026-11-26T10:00:00Z","to":"PENDING","attempt":0,"by":"gateway"},` +
		`{"at":"2026-11-26T10:00:01Z","from":"PENDING","to":"COMPLETED","attempt":1,"by":"worker","workerId":"runjob-1"}]`
	var public, together []Item
	for range MaxItems {
		it := aStatus(b, 2, history, `{"steps":1}`)
		public, together = append(public, it), append(together, it.ForFunctions())
	}
	for name, items := range map[string][]Item{"alone": public, "together": together} {
		b.Run(name, func(b *testing.B) {
			events, _ := Pack(items)
			b.ReportAllocs()
			for range b.N / MaxItems {
				for _, it := range unpackAll(b, events) {
					if _, err := Decode[RawStatus](it); err != nil || len(it.Data()) == 0 {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
