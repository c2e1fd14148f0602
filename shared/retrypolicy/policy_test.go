package retrypolicy_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

type policy = retrypolicy.Policy

func TestDelays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy *policy
		want   []time.Duration // after the first failure, the second …
	}{
		"the default doubles from 10 s up to its cap": {nil, seconds(10, 20, 40, 80, 160, 300, 300, 300)},
		"an exponential policy starts at twice its base": {
			&policy{Type: "exponential", BaseMs: 1_000, CapMs: 5_000}, seconds(2, 4, 5, 5)},
		"a cap below the base is always reached": {
			&policy{Type: "exponential", BaseMs: 9_000, CapMs: 1_000}, seconds(1, 1)},
		"a base of 0 retries at once":  {&policy{Type: "exponential", CapMs: 1_000}, seconds(0, 0, 0)},
		"a fixed policy never changes": {&policy{Type: "fixed", DelayMs: 7_000}, seconds(7, 7, 7)},
		"a list's last delay repeats": {
			&policy{Type: "list", DelaysMs: []int64{1_000, 5_000, 2_000}}, seconds(1, 5, 2, 2, 2)},
		"a list without entries does not panic": {&policy{Type: "list"}, seconds(0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, want := range c.want {
				if got := c.policy.Delay(i+1, nil); got != want {
					t.Errorf("after failure %d: got %s, want %s", i+1, got, want)
				}
			}
		})
	}
}

func seconds(s ...int) []time.Duration {
	d := make([]time.Duration, len(s))
	for i := range s {
		d[i] = time.Duration(s[i]) * time.Second
	}
	return d
}

func TestExponentialIsTheFormula(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := policy{Type: retrypolicy.Exponential,
			BaseMs: rapid.Int64Range(0, retrypolicy.MaxDelayMs).Draw(t, "base"),
			CapMs:  rapid.Int64Range(0, retrypolicy.MaxDelayMs).Draw(t, "cap")}
		n := rapid.IntRange(1, 100).Draw(t, "n")
		want := new(big.Int).Lsh(big.NewInt(p.BaseMs), uint(n))
		if limit := big.NewInt(p.CapMs); want.Cmp(limit) > 0 {
			want = limit
		}
		got := p.Delay(n, nil)
		if got != time.Duration(want.Int64())*time.Millisecond {
			t.Fatalf("got %s, want %s ms", got, want)
		}
		if next := p.Delay(n+1, nil); next < got {
			t.Fatalf("delay %d is %s, the next is %s", n, got, next)
		}
	})
}

func TestJitterOnlyShortens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		exact := valid(t)
		exact.Jitter = 0
		p := exact
		p.Jitter = rapid.Float64Range(0, 1).Draw(t, "jitter")
		n := rapid.IntRange(1, 100).Draw(t, "n")
		r := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "r")
		most, got := exact.Delay(n, nil), p.Delay(n, func() float64 { return r })
		least := time.Duration(float64(most)*(1-p.Jitter)) - time.Microsecond
		if got > most || got < least || got < 0 {
			t.Fatalf("got %s, want from %s to %s", got, least, most)
		}
	})
}

func TestWhateverThePolicyDelayIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := policy{
			Type:     rapid.SampledFrom([]string{"", "exponential", "fixed", "list"}).Draw(t, "type"),
			BaseMs:   rapid.Int64().Draw(t, "base"),
			CapMs:    rapid.Int64().Draw(t, "cap"),
			DelayMs:  rapid.Int64().Draw(t, "delay"),
			DelaysMs: rapid.SliceOfN(rapid.Int64(), 0, 3).Draw(t, "delays"),
			Jitter:   rapid.Float64().Draw(t, "jitter"),
		}
		d := p.Delay(rapid.Int().Draw(t, "n"), func() float64 { return 0.5 })
		if d < 0 || d > retrypolicy.MaxDelayMs*time.Millisecond {
			t.Fatalf("got %s", d)
		}
	})
}

func valid(t *rapid.T) policy {
	ms := rapid.Int64Range(0, retrypolicy.MaxDelayMs)
	p := policy{Type: rapid.SampledFrom([]string{"exponential", "fixed", "list"}).Draw(t, "type")}
	switch p.Type {
	case retrypolicy.Exponential:
		p.BaseMs, p.CapMs = ms.Draw(t, "base"), ms.Draw(t, "cap")
	case retrypolicy.Fixed:
		p.DelayMs = ms.Draw(t, "delay")
	case retrypolicy.List:
		p.DelaysMs = rapid.SliceOfN(ms, 1, retrypolicy.MaxDelays).Draw(t, "delays")
	}
	p.Jitter = rapid.Float64Range(0, 1).Draw(t, "jitter")
	if wrong := p.Validate(); wrong != nil {
		t.Fatalf("%+v is refused: %v", p, wrong)
	}
	return p
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy *policy
		paths  []string // where something is wrong
	}{
		"nil is the default":       {nil, nil},
		"an unknown type":          {&policy{Type: "linear"}, []string{"type"}},
		"no type":                  {&policy{BaseMs: 1}, []string{"type"}},
		"negative delays":          {&policy{Type: "exponential", BaseMs: -1, CapMs: -1}, []string{"baseMs", "capMs"}},
		"a delay of over a year":   {&policy{Type: "fixed", DelayMs: retrypolicy.MaxDelayMs + 1}, []string{"delayMs"}},
		"a list without entries":   {&policy{Type: "list"}, []string{"delaysMs"}},
		"a list with too many":     {&policy{Type: "list", DelaysMs: make([]int64, 101)}, []string{"delaysMs"}},
		"a bad entry of a list":    {&policy{Type: "list", DelaysMs: []int64{1, -1}}, []string{"delaysMs[1]"}},
		"another type's delay":     {&policy{Type: "fixed", BaseMs: 1, DelaysMs: []int64{1}}, []string{"baseMs", "delaysMs"}},
		"jitter above 1":           {&policy{Type: "fixed", Jitter: 1.1}, []string{"jitter"}},
		"jitter that is no number": {&policy{Type: "fixed", Jitter: math.NaN()}, []string{"jitter"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong := c.policy.Validate()
			if len(wrong) != len(c.paths) {
				t.Fatalf("got %v, want %v", wrong, c.paths)
			}
			for i, w := range wrong {
				if w.Path != c.paths[i] || w.Message == "" {
					t.Errorf("got %v, want %v", wrong, c.paths)
				}
			}
		})
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	explicit := policy{Type: "exponential", BaseMs: 5_000, CapMs: 300_000}
	if !explicit.Equal(nil) || !(*policy)(nil).Equal(&explicit) {
		t.Error("the default written out is not equal to none")
	}
	for _, other := range []policy{
		{Type: "fixed", DelayMs: 1}, {Type: "exponential", BaseMs: 1, CapMs: 300_000},
		{Type: "list", DelaysMs: []int64{1}}, {Type: "exponential", BaseMs: 5_000, CapMs: 300_000, Jitter: 0.5},
	} {
		if other.Equal(nil) {
			t.Errorf("%+v is equal to the default", other)
		}
	}
}
