package pool

import (
	"math"
	"testing"
	"time"
)

func TestAMeterMeasuresTheRateOfAPool(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := start.Add
	var m meter
	if got := m.rate(start, 12); got != 0 {
		t.Errorf("idle from the start: %v", got)
	}
	for i := range 100 { // of 10 ms each
		m.start(at(time.Duration(i) * 10 * time.Millisecond))
		m.finish(at(time.Duration(i)*10*time.Millisecond), at(time.Duration(i+1)*10*time.Millisecond))
	}
	if got := m.rate(at(time.Second), 12); math.Abs(got-1200) > 1 {
		t.Errorf("attempts of 10 ms: %v, want 1200", got)
	}
	for range 12 {
		m.start(at(time.Second))
	}
	for i, most := range []float64{92.4, 48.1, 0, 0} { // long attempts count with the time that they have run
		if got := m.rate(at(time.Duration(i+2)*time.Second), 12); got > most {
			t.Errorf("%d s of long attempts: %v, want at most %v", i+1, got, most)
		}
	}
	for range 12 {
		m.finish(at(time.Second), at(5*time.Second))
	}
	if got := m.rate(at(6*time.Second), 12); got <= 0 || got > 12 {
		t.Errorf("long attempts that finish: %v", got)
	}
	for i := range 4 {
		m.rate(at(time.Duration(i+7)*time.Second), 12)
	}
	if got := m.rate(at(11*time.Second), 12); got != 0 {
		t.Errorf("idle: %v", got)
	}
	for range 1000 {
		m.start(at(11 * time.Second))
		m.finish(at(11*time.Second), at(11*time.Second))
	}
	if got := m.rate(at(12*time.Second), 12); got != rateCap {
		t.Errorf("no-ops: %v", got)
	}
}
