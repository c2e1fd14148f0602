package jobevent

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

var followedAt = time.Date(2026, 11, 29, 1, 2, 3, 4000, time.UTC)

// alike returns items of a type that differ only in what a follower has of its own.
func alike(t testing.TB, typ string, n int) (items []Item) {
	t.Helper()
	for i := range n {
		job, trace := uuid.New(), uuid.New()
		payload := json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
		m := Meta{JobID: job, TraceID: trace}
		var data any
		switch typ {
		case TypeCreated:
			data = &Created{JobID: job, TraceID: trace, JobType: "A", Queue: "q", Payload: payload, CreatedAt: followedAt}
		case TypeRun:
			m.Key, m.Queue = RoutingKey(1), "q"
			data = &Run{JobID: job, Attempt: i + 1, JobType: "A", Payload: payload, Rank: followedAt}
		case TypeCompleted:
			data = &Completed{JobID: job, Attempt: i + 1, WorkerID: "w", StartedAt: followedAt, FinishedAt: followedAt, Output: payload}
		}
		items = append(items, anItem(t, typ, m, data))
	}
	return items
}

func TestItemsThatAreAlikeAreArraysBehindTheFirst(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{TypeCreated, TypeRun, TypeCompleted} {
		items := alike(t, typ, MaxRunsAlone+1)
		events, _ := Pack(items)
		if len(events) != 1 {
			t.Fatalf("%s: %d events", typ, len(events))
		}
		raws, err := rawItems(events[0])
		if err != nil || raws[0].Kind() != '{' || slices.ContainsFunc(raws[1:], func(r jsontext.Value) bool { return r.Kind() != '[' }) {
			t.Errorf("%s: %s, %v", typ, events[0].DataEncoded, err)
		}
		for i, got := range unpackAll(t, events) {
			same(t, got, items[i])
			alone := unpackAll(t, []event.Event{got.Alone()})
			if same(t, alone[0], items[i]); !strings.HasPrefix(string(got.Data()), "{") {
				t.Errorf("the data is %s", got.Data())
			}
			if created, err := DecodeAs[Created](got, TypeCreated); typ == TypeCreated && (err != nil || created.TraceID != items[i].TraceID()) {
				t.Errorf("its trace is %s, %v", created.TraceID, err)
			}
		}
	}
}

// A member that is added to the data must make items differ, or be a follower's own. Spec has an Equal of its own.
func TestEachMemberMakesAnItemDifferOrIsItsOwn(t *testing.T) {
	t.Parallel()
	own := map[string][]string{
		"Created": {"JobID", "TraceID", "Payload"}, "Run": {"JobID", "Attempt", "Payload"},
		"Completed": {"JobID", "Attempt", "StartedAt", "FinishedAt", "Output"},
	}
	for _, data := range []follower{&Created{}, &Run{}, &Completed{}} {
		typ := reflect.TypeOf(data).Elem()
		for i := range typ.NumField() {
			field := typ.Field(i)
			for _, both := range []bool{false, true} { // whether the item before has a value, too, of its own making
				before, next := reflect.New(typ), reflect.New(typ)
				next.Elem().Field(i).Set(aValue(t, field.Type, 1))
				if both {
					before.Elem().Field(i).Set(aValue(t, field.Type, 2))
				}
				follows := next.Interface().(follower).follows(before.Interface())
				if follows != slices.Contains(own[typ.Name()], field.Name) {
					t.Errorf("a %s with another %s follows: %v", typ.Name(), field.Name, follows)
				}
			}
		}
	}
	before, next := &Created{RunAt: new(time.Time), ExpiresAt: new(time.Time)}, &Created{RunAt: new(time.Time), ExpiresAt: new(time.Time)}
	before.RetryPolicy, next.RetryPolicy = &retrypolicy.Policy{Type: "fixed"}, &retrypolicy.Policy{Type: "fixed"}
	if !next.follows(before) {
		t.Error("equal values at other addresses differ")
	}
}

