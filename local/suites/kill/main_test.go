package kill

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	chaosFor = flag.String("kill.for", "", "how long processes are killed; empty: skip")
	seedText = flag.String("kill.seed", "", "repeats a schedule of kills; empty: a new one")
	racy     = flag.Bool("kill.race", false, "run the functions under the race detector")
	replicas = flag.Int("kill.replicas", 1, "processes a function, but for the worker")
	keep     = flag.Bool("kill.keep", false, "keep the folder of logs and data after a success too")
)

// duration returns how long the test makes faults. Without a duration the test is skipped.
func duration(t *testing.T) time.Duration {
	t.Helper()
	if *chaosFor == "" {
		t.Skip("takes minutes: run it with make test-kill, or with -kill.for=90s")
	}
	d, err := time.ParseDuration(*chaosFor)
	if err != nil {
		t.Fatalf("read -kill.for: %v", err)
	}
	return d
}

// newRand is seeded by the flag, or at random; the seed is logged.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64() >> 32
	if *seedText != "" {
		if _, err := fmt.Sscan(*seedText, &seed); err != nil {
			t.Fatalf("read -kill.seed: %v", err)
		}
	}
	t.Logf("seed %d, again with KILL_SEED=%d", seed, seed)
	return rand.New(rand.NewPCG(seed, 0))
}
