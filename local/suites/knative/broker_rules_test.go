package knative

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/goccy/go-yaml"

	"github.com/jobweaver/jobweaver/shared/httpevent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestATriggersFiltersDecideWhatItReceives(t *testing.T) {
	t.Parallel()
	e := newEvent("a", "io.x.done.v1")
	e.SetExtension("queue", "mail")
	for spec, want := range map[string]bool{
		``: true,
		`{filters: [{exact: {type: io.x.done.v1}}]}`:                                   true,
		`{filters: [{exact: {type: io.x.done.v1, queue: other}}]}`:                     false,
		`{filters: [{exact: {absent: ""}}]}`:                                           false,
		`{filters: [{prefix: {type: io.x.}}, {suffix: {type: .v1}}]}`:                  true,
		`{filters: [{prefix: {type: io.x.}}, {suffix: {type: .v2}}]}`:                  false,
		`{filters: [{any: [{exact: {type: no}}, {exact: {queue: mail}}]}]}`:            true,
		`{filters: [{all: [{exact: {type: no}}, {exact: {queue: mail}}]}]}`:            false,
		`{filters: [{not: {exact: {queue: mail}}}]}`:                                   false,
		`{filter: {attributes: {type: io.x.done.v1}}}`:                                 true,
		`{filter: {attributes: {type: io.x.done.v1, queue: other}}}`:                   false,
		`{filter: {attributes: {type: no}}, filters: [{exact: {type: io.x.done.v1}}]}`: true,
	} {
		var o object
		if err := yaml.Unmarshal([]byte(spec), &o.Spec); err != nil {
			t.Fatal(err)
		}
		if got, err := passes(o, e); got != want || err != nil {
			t.Errorf("%q passes: %v, %v", spec, got, err)
		}
	}
	if _, err := passes(object{Spec: spec{Filters: []filter{{CESQL: "true"}}}}, e); err == nil {
		t.Error("a dialect that the test does not speak passes for one that it does")
	}
}

func TestADeliveryIsReadAsKnativeReadsIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"PT0.2S": 200 * time.Millisecond, "PT45S": 45 * time.Second, "PT1M30S": 90 * time.Second, "P1DT2H": 26 * time.Hour,
	} {
		if got, err := isoDuration(text); got != want || err != nil {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"500ms", "PT", "P", "1S", "PT1", ""} {
		if got, err := isoDuration(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
	grows := patience{delay: 100 * time.Millisecond}
	steady := patience{delay: 100 * time.Millisecond, linear: true}
	for n, want := range []time.Duration{100, 200, 400, 800} {
		if got := grows.before(n + 1); got != want*time.Millisecond {
			t.Errorf("before retry %d it waits %s", n+1, got)
		}
	}
	if got := steady.before(3); got != 300*time.Millisecond {
		t.Errorf("before retry 3 it waits %s", got)
	}
}

// subscriber answers each try as configured, the last answer repeating, and keeps what it got.
type subscriber struct {
	answers []int
	body    string

	mu  sync.Mutex
	got []http.Header
}

func (s *subscriber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, r.Header)
	w.WriteHeader(s.answers[min(len(s.got), len(s.answers))-1])
	_, _ = io.WriteString(w, s.body)
}

func (s *subscriber) tries() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func newEvent(id, typ string) event.Event {
	e := event.New()
	e.SetID(id)
	e.SetType(typ)
	e.SetSource("/test")
	return e
}

func TestARefusedEventIsRetriedOrGoesToTheDeadLetters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		answers []int
		body    string
		tries   int
		dead    string // code of the dead letter; empty: none
	}{
		{"taken", []int{202}, "", 1, ""},
		{"away, then taken", []int{503, 500, 404, 409, 429, 408, 200}, "", 7, ""},
		{"never taken", []int{503}, "", 8, "503"},
		{"refused", []int{400}, "", 1, "400"},
		{"not allowed", []int{401}, "", 1, "401"},
		{"not an event in the answer", []int{200}, "ok", 1, "500"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, dead := &subscriber{answers: tt.answers, body: tt.body}, &subscriber{answers: []int{202}}
			b := newBroker(t, &trigger{
				name: "tested", subscriber: serve(t, s), deadLetter: serve(t, dead), seats: make(chan struct{}, 1),
				patience: patience{retry: 7, delay: time.Microsecond, timeout: time.Minute},
			})
			b.take(newEvent("a b\"%", "t"))
			b.work.Wait()
			got := s.tries()
			if len(got) != tt.tries || got[0].Get("Prefer") != "reply" || got[0].Get("Ce-Knativearrivaltime") == "" {
				t.Errorf("%d tries, the first %v", len(got), got[0])
			}
			if id := got[0].Get("Ce-Id"); id != "a%20b%22%25" {
				t.Errorf("its id arrives as %s", id)
			}
			letters := dead.tries()
			if tt.dead == "" != (len(letters) == 0) {
				t.Fatalf("%d dead letters", len(letters))
			}
			if tt.dead != "" && (letters[0].Get("Ce-Knativeerrorcode") != tt.dead || len(b.undelivered()) != 1) {
				t.Errorf("the dead letter is %v, noted: %v", letters[0], b.undelivered())
			}
		})
	}
}

