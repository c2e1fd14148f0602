package runjob

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

func TestTheRateOfAPool(t *testing.T) {
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
	for i, most := range []float64{92.4, 48.1, 0, 0} { // long ones weigh as much as they have run
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

func TestAnAttemptsLogIsBounded(t *testing.T) {
	t.Parallel()
	var many attemptLog
	for i := range 500 {
		many.add(slog.LevelWarn, fmt.Sprint(i))
		if i == 50 {
			if lines, first := many.drain(); len(lines) != 51 || first != 0 || lines[50].Text != "50" || lines[0].Level != "warn" {
				t.Errorf("%d lines from %d: %+v", len(lines), first, lines[50])
			}
		}
	}
	lines, first := many.drain()
	if len(lines) != 149 || first != 51 || lines[148].Text != logIsFull || lines[147].Text != "198" {
		t.Errorf("%d lines from %d", len(lines), first)
	}
	if lines, first := many.drain(); len(lines) != 0 || first != 200 {
		t.Errorf("%d lines from %d", len(lines), first)
	}
	var large attemptLog
	large.add(slog.LevelInfo, strings.Repeat("é", 20_000))
	large.add(slog.LevelInfo, strings.Repeat("é", 20_000))
	large.add(slog.LevelInfo, "too much")
	lines, _ = large.drain()
	if len(lines) != 3 || lines[2].Text != logIsFull || len(lines[0].Text)+len(lines[1].Text) > maxLogBytes {
		t.Errorf("%d lines", len(lines))
	}
}

func TestCleanTextIsStorable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"plain": "plain", "a\x00b": "ab", "\xff!": "!", "éééééé": "éé…"} {
		if got := clean(in, 8); got != want || !utf8.ValidString(got) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestBisectFindsWhatIsInvalid(t *testing.T) {
	t.Parallel()
	var done, bad []int
	err := bisect([]int{1, 2, 3, 4, 5, 6, 7}, func(part []int) error {
		if slices.ContainsFunc(part, func(n int) bool { return n%3 == 0 }) {
			return fmt.Errorf("do %v: %w", part, jobevent.ErrInvalid)
		}
		done = append(done, part...)
		return nil
	}, func(n int, _ error) { bad = append(bad, n) })
	if err != nil || !slices.Equal(done, []int{1, 2, 4, 5, 7}) || !slices.Equal(bad, []int{3, 6}) {
		t.Errorf("done %v, bad %v, %v", done, bad, err)
	}
	away := errors.New("away")
	if err := bisect([]int{1, 2}, func([]int) error { return away }, nil); !errors.Is(err, away) {
		t.Error(err)
	}
}

func TestRetryWaitsForWhatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		began := time.Now()
		err := retry(t.Context(), new(telemetry.Trouble), func() error {
			if tries++; tries < 20 {
				return errors.New("away")
			}
			return nil
		})
		if err != nil || time.Since(began) > time.Minute || time.Since(began) < 10*time.Second {
			t.Errorf("%d tries in %v, %v", tries, time.Since(began), err)
		}
		invalid := fmt.Errorf("bad: %w", jobevent.ErrInvalid)
		if err := retry(t.Context(), new(telemetry.Trouble), func() error { return invalid }); !errors.Is(err, invalid) {
			t.Error(err)
		}
	})
}

func TestBeatsComeOnChangeAndAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBeats()
		took := func() time.Duration {
			began := time.Now()
			b.wait(t.Context(), defaultTiming, false)
			return time.Since(began)
		}
		if d := took(); d != 3*time.Second {
			t.Errorf("nothing changes: %v", d)
		}
		b.change()
		b.change()
		if d := took(); d != time.Second {
			t.Errorf("something has changed: %v", d)
		}
		time.AfterFunc(1500*time.Millisecond, b.change)
		if d := took(); d != 1500*time.Millisecond {
			t.Errorf("something changes later: %v", d)
		}
	})
}

