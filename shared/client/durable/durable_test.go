package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/client/durable"
)

// store keeps what attempts save.
type store struct {
	data     json.RawMessage
	number   int64
	attempts int

	mu    sync.Mutex
	steps map[string]durable.Kept
	saves int // of steps
	reads int

	fails  error // of each save
	unread error // of each read
}

// attempt returns the checkpoint of the next attempt.
func (s *store) attempt() *durable.Checkpoint {
	s.number = 0
	s.attempts++
	c := durable.New(s.data, func(number int64, data json.RawMessage) error {
		if s.fails != nil {
			return s.fails
		}
		if number <= s.number {
			return fmt.Errorf("number %d after %d", number, s.number)
		}
		s.number, s.data = number, data
		return nil
	})
	steps := durable.Steps{Save: s.save}
	if s.attempts > 1 {
		steps.Read = s.read
	}
	c.KeepSteps(steps)
	return c
}

func (s *store) save(step durable.Kept) (durable.Kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return durable.Kept{}, s.fails
	}
	s.saves++
	if s.steps == nil {
		s.steps = map[string]durable.Kept{}
	}
	if kept, known := s.steps[step.Name]; known {
		return kept, nil
	}
	s.steps[step.Name] = step
	return step, nil
}

func (s *store) read(context.Context) ([]durable.Kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return slices.Collect(maps.Values(s.steps)), s.unread
}

func (s *store) want(t *testing.T, data string) {
	t.Helper()
	if string(s.data) != data {
		t.Errorf("stored is %s, want %s", s.data, data)
	}
}

// charge returns a step's function that counts its calls.
func charge(calls *int, result any, err error) func(context.Context) (any, error) {
	return func(context.Context) (any, error) { *calls++; return result, err }
}

func TestACheckpointIsTheHandlersOwnJSON(t *testing.T) {
	t.Parallel()
	var s store
	c := s.attempt()
	var n int
	if found, err := c.Load(&n); found || err != nil {
		t.Errorf("a first attempt loads %v, %v", found, err)
	}
	calls := 0
	if _, err := durable.Step(t.Context(), c, "a", charge(&calls, nil, nil)); err != nil {
		t.Fatal(err)
	}
	s.want(t, "") // a step is no part of it
	for _, save := range []struct {
		value any
		data  string
	}{
		{7, `7`}, {map[string]any{"html": "<b>"}, `{"html":"<b>"}`}, {8, `8`},
	} {
		if err := c.Save(save.value); err != nil {
			t.Fatal(err)
		}
		s.want(t, save.data)
	}
	next := s.attempt()
	if found, err := next.Load(&n); !found || err != nil || n != 8 {
		t.Errorf("the next attempt loads %d, %v, %v", n, found, err)
	}
	if _, err := durable.Step(t.Context(), next, "a", charge(&calls, nil, nil)); err != nil || calls != 1 {
		t.Errorf("a result of null is not remembered: %d calls, %v", calls, err)
	}
	if err := next.Save(nil); err != nil {
		t.Fatal(err)
	}
	if found, err := s.attempt().Load(&n); found || err != nil {
		t.Errorf("after null was saved it loads %v, %v", found, err)
	}
}

func TestStepsAreReadOnceAndNotInAFirstAttempt(t *testing.T) {
	t.Parallel()
	var s store
	calls := 0
	for _, reads := range []int{0, 1} {
		c := s.attempt()
		if err := c.Use(t.Context(), "wait"); err != nil || s.reads != 0 {
			t.Errorf("%v, %d reads", err, s.reads)
		}
		for _, name := range []string{"a", "b"} {
			if _, err := durable.Step(t.Context(), c, name, charge(&calls, 1, nil)); err != nil {
				t.Fatal(err)
			}
		}
		if s.reads != reads || s.saves != 2 || calls != 2 {
			t.Errorf("%d reads, %d saves, %d calls", s.reads, s.saves, calls)
		}
	}
	c := s.attempt()
	s.unread = errors.ErrUnsupported
	if _, err := durable.Step(t.Context(), c, "a", charge(&calls, 1, nil)); !errors.Is(err, errors.ErrUnsupported) || calls != 2 {
		t.Errorf("%v, %d calls", err, calls)
	}
	s.unread = nil
	if _, err := durable.Step(t.Context(), c, "a", charge(&calls, 1, nil)); err != nil || s.reads != 3 || calls != 2 {
		t.Errorf("a step whose read has failed is not tried again: %v, %d reads, %d calls", err, s.reads, calls)
	}
}