// aValue returns a value that is not zero, and another one for another n.
func aValue(t *testing.T, typ reflect.Type, n int) reflect.Value {
	t.Helper()
	v := reflect.New(typ).Elem()
	switch {
	case typ == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(followedAt.Add(time.Duration(n))))
	case typ.Kind() == reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
		v.Elem().Set(aValue(t, typ.Elem(), n))
	case typ.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(typ, n, n))
	case typ.Kind() == reflect.Array:
		v.Index(0).SetUint(uint64(n))
	case typ.Kind() == reflect.String:
		v.SetString(fmt.Sprint(n))
	case typ.Kind() == reflect.Bool:
		v.SetBool(n == 1)
	case v.CanInt():
		v.SetInt(int64(n))
	case typ.Kind() == reflect.Struct:
		v.Field(0).Set(aValue(t, typ.Field(0).Type, n))
	default:
		t.Fatalf("a %s", typ)
	}
	return v
}

// Whatever is packed beside it, an item reads as if it were alone.
func TestAnItemReadsAsIfItWereAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var items []Item
		for range rapid.IntRange(1, 30).Draw(rt, "items") {
			typ := rapid.SampledFrom([]string{TypeCreated, TypeRun, TypeCompleted}).Draw(rt, "type")
			it := alike(t, typ, 1)[0]
			switch data := it.read.(type) {
			case *Created:
				data.OrderingKey = rapid.SampledFrom([]string{"", "", "", "k"}).Draw(rt, "key")
				data.JobType = rapid.SampledFrom([]string{"A", "A", "B"}).Draw(rt, "job type")
				data.Payload = rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage("[\n1 ]"), json.RawMessage(`"é"`)}).Draw(rt, "payload")
			case *Run:
				data.Cancel = rapid.SampledFrom([]bool{false, false, true}).Draw(rt, "cancel")
				data.Priority = rapid.SampledFrom([]int{0, 0, 5}).Draw(rt, "priority")
			case *Completed:
				data.WorkerID = rapid.SampledFrom([]string{"w", "w", ""}).Draw(rt, "worker")
				data.StartedAt = rapid.SampledFrom([]time.Time{{}, followedAt}).Draw(rt, "started")
				data.Output = rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage("null"), json.RawMessage("{}")}).Draw(rt, "output")
			}
			switch rapid.IntRange(0, 9).Draw(rt, "odd") {
			case 0:
				it.id = "callback." + it.jobID.String()
			case 1:
				it.traceParent = TraceParent(uuid.New(), "x", true)
			case 2:
				it.traceID = uuid.Nil
			}
			items = append(items, it)
		}
		events, of := Pack(items)
		for i, e := range events {
			for k, got := range unpackAll(t, []event.Event{e}) {
				want := unpackAll(t, []event.Event{items[of[i][k]].Alone()})[0]
				is, err := json.Marshal(got.read)
				was, failed := json.Marshal(want.read)
				if about(got) != about(want) || string(is) != string(was) || err != nil || failed != nil {
					rt.Errorf("%s reads as %s, alone as %s", about(want), is, was)
				}
			}
		}
	})
}

func TestABadFollowerIsBadAlone(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{TypeCreated, TypeRun, TypeCompleted} {
		events, _ := Pack(alike(t, typ, MaxRunsAlone+1))
		raws, err := rawItems(events[0])
		if err != nil {
			t.Fatal(err)
		}
		job := `"` + uuid.NewString() + `"`
		for _, bad := range []string{
			`[]`, `[1]`, `["x"]`, `[` + job + `]`, `[` + job + `,` + job + `]`, `[` + job + `,` + job + `,{},{},{},{},{},{}]`,
			"[" + job + "," + job + ",\"\xff\"]",
		} {
			e := events[0].Clone()
			e.DataEncoded = []byte(`{"items":[` + string(raws[0]) + "," + bad + "," + string(raws[1]) + `]}`)
			items, err := Unpack(e)
			if err != nil || len(items) != 3 || items[0].Err != nil || !errors.Is(items[1].Err, ErrInvalid) || items[2].Err != nil {
				t.Errorf("%s: %v, %v", bad, items, err)
				continue
			}
			if again, err := Unpack(items[1].Alone()); err != nil || len(again) != 1 || !errors.Is(again[0].Err, ErrInvalid) {
				t.Errorf("%s alone: %v, %v", bad, again, err)
			}
		}
		e := events[0].Clone()
		e.DataEncoded = []byte(`{"items":[` + string(raws[1]) + "," + string(raws[0]) + "," + string(raws[1]) + `]}`)
		items, err := Unpack(e)
		if err != nil || !errors.Is(items[0].Err, ErrInvalid) || items[1].Err != nil || items[2].Err != nil {
			t.Errorf("an array that follows no item: %v, %v", items, err)
		}
	}
	commands, _ := Pack(everySort(t)[5:6])
	e := commands[0].Clone()
	e.DataEncoded = slices.Concat([]byte(`{"items":[`), rawItem(e, 0), []byte(`,["`+uuid.NewString()+`"]]}`))
	if items, err := Unpack(e); err != nil || items[0].Err != nil || !errors.Is(items[1].Err, ErrInvalid) {
		t.Errorf("an array of a type without followers: %v, %v", items, err)
	}
}

