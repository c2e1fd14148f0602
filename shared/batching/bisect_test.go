package batching

import (
	"errors"
	"slices"
	"testing"
)

var (
	errBad  = errors.New("one is bad")
	errMany = errors.New("too many")
	errAway = errors.New("away")
)

// trial is a store that takes numbers, at most most at once, and none that a multiple of bad is among.
type trial struct {
	bad, most   int
	away        int // for this number and a few others it is away
	done, alone []int
	calls       int
}

func (s *trial) do(part []int) error {
	s.calls++
	switch {
	case slices.Contains(part, s.away) && len(part) <= 2:
		return errAway
	case slices.ContainsFunc(part, func(n int) bool { return n%s.bad == 0 }):
		return errBad
	case len(part) > s.most:
		return errMany
	}
	s.done = append(s.done, part...)
	return nil
}

func (s *trial) bisect(n int) error {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return Bisect(all, s.do(all), s.do, func(err error, n int) bool {
		return errors.Is(err, errBad) || errors.Is(err, errMany) && n > 1
	}, func(n int, err error) error {
		s.alone = append(s.alone, n)
		if !errors.Is(err, errBad) {
			return err
		}
		return nil
	})
}

func TestBisectFindsEachBadItemAndHandlesTheOthersInOrder(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		for bad := 1; bad < 9; bad++ {
			s := &trial{bad: bad, most: 5}
			err := s.bisect(n)
			var want, alone []int
			for i := 1; i <= n; i++ {
				if i%bad == 0 {
					alone = append(alone, i)
				} else {
					want = append(want, i)
				}
			}
			if err != nil || !slices.Equal(s.done, want) || !slices.Equal(s.alone, alone) {
				t.Errorf("%d items, multiples of %d are bad: done %v, alone %v, %v", n, bad, s.done, s.alone, err)
			}
			if s.calls > 2*n+1 {
				t.Errorf("%d items, multiples of %d are bad: %d calls", n, bad, s.calls)
			}
		}
	}
}

func TestBisectMakesOneCallForABatchThatSucceedsOrCannotSucceedNow(t *testing.T) {
	t.Parallel()
	for _, s := range []*trial{{bad: 100, most: 10}, {bad: 100, most: 10, away: 2}} {
		if err := s.bisect(2); (err != nil) != (s.away > 0) || s.calls != 1 {
			t.Errorf("%d calls, %v", s.calls, err)
		}
	}
}

func TestBisectStopsAtAnErrorThatIsNotDueToAnItem(t *testing.T) {
	t.Parallel()
	s := &trial{bad: 3, most: 10, away: 5}
	if err := s.bisect(8); !errors.Is(err, errAway) || !slices.Equal(s.done, []int{1, 2, 4}) || !slices.Equal(s.alone, []int{3}) {
		t.Errorf("done %v, bad %v, %v", s.done, s.alone, err)
	}
	if err := (&trial{bad: 100, most: 0}).bisect(4); !errors.Is(err, errMany) {
		t.Error(err)
	}
}
