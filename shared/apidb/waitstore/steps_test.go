package waitstore_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// keep keeps a step with a result of so many bytes.
func (f fixture) keep(t testing.TB, id uuid.UUID, attempt int, name, result string, bytes int) waitstore.Step {
	t.Helper()
	step := waitstore.Step{Name: name, Attempt: attempt, Sealed: result, Bytes: bytes}
	stored, err := f.Waits.KeepStep(t.Context(), apidb.Everyone, id, step)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func TestTheFirstSaveOfAStepWins(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	if f.ReadJob(t, id).Waits {
		t.Error("the job has steps before one is saved")
	}
	var all sync.WaitGroup
	results := make([]string, 8)
	for i := range results {
		all.Go(func() { results[i] = f.keep(t, id, 1, "charge", fmt.Sprint(i), 1).Sealed })
	}
	all.Wait()
	if slices.Sort(results); results[0] != results[7] {
		t.Errorf("a step has the results %v", results)
	}
	f.become(t, id, jobstate.Failed, 1)
	if again := f.keep(t, id, 2, "charge", "9", 1); again.Sealed != results[0] || again.Attempt != 1 || !f.ReadJob(t, id).Waits {
		t.Errorf("after a retry: %+v", again)
	}
	until, took := time.Now().Add(time.Hour).Truncate(time.Millisecond), int64(12)
	slept, err := f.Waits.KeepStep(t.Context(), apidb.OwnerWith("acme", false), id, waitstore.Step{
		Name: "sleep", Attempt: 2, Until: &until, TookMs: &took, Sealed: "null", Bytes: 4,
	})
	if err != nil || slept.Until == nil || !slept.Until.Equal(until) || *slept.TookMs != 12 || slept.SavedAt.IsZero() || slept.Bytes != 4 {
		t.Errorf("%+v, %v", slept, err)
	}
}

func TestStepsAreOfAJobOfTheOwner(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "acme")
	other := apidb.OwnerWith("other", false)
	for owner, job := range map[apidb.Owner]uuid.UUID{apidb.Everyone: uuid.New(), other: id} {
		step := waitstore.Step{Name: "a", Attempt: 1, Sealed: "1", Bytes: 1}
		if _, err := f.Waits.KeepStep(t.Context(), owner, job, step); !errors.Is(err, apidb.ErrNoJob) {
			t.Errorf("a step of no job: %v", err)
		}
	}
	f.keep(t, id, 1, "a", "1", 1)
	if steps, more, err := f.Waits.StepsAfter(t.Context(), other, id, "", 100); err != nil || len(steps) > 0 || more {
		t.Errorf("another owner reads %v, %v", steps, err)
	}
	f.Exec(t, "delete from jobs where job_id = $1", id)
	if n := apidbtest.One[int](t, f, "select count(*) from steps"); n != 0 {
		t.Errorf("%d steps are left of a deleted job", n)
	}
}

func TestAJobHasSoManyStepsAndSoMuchOfResults(t *testing.T) {
	t.Parallel()
	f := open(t)
	refused := func(id uuid.UUID, name string, bytes int) {
		t.Helper()
		step := waitstore.Step{Name: name, Attempt: 1, Sealed: "1", Bytes: bytes}
		if _, err := f.Waits.KeepStep(t.Context(), apidb.Everyone, id, step); !errors.Is(err, waitstore.ErrStepsFull) {
			t.Errorf("a step of %d bytes: %v", bytes, err)
		}
	}
	many, large := f.running(t, ""), f.running(t, "")
	f.Exec(t, `insert into steps (job_id, name, attempt, bytes, result)
		select $1, n::text, 1, 1, '1' from generate_series(1, $2::int) as n`, many, waitstore.MostSteps-1)
	f.keep(t, many, 1, "last", "1", 1)
	refused(many, "more", 1)
	f.keep(t, many, 1, "last", "2", 1) // a repeat
	f.keep(t, large, 1, "a", "1", waitstore.MostStepBytes-5)
	refused(large, "b", 6)
	f.keep(t, large, 1, "b", "1", 5)
}

func TestStepsAreReadInPages(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "")
	for i, name := range []string{"d", "b", "a", "c", "e"} {
		f.keep(t, id, 1, name, fmt.Sprint(i), 10*(i+1)) // a 30, b 20, c 40, d 10, e 50
	}
	for maxBytes, want := range map[int64]string{1: "[[a] [b] [c] [d] [e]]", 31: "[[a b] [c] [d e]]", 1000: "[[a b c d e]]"} {
		var pages [][]string
		for after, more := "", true; more; {
			var steps []waitstore.Step
			var err error
			if steps, more, err = f.Waits.StepsAfter(t.Context(), apidb.Everyone, id, after, maxBytes); err != nil || len(steps) == 0 {
				t.Fatal(steps, err)
			}
			var page []string
			for i := range steps {
				page, after = append(page, steps[i].Name), steps[i].Name
			}
			pages = append(pages, page)
		}
		if got := fmt.Sprint(pages); got != want {
			t.Errorf("pages of %d bytes: %s, want %s", maxBytes, got, want)
		}
	}
}

func TestTheLargestResultsAreNotShownWithTheJob(t *testing.T) {
	t.Parallel()
	f := open(t)
	id := f.running(t, "")
	for _, step := range []struct {
		name  string
		bytes int
	}{{"b", 10}, {"a", 60}, {"d", 30}, {"c", 20}} {
		f.keep(t, id, 1, step.name, step.name, step.bytes)
	}
	steps, err := f.Waits.StepsOfJob(t.Context(), id, 60)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, step := range steps {
		got = append(got, fmt.Sprintf("%s %d %q", step.Name, step.Bytes, step.Sealed))
	}
	if want := `[b 10 "b" a 60 "" d 30 "d" c 20 "c"]`; fmt.Sprint(got) != want {
		t.Errorf("shows %v, want %s", got, want)
	}
}