// A small event must not become a large one.
func TestNoItemFollowsALargeOne(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", maxShared)
	for _, typ := range []string{TypeCreated, TypeRun, TypeCompleted} {
		items := alike(t, typ, MaxRunsAlone+1)
		for _, it := range items {
			switch data := it.read.(type) {
			case *Created:
				data.JobType = large
			case *Run:
				data.JobType = large
			case *Completed:
				data.WorkerID = large
			}
		}
		events, _ := Pack(items)
		raws, err := rawItems(events[0])
		if err != nil || slices.ContainsFunc(raws, func(r jsontext.Value) bool { return r.Kind() != '{' }) {
			t.Errorf("%s: an item follows, %v", typ, err)
		}
		follower, _ := Pack(alike(t, typ, MaxRunsAlone+1))
		e := events[0].Clone()
		e.DataEncoded = slices.Concat([]byte(`{"items":[`), raws[0], []byte(","), rawItem(follower[0], 1), []byte("]}"))
		read, err := Unpack(e)
		if err != nil || read[0].Err != nil || !errors.Is(read[1].Err, ErrInvalid) {
			t.Errorf("%s: %v, %v", typ, read, err)
		}
	}
}

func TestTheSizeOfAnItemIsThatOfAllItsData(t *testing.T) {
	t.Parallel()
	many := json.RawMessage(`"` + strings.Repeat("x", 10_000) + `"`)
	for name, data := range map[string]any{
		"payload": &Run{Payload: many}, "parents": &Run{Parents: many}, "event": &Run{Event: many}, "output": &Completed{Output: many},
		"new payload": &Created{Payload: many}, "event of a new job": &Created{Event: many},
		"after": &Created{After: make([]uuid.UUID, 300)}, "inputs": &Created{Inputs: make([]Input, 100)},
		"message": &Failed{Message: string(many)},
	} {
		it := anItem(t, "x", Meta{ID: "1"}, data)
		if n := it.Size(); n < len(it.Data())*4/5 {
			t.Errorf("%s: %d of %d bytes", name, n, len(it.Data()))
		}
	}
}

func TestAnItemHasAnID(t *testing.T) {
	t.Parallel()
	if it, err := New(TypeCommand, Meta{JobID: uuid.New()}, Command{}); err == nil {
		t.Errorf("a command without one is %s", it)
	}
}

// The scheduler stores a job that it cannot read as FAILED, so it has to know which it is.
func TestAnUnreadableItemKnowsItsJob(t *testing.T) {
	t.Parallel()
	events, _ := Pack(alike(t, TypeCreated, 1))
	e, job := events[0].Clone(), uuid.New()
	e.DataEncoded = []byte(`{"items":[{"traceId":"` + uuid.NewString() + `","jobId":"` + job.String() + `","jobType":7}]}`)
	items, err := Unpack(e)
	if err != nil || items[0].Err != nil || items[0].JobID() != job || items[0].TraceID() == uuid.Nil {
		t.Fatalf("%v, %v", items, err)
	}
	if _, err := Decode[Created](items[0]); !errors.Is(err, ErrInvalid) {
		t.Errorf("it is read: %v", err)
	}
}