func TestAWorkerJudgesAfterBeatsWithoutAGap(t *testing.T) {
	t.Parallel()
	b, start := newBeats(), time.Now()
	for _, c := range []struct {
		at  int
		may bool
	}{
		{0, false}, {3, false}, {7, false}, {10, true}, {13, true}, {17, true}, {22, false}, {26, false}, {30, false}, {32, true},
	} {
		if may := b.got(start.Add(time.Duration(c.at)*time.Second), 10*time.Second); may != c.may {
			t.Errorf("after %d s: %v", c.at, may)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := Config{Queues: []string{"default", "mail-2"}, PoolSize: 1}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"QUEUES":     func(c *Config) { c.Queues = []string{"No"} },
		"POOL_SIZE":  func(c *Config) { c.PoolSize = 0 },
		"QUEUE_SIZE": func(c *Config) { c.QueueSize = -1 },
		"GRACE":      func(c *Config) { c.Grace = -1 },

		"RETAIN_ATTEMPTS": func(c *Config) { c.RetainAttempts = jobevent.RecordsGone - 1 }, /* protocol #9 */
		"GRACE: 30s is not shorter than SHUTDOWN_GRACE, which is 30s": func(c *Config) {
			c.Grace, c.Within = 30*time.Second, 30*time.Second
		},
		`QUEUES: "A B" must be`: func(c *Config) { c.Queues = []string{"A B"} },
	} {
		bad := good
		change(&bad)
		if err := bad.check(); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatWasClaimedBeforeASilenceEndedIsNotTaken(t *testing.T) {
	t.Parallel()
	p := newPool(1, 1, time.Hour, func(finished) {}, func(int) {})
	claimed := []*attempt{{run: jobevent.Run{JobID: uuid.New(), Attempt: 1}}}
	if p.add(claimed, p.now()) {
		t.Fatal("taken before the first beat")
	}
	if !p.beaten(p.clock.now(), 0) || p.beaten(p.clock.now(), 0) {
		t.Fatal("the first beat asks for another one, and that opens the pool")
	}
	before := p.now()
	p.mu.Lock()
	p.lastBeat.at = time.Now().Add(-2 * time.Hour)
	p.mu.Unlock()
	if p.add(claimed, before) {
		t.Fatal("taken in silence")
	}
	p.beaten(p.clock.now(), 0)
	p.beaten(p.clock.now(), 0)
	if p.add(claimed, before) {
		t.Fatal("taken although its row may have been judged")
	}
	if !p.add(claimed, p.now()) || !p.known([]ordered{{run: claimed[0].run}})[0] {
		t.Fatal("not taken when asked again")
	}
}

// protocol #6
func TestNothingStartsAfterTheMachineStoodStill(t *testing.T) {
	t.Parallel()
	for name, stands := range map[string]func(*pool, time.Duration){
		"asleep": func(p *pool, d time.Duration) {
			woken := sinceBoot() + d
			p.clock.sinceBoot = func() time.Duration { return woken }
		},
		"its wall clock put right": func(p *pool, d time.Duration) { p.lastBeat.at = p.lastBeat.at.Round(0).Add(-d) },
	} {
		p := newPool(1, 1, 10*time.Second, func(finished) {}, func(int) {})
		p.beaten(p.clock.now(), 0)
		p.beaten(p.clock.now(), 0)
		held := &attempt{run: jobevent.Run{JobID: uuid.New(), Attempt: 1}}
		if !p.add([]*attempt{held}, p.now()) || !p.ready(time.Now()) {
			t.Fatalf("%s: what is held may not start", name)
		}
		stands(p, 5*time.Second)
		if !p.ready(time.Now()) {
			t.Errorf("%s: five seconds are a silence", name)
		}
		stands(p, 10*time.Second)
		if p.ready(time.Now()) || p.room() != 0 {
			t.Errorf("%s: what is held starts, or more is taken", name)
		}
		if !p.beaten(p.clock.now(), 0) || p.beaten(p.clock.now(), 0) || !p.ready(time.Now()) {
			t.Errorf("%s: two beats do not end it", name)
		}
	}
}

// protocol #6
func TestAGapThatOnlyTheDatabaseSawCountsAsASilence(t *testing.T) {
	t.Parallel()
	p := newPool(1, 1, 10*time.Second, func(finished) {}, func(int) {})
	p.beaten(p.clock.now(), 0)
	p.beaten(p.clock.now(), 0)
	before := p.now()
	if p.beaten(p.clock.now(), 4*time.Second) || p.now() != before {
		t.Error("four seconds are a silence")
	}
	if !p.beaten(p.clock.now(), 5*time.Second) || p.now() == before {
		t.Error("after half a silence claims from before it still count")
	}
	b, start := newBeats(), time.Now()
	for second := range 20 {
		b.got(start.Add(time.Duration(second)*time.Second), 10*time.Second)
	}
	b.unseen(5*time.Second, 10*time.Second)
	if b.got(start.Add(20*time.Second), 10*time.Second) {
		t.Error("it judges others after a gap that only the database saw")
	}
}

// protocol #12
func TestABeatOfManyAttemptsComesInPartsThatCanBePublished(t *testing.T) {
	t.Parallel()
	f := &Function{id: "w", beats: newBeats()}
	h := jobevent.Heartbeat{WorkerID: "w", Slots: 1200, JobTypes: []jobevent.JobType{{Name: "A"}}}
	now := time.Now()
	for range 1200 {
		h.Attempts = append(h.Attempts, jobevent.HeldAttempt{
			JobID: uuid.New(), Attempt: 1, StartedAt: &now,
			Progress: &jobevent.Progress{Percent: 1, Message: strings.Repeat("\x01", maxProgress)},
		})
	}
	h.Left = h.Attempts[:900]
	var listed, left []jobevent.HeldAttempt
	for part, e := range f.appendBeat(nil, h) {
		got, err := jobevent.Decode[jobevent.Heartbeat](e)
		if err != nil || got.Part != part || got.Slots != 1200 || len(e.Data()) > 1<<20 {
			t.Errorf("part %d of %d bytes: %v", part, len(e.Data()), err)
		}
		listed, left = append(listed, got.Attempts...), append(left, got.Left...)
	}
	if len(listed) != 1200 || listed[1199].JobID != h.Attempts[1199].JobID {
		t.Errorf("%d attempts are listed", len(listed))
	}
	if len(left) != 900 || left[899].JobID != h.Left[899].JobID {
		t.Errorf("%d attempts have left", len(left))
	}
	if events := f.appendBeat(nil, jobevent.Heartbeat{WorkerID: "w"}); len(events) != 1 {
		t.Errorf("a beat that lists nothing is %d events", len(events))
	}
}

// protocol #9: the host compares it with what the brokers say.
func TestRecordsMayNotOutliveTheRowsOfTheirAttempts(t *testing.T) {
	t.Parallel()
	fence := Config{RetainAttempts: 200 * time.Hour, Queues: []string{"default", "mail"}}.fence()
	if fence.Setting != "RETAIN_ATTEMPTS" || fence.Age != 200*time.Hour || !slices.Equal(fence.Topics, []string{"run-job", "run-job.mail"}) {
		t.Errorf("compares %+v", fence)
	}
	if fence := (Config{Queues: []string{"default"}}).fence(); len(fence.Topics) > 0 {
		t.Errorf("rows that are kept for ever are compared: %+v", fence)
	}
}
