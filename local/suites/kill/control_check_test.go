package kill

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
)

// scene is evidence of jobs that each ran once, with the times of dispatch, start and end in seconds.
type scene struct {
	*evidence
	orders []*order
}

func newScene() *scene {
	return &scene{evidence: &evidence{orders: map[string]*order{}, jobs: map[string]*shown{}, ran: map[string][]run{}}}
}

func (s *scene) job(sent, start, end float64) {
	id, key := uuid.Must(uuid.NewV7()).String(), fmt.Sprintf("k%d", len(s.orders))
	o := &order{key: key, id: id, shape: &shape{}}
	s.orders = append(s.orders, o)
	s.evidence.orders[key] = o
	s.jobs[id] = &shown{JobID: id, Status: completed, Attempt: 1, Tags: []string{key}, History: []shownMove{
		{At: when(sent), To: "QUEUED", Attempt: 1}, {At: when(end), From: "QUEUED", To: completed, Attempt: 1},
	}}
	s.ran[id] = []run{{job: id, attempt: 1, key: key, start: when(start), end: when(end)}}
}

func when(seconds float64) time.Time {
	return began.Add(time.Duration(seconds*1000+0.5) * time.Millisecond)
}

func TestTheCheckOfAnOrderingKeyFindsEachViolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lie  func(s *scene)
		find string
	}{
		"nothing":                     {func(*scene) {}, ""},
		"two at once":                 {func(s *scene) { s.ran[s.orders[1].id][0].start = when(1.5) }, "number 1 of line began"},
		"one too soon":                {func(s *scene) { s.jobs[s.orders[1].id].History[1].At = when(6) }, "number 2 of line began"},
		"the handler was still there": {func(s *scene) { s.ran[s.orders[0].id][0].end = when(3.5) }, "number 1 of line began"},
		"the last came first": {func(s *scene) {
			s.ran[s.orders[2].id][0].start, s.ran[s.orders[2].id][0].end = when(0), when(0.5)
		}, "number 2 of line began"},
		"two attempts at once": {func(s *scene) {
			id := s.orders[2].id
			s.ran[id] = append(s.ran[id], run{job: id, attempt: 2, start: when(5.5), end: when(7)})
		}, "before the end of attempt 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.job(1, 1, 2)
			s.job(2.5, 3, 4)
			s.job(4.5, 5, 6)
			c.lie(s)
			s.checkLine(&line{key: "line", orders: s.orders})
			s.wants(t, c.find)
		})
	}
}

func TestTheCheckOfALimitFindsEachViolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lie  func(s *scene)
		find string
	}{
		"nothing":                         {func(*scene) {}, ""},
		"three of two":                    {func(s *scene) { s.job(6, 6.5, 7) }, "as number 3 at work"},
		"a third before the limit":        {func(s *scene) { s.job(0.5, 6.5, 7); s.job(0.6, 6.6, 7) }, ""},
		"one while it was paused":         {func(s *scene) { s.job(12, 13, 14) }, "as number 1 at work"},
		"one that was sent before it was": {func(s *scene) { s.job(9.5, 13, 14) }, ""},
		"five after it was":               {func(s *scene) { manyAt(s, 5, 21) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.job(5, 5.5, 8)
			s.job(5, 5.5, 8)
			l := &limited{subject: "it", of: func(*shape) bool { return true }, phases: []phase{
				{most: 2, asked: when(2), replaced: when(10)}, {most: 0, asked: when(9.9), replaced: when(20)},
				{most: noLimit, asked: when(19.9)},
			}}
			c.lie(s)
			if name == "a third before the limit" {
				for _, o := range s.orders[:2] { // and so did those: there was no limit yet
					s.jobs[o.id].History[0].At = when(0.5)
				}
			}
			s.checkLimit(l)
			s.wants(t, c.find)
		})
	}
}

func TestTheCheckOfARateFindsEachViolation(t *testing.T) {
	t.Parallel()
	l := &limited{subject: "it", of: func(*shape) bool { return true }, phases: []phase{{most: noLimit, startsPerSecond: 10}}}
	steady := newScene()
	for i := range 50 {
		steady.job(float64(i)/10, float64(i)/10+0.01, float64(i)/10+5)
	}
	most, jitter := steady.checkRate(l)
	if steady.wants(t, ""); most != 10 || jitter != 0 {
		t.Errorf("%d in a second, jitter %s", most, jitter)
	}
	manyAt(steady, 3, 2.5)
	steady.checkRate(l)
	steady.wants(t, "as the start number 11 of it in a second, 10 may")
}

func manyAt(s *scene, n int, at float64) {
	for range n {
		s.job(at, at+0.01, at+1)
	}
}
