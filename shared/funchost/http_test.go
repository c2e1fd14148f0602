package funchost

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkaevent"
)

func TestOneEventARequest(t *testing.T) {
	t.Parallel()
	const structured = "application/cloudevents+json"
	whole := `{"specversion":"1.0","id":"1","source":"/test","type":"t","data":{"a":1}}`
	for _, tt := range []struct {
		name    string
		headers []string
		body    string
		status  int
		want    string // data of the handled event
	}{
		{"binary", binary("1"), `{"a":1}`, 202, `{"a":1}`},
		{"binary without data", binary("1")[:8], ``, 202, ``},
		{"structured", []string{"Content-Type", structured}, whole, 202, `{"a":1}`},
		{"structured with a parameter", []string{"Content-Type", structured + "; charset=UTF-8"}, whole, 202, `{"a":1}`},
		{"structured in capitals", []string{"Content-Type", "Application/CloudEvents+JSON"}, whole, 202, `{"a":1}`},
		{"structured and base64", []string{"Content-Type", structured},
			`{"specversion":"1.0","id":"1","source":"/test","type":"t","data_base64":"aGk="}`, 202, `hi`},
		{"a batch", []string{"Content-Type", "application/cloudevents-batch+json"}, "[" + whole + "]", 415, ``},
		{"another format", []string{"Content-Type", "application/cloudevents+xml"}, "<event/>", 415, ``},
		{"no event at all", []string{"Content-Type", "application/json"}, `{}`, 415, ``},
		{"nothing", nil, ``, 415, ``},
		{"structured, no JSON", []string{"Content-Type", structured}, `{"specversion`, 400, ``},
		{"structured, no object", []string{"Content-Type", structured}, `null`, 400, ``},
		{"structured, something after it", []string{"Content-Type", structured}, whole + "{}", 400, ``},
		{"structured, not UTF-8", []string{"Content-Type", structured}, strings.Replace(whole, "/test", "/\xff", 1), 400, ``},
		{"structured, data twice", []string{"Content-Type", structured},
			strings.Replace(whole, `"data"`, `"data_base64":"aGk=","data"`, 1), 400, ``},
		{"no id", []string{"Content-Type", structured}, strings.Replace(whole, `"id":"1",`, "", 1), 400, ``},
		{"no type, binary", append(binary("1")[:6:6], "Content-Type", "application/json"), `{}`, 400, ``},
		{"another version", append([]string{"Ce-Specversion", "2.0"}, binary("1")[2:]...), `{}`, 400, ``},
		{"an old version", append([]string{"Ce-Specversion", "0.3"}, binary("1")[2:]...), `{}`, 400, ``},
		{"a bad time", append(binary("1"), "Ce-Time", "yesterday"), `{}`, 400, ``},
		{"a header twice", append(binary("1"), "Ce-Subject", "a", "Ce-Subject", "b"), `{}`, 400, ``},
		{"a bad escape", append(binary("1"), "Ce-Subject", "50%"), `{}`, 202, `{}`}, // is literal
		{"an escape that is not UTF-8", append(binary("1"), "Ce-Subject", "%FF"), `{}`, 202, `{}`},
		{"at the limit", binary("1"), strings.Repeat(" ", kafkaevent.MessageLimit), 202, strings.Repeat(" ", kafkaevent.MessageLimit)},
		{"above the limit", binary("1"), strings.Repeat(" ", kafkaevent.MessageLimit+1), 413, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var handled atomic.Pointer[jobevent.Item]
			s := newSite(t, Config{}, Function{Handle: func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
				handled.Store(&batch[0])
				return nil, nil
			}})
			got := s.do("POST", "/", tt.body, tt.headers...)
			if got.status != tt.status {
				t.Fatalf("answered %+v, want %d", got, tt.status)
			}
			e := handled.Load()
			if (e != nil) != (tt.status == 202) {
				t.Fatalf("handled: %v", e)
			}
			if e != nil && (string(e.Data()) != tt.want || got.body != "") {
				t.Errorf("data %q, answer %q", e.Data(), got.body)
			}
		})
	}
}

