package funchost

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/funchost/sink"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// recordingSink takes all items but those whose names it fails or refuses, and records the others by name: the id,
// after a plus sign for an item in an event of many.
type recordingSink struct {
	t               *testing.T
	failed, refused []string
	taken           []string
}

func (s *recordingSink) send(_ context.Context, events []event.Event) (sent []event.Event, err error) {
	var left sink.Unsent
	for _, e := range events {
		var names []string
		for _, it := range unpacked(s.t, e) {
			name := it.ID()
			if it.Shared() {
				name = "+" + name
			}
			names = append(names, name)
		}
		is := func(name string) bool { return slices.Contains(names, name) }
		switch {
		case slices.ContainsFunc(s.refused, is):
		case slices.ContainsFunc(s.failed, is):
			left.Events, left.Err = append(left.Events, e), errors.New("away")
		default:
			sent, s.taken = append(sent, e), append(s.taken, names...)
		}
	}
	if left.Err == nil {
		return sent, nil
	}
	return sent, &left
}

func (s *recordingSink) publisher(over string) *publisher {
	return &publisher{
		meter: telemetry.NewMeter("tested"), over: over, trouble: telemetry.Trouble{What: "publish"}, send: s.send,
	}
}

// someStatuses returns a dead letter and a status of job a, and statuses of the jobs b and c.
func someStatuses(t *testing.T) []jobevent.Item {
	t.Helper()
	a := uuid.New()
	return []jobevent.Item{
		ofJob(t, jobevent.TypeStatus, "a", a), ofJob(t, jobevent.TypeDeadLettered, "dead", a),
		ofJob(t, jobevent.TypeStatus, "b", uuid.New()), ofJob(t, jobevent.TypeStatus, "c", uuid.New()),
	}
}

func TestBehindASinkProjectionReceivesStatusesTogetherAfterThePublicOnes(t *testing.T) {
	t.Parallel()
	s := recordingSink{t: t}
	if err := s.publisher(telemetry.OverHTTP).publish(t.Context(), someStatuses(t)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"dead", "b", "c", "a", "+b", "+c", "+a"}; !slices.Equal(s.taken, want) {
		t.Errorf("the sink took %v", s.taken)
	}
}

// Projection receives all of them, and a status still comes after the other items of its job.
func TestStatusEventsChoosesWhichStatusesAreForAnyone(t *testing.T) {
	t.Parallel()
	job, gone := uuid.New(), uuid.New()
	statusOf := func(job uuid.UUID, id string, status jobstate.Status) jobevent.Item {
		return itemOf(t, jobevent.TypeStatus, id, job, jobevent.RawStatus{Status: jobevent.Status{JobID: job, Status: string(status)}})
	}
	deleted, err := jobevent.NewDeleted(jobevent.Meta{Function: "test", JobID: gone}, 3)
	if err != nil {
		t.Fatal(err)
	}
	items := []jobevent.Item{
		ofJob(t, jobevent.TypeDeadLettered, "dead", job), statusOf(job, "failed", jobstate.Failed),
		statusOf(uuid.New(), "running", jobstate.Running), statusOf(uuid.New(), "done", jobstate.Completed),
		statusOf(uuid.New(), "cancelled", jobstate.Cancelled), deleted,
	}
	for events, c := range map[StatusEvents]struct{ once, behindASink []string }{
		EachStatus: {
			[]string{"dead", "running", "done", "cancelled", deleted.ID(), "failed"},
			[]string{"+running", "+done", "+cancelled", "+" + deleted.ID(), "+failed"},
		},
		EndsOnly: {
			[]string{"dead", "+running", "done", "cancelled", deleted.ID(), "failed"},
			[]string{"+done", "+cancelled", "+" + deleted.ID(), "+failed"},
		},
		NoStatus: {[]string{"dead", "+running", "+done", "+cancelled", "+" + deleted.ID(), "+failed"}, nil},
	} {
		for over, want := range map[string][]string{
			telemetry.OverKafka: c.once, telemetry.OverHTTP: slices.Concat(c.once, c.behindASink),
		} {
			s := recordingSink{t: t}
			p := s.publisher(over)
			p.public = events
			if err := p.publish(t.Context(), items); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.taken, want) {
				t.Errorf("%s over %s: published %v, not %v", events, over, s.taken, want)
			}
		}
	}
}

// With every mode: otherwise the API would not ask for the dead letter that is lost.
func TestAStatusForProjectionWaitsForTheOtherItemsOfItsJob(t *testing.T) {
	t.Parallel()
	for _, events := range []StatusEvents{EachStatus, EndsOnly, NoStatus} {
		s := recordingSink{t: t, failed: []string{"dead"}}
		p, items := s.publisher(telemetry.OverHTTP), someStatuses(t)
		p.public = events
		err := p.publish(t.Context(), items)
		if err == nil || slices.Contains(s.taken, "+a") || slices.Contains(s.taken, "a") {
			t.Errorf("%s: without the dead letter the sink took %v, %v", events, s.taken, err)
		}
		s.failed = nil
		if err := p.publish(t.Context(), unpublished(items, err)); err != nil || s.taken[len(s.taken)-1] != "+a" {
			t.Errorf("%s: the sink took %v, %v", events, s.taken, err)
		}
	}
}

// Otherwise the API would not ask for the event that users miss.
func TestAStatusWhosePublicEventIsRefusedIsHeldBack(t *testing.T) {
	t.Parallel()
	for refused, want := range map[string][]string{
		"dead": {"b", "c", "+b", "+c"},
		"a":    {"dead", "b", "c", "+b", "+c"},
		"b":    {"dead", "c", "a", "+c", "+a"},
		"+b":   {"dead", "b", "c", "a"}, // with the event that has it
	} {
		s := recordingSink{t: t, refused: []string{refused}}
		if err := s.publisher(telemetry.OverHTTP).publish(t.Context(), someStatuses(t)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.taken, want) {
			t.Errorf("without %s the sink took %v", refused, s.taken)
		}
	}
}

// What is left has each status that functions lack. Other statuses do not wait for one that fails.
func TestWhatASinkDoesNotAcceptIsPublishedAgain(t *testing.T) {
	t.Parallel()
	for failed, want := range map[string]struct{ first, then []string }{
		"dead": {[]string{"b", "c", "+b", "+c"}, []string{"dead", "a", "+a"}},
		"a":    {[]string{"dead", "b", "c", "+b", "+c"}, []string{"a", "+a"}},
		"b":    {[]string{"dead", "c", "+c"}, []string{"b", "a", "+b", "+a"}},
		"+b":   {[]string{"dead", "b", "c", "a"}, []string{"+b", "+c", "+a"}},
	} {
		s := recordingSink{t: t, failed: []string{failed}}
		p, items := s.publisher(telemetry.OverHTTP), someStatuses(t)
		err := p.publish(t.Context(), items)
		if err == nil || !slices.Equal(s.taken, want.first) {
			t.Errorf("without %s the sink took %v, %v", failed, s.taken, err)
		}
		s.failed, s.taken = nil, nil
		if err := p.publish(t.Context(), unpublished(items, err)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.taken, want.then) {
			t.Errorf("after %s the sink took %v", failed, s.taken)
		}
	}
}