func TestOfTwoAttemptsThatOverlapTheFirstSaveCounts(t *testing.T) {
	t.Parallel()
	var s store
	lost, next := s.attempt(), s.attempt()
	calls := 0
	for _, c := range []*durable.Checkpoint{next, lost} {
		got, err := durable.Step(t.Context(), c, "a", func(context.Context) (int, error) { calls++; return calls, nil })
		if err != nil || got != 1 {
			t.Errorf("%d, %v", got, err)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

func TestAStepThatWasASleepIsAnErrorAndSoIsTheReverse(t *testing.T) {
	t.Parallel()
	var s store
	calls := 0
	c := s.attempt()
	if _, err := durable.Step(t.Context(), c, "a", charge(&calls, 1, nil)); err != nil {
		t.Fatal(err)
	}
	var snooze *durable.Snooze
	if err := durable.Sleep(t.Context(), c, "b", time.Hour); !errors.As(err, &snooze) {
		t.Fatal(err)
	}
	c = s.attempt()
	var step, sleep *durable.Failure
	_, err := durable.Step(t.Context(), c, "b", charge(&calls, 1, nil))
	if !errors.As(err, &step) || !errors.As(durable.Sleep(t.Context(), c, "a", time.Hour), &sleep) ||
		step.Code != durable.StepRepeated || sleep.Code != durable.StepRepeated || calls != 1 {
		t.Errorf("%v, %v, %d calls", step, sleep, calls)
	}
}

func TestAWorkerThatKeepsNoStepsRunsNone(t *testing.T) {
	t.Parallel()
	calls := 0
	c := durable.New(nil, func(int64, json.RawMessage) error { return nil })
	var step, sleep *durable.Failure
	_, err := durable.Step(t.Context(), c, "a", charge(&calls, 1, nil))
	if !errors.As(err, &step) || !errors.As(durable.Sleep(t.Context(), c, "b", time.Hour), &sleep) ||
		step.Code != durable.NoSteps || sleep.Code != durable.NoSteps || calls != 0 {
		t.Errorf("%v, %v, %d calls", step, sleep, calls)
	}
}

func TestAStepThatFailsIsNotRemembered(t *testing.T) {
	t.Parallel()
	var s store
	calls := 0
	c := s.attempt()
	for range 2 { // a handler may try it again
		if _, err := durable.Step(t.Context(), c, "a", charge(&calls, nil, errors.ErrUnsupported)); !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	}
	if len(s.steps) != 0 {
		t.Errorf("stored is %v", s.steps)
	}
	got, err := durable.Step(t.Context(), s.attempt(), "a", charge(&calls, "id", nil))
	if err != nil || got != "id" || calls != 3 {
		t.Errorf("%v, %v after %d calls", got, err, calls)
	}
}

func TestASecondStepOfTheSameNameIsAnError(t *testing.T) {
	t.Parallel()
	var s store
	calls := 0
	for range 2 { // an attempt in which it runs, and one in which it is remembered
		c := s.attempt()
		if _, err := durable.Step(t.Context(), c, "a", charge(&calls, 1, nil)); err != nil {
			t.Fatal(err)
		}
		var wrong *durable.Failure
		if _, err := durable.Step(t.Context(), c, "a", charge(&calls, 1, nil)); !errors.As(err, &wrong) || wrong.Code != durable.StepRepeated {
			t.Error(err)
		}
		if err := durable.Sleep(t.Context(), c, "a", time.Hour); !errors.As(err, &wrong) {
			t.Error(err)
		}
	}
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

func TestAStepReturnsItsResultAsItIsRemembered(t *testing.T) {
	t.Parallel()
	type receipt struct {
		ID     string
		secret string
	}
	var s store
	run := func(context.Context) (receipt, error) { return receipt{"r-1", "gone"}, nil }
	for range 2 {
		got, err := durable.Step(t.Context(), s.attempt(), "a", run)
		if err != nil || got.ID != "r-1" || got.secret != "" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if _, err := durable.Step(t.Context(), s.attempt(), "a", func(context.Context) (int, error) { return 1, nil }); err == nil {
		t.Error("a result of another type is decoded")
	}
	var wrong *durable.Failure
	_, err := durable.Step(t.Context(), s.attempt(), "b", func(context.Context) (any, error) { return make(chan int), nil })
	if !errors.As(err, &wrong) || wrong.Code != durable.NotJSON {
		t.Error(err)
	}
}

func TestWhatDoesNotFitFailsTheJobWithItsBeginning(t *testing.T) {
	t.Parallel()
	var s store
	c := s.attempt()
	calls := 0
	_, err := durable.Step(t.Context(), c, "large", charge(&calls, "receipt "+strings.Repeat("x", durable.MaxResult), nil))
	var wrong *durable.Failure
	if !errors.As(err, &wrong) || wrong.Code != durable.ResultTooLarge || len(wrong.Message) > 2000 ||
		!strings.Contains(wrong.Message, `step "large" has run`) || !strings.Contains(wrong.Message, `"receipt xx`) {
		t.Errorf("%.300v", err)
	}
	if _, err = durable.Step(t.Context(), c, "fits", charge(&calls, strings.Repeat("x", durable.MaxResult-2), nil)); err != nil {
		t.Errorf("%.300v", err)
	}
	s.fails = &durable.Failure{Code: "API.INVALID_JOB_REQUEST", Message: "steps: a job has at most 1000"}
	_, err = durable.Step(t.Context(), c, "refused", charge(&calls, 7, nil))
	if !errors.As(err, &wrong) || wrong.Code != "API.INVALID_JOB_REQUEST" ||
		!strings.Contains(wrong.Message, "at most 1000; the result begins with 7") || calls != 3 {
		t.Errorf("%v after %d calls", err, calls)
	}
	s.fails = nil
	if err := c.Save(strings.Repeat("x", durable.MaxBytes)); !errors.As(err, &wrong) || wrong.Code != durable.TooLarge {
		t.Error(err)
	}
	if len(s.data) != 0 {
		t.Errorf("stored are %d bytes", len(s.data))
	}
}

func TestAResultThatIsNotStoredIsNotRemembered(t *testing.T) {
	t.Parallel()
	s := store{fails: durable.ErrOver}
	c := s.attempt()
	calls := 0
	if _, err := durable.Step(t.Context(), c, "a", charge(&calls, 1, nil)); !errors.Is(err, durable.ErrOver) {
		t.Error(err)
	}
	s.fails = nil
	got, err := durable.Step(t.Context(), s.attempt(), "a", charge(&calls, 2.0, nil))
	if err != nil || got != 2.0 || calls != 2 {
		t.Errorf("%v, %v after %d calls", got, err, calls)
	}
}

func TestAStepThatBeginsAfterTheEndDoesNotRun(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancelCause(t.Context())
	end(errors.ErrUnsupported)
	var s store
	calls := 0
	c := s.attempt()
	_, err := durable.Step(ended, c, "a", charge(&calls, 1, nil))
	if late := durable.Sleep(ended, c, "b", time.Hour); !errors.Is(err, errors.ErrUnsupported) || !errors.Is(late, errors.ErrUnsupported) || calls != 0 {
		t.Errorf("%v and %v after %d calls", err, late, calls)
	}
}

func TestASleepEndsAtItsInstantWhateverAttemptsThereAre(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		var s store
		for _, c := range []struct{ after, want time.Duration }{
			{0, 30 * day}, {15 * day, 25 * day}, {24 * day, day}, {day, 0}, {day, 0},
		} {
			<-time.After(c.after)
			err := durable.Sleep(t.Context(), s.attempt(), "cool off", 40*day)
			var snooze *durable.Snooze
			if c.want == 0 && err != nil || c.want > 0 && (!errors.As(err, &snooze) || snooze.For != c.want) || s.saves != 1 {
				t.Errorf("%v later: %v, %d saves", c.after, err, s.saves)
			}
		}
	})
}

func TestStepsMayRunSideBySide(t *testing.T) {
	t.Parallel()
	var s store
	c := s.attempt()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if _, err := durable.Step(t.Context(), c, fmt.Sprint(i), func(context.Context) (int, error) { return i, nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	next := s.attempt()
	for i := range 50 {
		got, err := durable.Step(t.Context(), next, fmt.Sprint(i), func(context.Context) (int, error) { return -1, nil })
		if err != nil || got != i {
			t.Errorf("step %d has %d, %v", i, got, err)
		}
	}
}

// A job runs through its steps in attempts that die at any point: each step whose result was stored runs once, and a
// handler continues even if its steps have changed between the attempts.
func TestEachStoredStepRunsOnceWhereverAttemptsDie(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var s store
		died := errors.New("died")
		stored := map[string]bool{}
		for range rapid.IntRange(1, 8).Draw(rt, "attempts") {
			c := s.attempt()
			names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 1, 5, rapid.ID).Draw(rt, "steps")
			dies := rapid.IntRange(0, 6).Draw(rt, "dies before the save of step")
			for i, name := range names {
				s.fails = nil
				if i >= dies {
					s.fails = died
				}
				ran := false
				got, err := durable.Step(t.Context(), c, name, func(context.Context) (string, error) { ran = true; return name, nil })
				if ran == stored[name] {
					rt.Fatalf("step %s ran: %v, stored before: %v", name, ran, stored[name])
				}
				if ran && s.fails != nil {
					if !errors.Is(err, died) {
						rt.Fatal(err)
					}
					break
				}
				if err != nil || got != name {
					rt.Fatalf("step %s: %q, %v", name, got, err)
				}
				stored[name] = true
			}
		}
	})
}