func TestAnEventInAnAnswerGoesToTheBroker(t *testing.T) {
	t.Parallel()
	s := &subscriber{answers: []int{202}}
	replying := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, err := httpevent.Binary(r.Header, nil)
		if err != nil || e.Type() != "asked" {
			s.ServeHTTP(w, r)
			return
		}
		for name, value := range map[string]string{"Specversion": "1.0", "Id": "2", "Type": "answer", "Source": "/s"} {
			w.Header().Set("Ce-"+name, value)
		}
	})
	b := newBroker(t, &trigger{name: "all", subscriber: serve(t, replying), seats: make(chan struct{}, 1)})
	b.triggers[0].patience.timeout = time.Minute
	b.take(newEvent("1", "asked"))
	b.work.Wait()
	if got := s.tries(); len(got) != 1 || got[0].Get("Ce-Type") != "answer" {
		t.Errorf("received %v", got)
	}
}

func newBroker(t *testing.T, triggers ...*trigger) *broker {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &broker{
		triggers: triggers, mishaps: newMishaps(rand.New(rand.NewPCG(1, 0)), nil), client: &http.Client{Transport: transport},
		namespace: "test", ctx: context.WithoutCancel(t.Context()), taken: map[string]int{},
	}
}

func TestAPatchChangesOnlyItsTargets(t *testing.T) {
	t.Parallel()
	objects := func() (all []raw) {
		const text = `[{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {list: [{x: 1}]}},
			{apiVersion: v1, kind: Service, metadata: {name: b}, spec: {}}]`
		if err := yaml.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	for text, want := range map[string]string{
		`{op: add, path: /spec/list/0/y, value: 2}`:     "map[list:[map[x:1 y:2]]]",
		`{op: add, path: /spec/list/-, value: 2}`:       "map[list:[map[x:1] 2]]",
		`{op: remove, path: /spec/list}`:                "map[]",
		`{op: replace, path: /spec/list/0, value: 2}`:   "map[list:[2]]",
		`{op: add, path: /spec/a~1b, value: 2}`:         "map[a/b:2 list:[map[x:1]]]",
		`{op: add, path: /spec/list/7/y, value: 2}`:     "error",
		`{op: add, path: /spec/none/inner/y, value: 2}`: "error",
	} {
		all := objects()
		p := patch{Patch: "[" + text + "]"}
		p.Target.Group, p.Target.Kind = "apps", "Deployment"
		got := "error"
		if err := p.apply("", all); err == nil {
			got = fmt.Sprint(all[0]["spec"])
		}
		if got != want || fmt.Sprint(all[1]["spec"]) != "map[]" {
			t.Errorf("%s makes %s, and of another %v", text, got, all[1]["spec"])
		}
	}
}

func TestARecordOfASinkIsWhereItsKeyBelongs(t *testing.T) {
	t.Parallel()
	for partition := range int32(jobevent.RunPartitions) {
		e := newEvent("1", jobevent.TypeRun)
		e.SetExtension(jobevent.ExtPartitionKey, jobevent.RoutingKey(partition))
		record, err := recordOf(e, jobevent.TopicRun)
		if err != nil || jobevent.PartitionOf(string(record.Key), jobevent.RunPartitions) != partition || record.Value != nil {
			t.Errorf("for partition %d: %+v, %v", partition, record, err)
		}
	}
}
