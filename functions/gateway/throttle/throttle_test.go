package throttle_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway/throttle"
)

var start = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

func TestCallerGetsItsBurstAndThenItsRate(t *testing.T) {
	t.Parallel()
	table := throttle.New(2, 4)
	for left := 3; left >= 0; left-- {
		if v := table.Take("a", 1, start); !v.OK || v.Left != left || (v.After == 0) != (left > 0) {
			t.Fatalf("%d left: %+v", left, v)
		}
	}
	if v := table.Take("a", 1, start); v.OK || v.After != 500*time.Millisecond {
		t.Errorf("beyond its burst: %+v", v)
	}
	if v := table.Take("b", 1, start); !v.OK {
		t.Errorf("another caller: %+v", v)
	}
	if v := table.Take("a", 1, start.Add(500*time.Millisecond)); !v.OK || v.Left != 0 {
		t.Errorf("after its wait: %+v", v)
	}
	if v := table.Take("a", 1, start.Add(time.Hour)); !v.OK || v.Left != 3 {
		t.Errorf("after an hour: %+v", v)
	}
}

func TestTokensBeyondTheBurstArePaidBack(t *testing.T) {
	t.Parallel()
	table := throttle.New(10, 10)
	if v := table.Take("a", 1000, start); !v.OK || v.Left != 0 {
		t.Fatalf("a batch beyond the burst: %+v", v)
	}
	const debt = 99*time.Second + 100*time.Millisecond // for a debt of 990 tokens, and the next one
	if v := table.Take("a", 1, start); v.OK || v.After != debt {
		t.Errorf("in debt: %+v", v)
	}
	if v := table.Take("a", 1, start.Add(debt-time.Millisecond)); v.OK {
		t.Errorf("just before it is paid: %+v", v)
	}
	if v := table.Take("a", 1, start.Add(debt)); !v.OK {
		t.Errorf("when it is paid: %+v", v)
	}
}

func TestConcurrentTakesOweNoMoreThanOne(t *testing.T) {
	t.Parallel()
	table := throttle.New(1, 100)
	var in atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if table.Take("a", 1000, start).OK {
				in.Add(1)
			}
		})
	}
	all.Wait()
	if in.Load() != 1 {
		t.Errorf("%d got in", in.Load())
	}
}

func TestLookTakesNoTokens(t *testing.T) {
	t.Parallel()
	table := throttle.New(1, 1)
	for range 3 {
		if v := table.Look("a", start); !v.OK {
			t.Errorf("before: %+v", v)
		}
	}
	table.Take("a", 1, start)
	if v := table.Look("a", start); v.OK || v.After != time.Second {
		t.Errorf("after: %+v", v)
	}
}

func TestWithoutALimitEveryCallerIsAllowed(t *testing.T) {
	t.Parallel()
	table := throttle.New(0, 1)
	if table != nil || !table.Take("a", 1_000_000, start).OK || !table.Look("a", start).OK {
		t.Error("a caller was refused")
	}
}

// A caller that sends requests regularly is not forgotten, however many others there are, and memory is bounded.
func TestManyCallersAreForgottenEventually(t *testing.T) {
	t.Parallel()
	table := throttle.New(1, 1)
	table.Take("seldom", 1, start)
	table.Take("often", 1000, start)
	for n := range 50_000 {
		table.Take(strconv.Itoa(n), 1, start)
		if n%5_000 == 0 && table.Take("often", 1, start).OK {
			t.Fatal("a debt was forgotten")
		}
		if table.Known() > 20_000 {
			t.Fatalf("%d are known", table.Known())
		}
	}
	if !table.Take("seldom", 1, start).OK {
		t.Error("who came once is known for ever")
	}
}

func TestPolicyIsInWholeSeconds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		perSecond      float64
		burst          int
		quota, seconds int
	}{{10, 10, 10, 1}, {0.5, 1, 1, 2}, {0.1, 0, 1, 10}, {2.5, 3, 3, 1}, {1000, 1000, 1000, 1}} {
		if quota, seconds := throttle.New(c.perSecond, c.burst).Policy(); quota != c.quota || seconds != c.seconds {
			t.Errorf("%v: %d in %d s", c, quota, seconds)
		}
	}
}

func TestCallerHoldsNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	inUse := throttle.NewInUse(2)
	first, ok := inUse.Take("a")
	if !ok {
		t.Fatal("the first was refused")
	}
	if _, ok := inUse.Take("a"); !ok {
		t.Error("the second was refused")
	}
	if _, ok := inUse.Take("a"); ok {
		t.Error("a third was taken")
	}
	if _, ok := inUse.Take("b"); !ok {
		t.Error("another caller was refused")
	}
	first()
	if _, ok := inUse.Take("a"); !ok {
		t.Error("what was released cannot be taken again")
	}
}
