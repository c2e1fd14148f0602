package throttle_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway/throttle"
)

func TestCallerGetsNoMoreThanItLeavesFree(t *testing.T) {
	t.Parallel()
	room := throttle.NewRoom(60)
	if room.Take("a", 31) || !room.Take("a", 30) || room.Take("a", 1) || room.Fits("a", 1) {
		t.Error("one alone does not get exactly half")
	}
	if room.Take("b", 16) || !room.Take("b", 15) || room.Take("b", 1) {
		t.Error("the second does not get exactly half of the rest")
	}
	if !room.Take("c", 7) {
		t.Error("nothing is left for the third")
	}
	room.Give("a", 30)
	room.Give("b", 15)
	room.Give("c", 7)
	if !room.Take("d", 30) {
		t.Error("what was given back cannot be taken again")
	}
}

func TestConcurrentCallersTakeNoMoreThanThereIs(t *testing.T) {
	t.Parallel()
	room := throttle.NewRoom(100)
	var held atomic.Int64
	var all sync.WaitGroup
	for caller := range 20 {
		all.Go(func() {
			name := string(rune('a' + caller))
			for range 1000 {
				if room.Take(name, 7) {
					if held.Add(7) > 100 {
						t.Error("more is taken than there is")
					}
					held.Add(-7)
					room.Give(name, 7)
				}
			}
		})
	}
	all.Wait()
	if !room.Take("z", 50) {
		t.Error("something was not given back")
	}
}
