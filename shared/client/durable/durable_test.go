package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	data   json.RawMessage
	number int64
	fails  error
}

// attempt returns the checkpoint of the next attempt.
func (s *store) attempt() *durable.Checkpoint {
	s.number = 0
	return durable.New(s.data, func(number int64, data json.RawMessage) error {
		if s.fails != nil {
			return s.fails
		}
		if number <= s.number {
			return fmt.Errorf("number %d after %d", number, s.number)
		}
		s.number, s.data = number, data
		return nil
	})
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

func TestACheckpointIsTheHandlersOwnJSONUntilItHasSteps(t *testing.T) {
	t.Parallel()
	var s store
	c := s.attempt()
	var n int
	if found, err := c.Load(&n); found || err != nil {
		t.Errorf("a first attempt loads %v, %v", found, err)
	}
	for _, save := range []struct {
		value any
		data  string
	}{
		{7, `7`}, {map[string]any{"html": "<b>"}, `{"html":"<b>"}`},
		{map[string]any{"$steps": map[string]any{}}, `{"$steps":{},"$data":{"$steps":{}}}`}, // it only looks like steps
		{8, `8`},
	} {
		if err := c.Save(save.value); err != nil {
			t.Fatal(err)
		}
		s.want(t, save.data)
	}
	calls := 0
	if _, err := durable.Step(t.Context(), c, "a", charge(&calls, nil, nil)); err != nil {
		t.Fatal(err)
	}
	s.want(t, `{"$steps":{"a":{"result":null}},"$data":8}`)
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
	s.want(t, "")
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

func TestWhatDoesNotFitIsRefusedBeforeItRunsOrWithItsResult(t *testing.T) {
	t.Parallel()
	var s store
	c := s.attempt()
	calls := 0
	_, err := durable.Step(t.Context(), c, "large", charge(&calls, "receipt "+strings.Repeat("x", durable.MaxBytes), nil))
	var wrong *durable.Failure
	if !errors.As(err, &wrong) || wrong.Code != durable.TooLarge || !strings.Contains(wrong.Message, `"receipt xx`) || len(wrong.Message) > 2000 {
		t.Errorf("%.300v", err)
	}
	if err := c.Save(strings.Repeat("x", durable.MaxBytes-10)); err != nil {
		t.Fatal(err)
	}
	if _, err = durable.Step(t.Context(), c, "none", charge(&calls, nil, nil)); !errors.As(err, &wrong) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	if err := c.Save(strings.Repeat("x", durable.MaxBytes)); !errors.As(err, &wrong) || wrong.Code != durable.TooLarge {
		t.Error(err)
	}
	if len(s.data) != durable.MaxBytes-8 {
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
	if err := c.Save(5); err != nil {
		t.Fatal(err)
	}
	s.want(t, `5`)
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
			if c.want == 0 && err != nil || c.want > 0 && (!errors.As(err, &snooze) || snooze.For != c.want || s.number != 1) {
				t.Errorf("%v later: %v, %d saves", c.after, err, s.number)
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