func TestAttributesAreDecoded(t *testing.T) {
	t.Parallel()
	var subject, note any
	s := newSite(t, Config{}, Function{Handle: func(_ context.Context, batch []jobevent.Item) ([]jobevent.Item, error) {
		subject, note = batch[0].Subject(), batch[0].Event().Extensions()["note"]
		return nil, nil
	}})
	s.do("POST", "/", "{}", append(binary("1"), "Ce-Subject", "Euro%20%E2%82%AC%25", "Ce-Note", `"say \"hi\""`)...)
	if subject != "Euro €%" || note != `say "hi"` {
		t.Errorf("subject %q, note %q", subject, note)
	}
}

func TestTheStatusDecidesWhetherAnEventIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		handle Handle
		status int
	}{
		{"invalid", func(context.Context, []jobevent.Item) ([]jobevent.Item, error) {
			return nil, fmt.Errorf("no such thing: %w", jobevent.ErrInvalid)
		}, 400},
		{"store away", func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { return nil, errors.New("away") }, 503},
		{"always panics", func(context.Context, []jobevent.Item) ([]jobevent.Item, error) { panic("no") }, 400},
		{"no handler", nil, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, Config{}, Function{Handle: tt.handle, Tick: neverTick})
			got := s.do("POST", "/", "{}", binary("1")...)
			if got.status != tt.status || (got.retryAfter != "") != (tt.status == 503) {
				t.Errorf("answered %+v", got)
			}
		})
	}
}

func TestAnEventIsHandledAfterATemporaryPanic(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	s := newSite(t, Config{}, Function{Handle: func(context.Context, []jobevent.Item) ([]jobevent.Item, error) {
		if calls.Add(1) < maxPanics {
			panic("not yet")
		}
		return nil, nil
	}})
	if got := s.do("POST", "/", "{}", binary("1")...); got.status != 202 {
		t.Errorf("answered %+v", got)
	}
}

func TestTheAnswerComesAfterTheEventsThatFollowArePublished(t *testing.T) {
	t.Parallel()
	job := uuid.New()
	s := newSite(t, Config{}, Function{Handle: func(_ context.Context, _ []jobevent.Item) ([]jobevent.Item, error) {
		return []jobevent.Item{ofJob(t, jobevent.TypeStatus, "v1", job)}, nil
	}})
	if got := s.do("POST", "/", "{}", append(binary("cause"), "Ce-Subject", job.String())...); got.status != 202 {
		t.Fatalf("answered %+v", got)
	}
	e, times := s.sink.get("v1")
	if times != 1 || e.Extensions()[jobevent.ExtCausationID] != "cause" {
		t.Errorf("the sink got %v, %d times", e, times)
	}
}

func TestManyEventsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{}, Function{Handle: func(_ context.Context, batch []jobevent.Item) (events []jobevent.Item, err error) {
		for _, item := range batch {
			events = append(events, ofJob(t, jobevent.TypeStatus, "follows from "+item.ID(), uuid.New()))
		}
		return events, nil
	}})
	var all sync.WaitGroup
	for _, id := range numbers(0, 300) {
		all.Go(func() {
			if got := s.do("POST", "/", "{}", binary(id)...); got.status != 202 {
				t.Errorf("answered %+v", got)
			}
		})
	}
	all.Wait()
	s.sink.wait(t, 300)
}

func TestOtherRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, Config{}, Function{Tick: neverTick})
	if got := s.do("GET", "/", ""); got.status != 405 {
		t.Errorf("GET answered %+v", got)
	}
	if got := s.do("POST", "/elsewhere", ""); got.status != 404 {
		t.Errorf("POST elsewhere answered %+v", got)
	}
}

func neverTick(context.Context) ([]jobevent.Item, time.Duration, error) {
	return nil, 0, errors.New("must not tick")
}
