package knative

import (
	"math/rand/v2"
	"sync"
	"time"
)

// mishap is a fault that the test makes.
type mishap string

const (
	twice       mishap = "delivered twice"
	late        mishap = "delivered late, after younger events"
	hungUp      mishap = "hung up while the function worked"
	deaf        mishap = "the answer was lost"
	ingressAway mishap = "the broker did not take an event"
	ingressDeaf mishap = "the broker accepted an event and its answer was lost"
	scaledDown  mishap = "a process was stopped under load"

	lateMost     = 400 * time.Millisecond
	hungUpWithin = 20 * time.Millisecond

	// mostStops bounds the processes that are stopped under load: on a machine that is slow for other reasons there
	// would be more and more of them.
	mostStops = 12
)

// chances are the probabilities of the mishaps of an unreliable broker.
var chances = map[mishap]float64{
	twice: 0.1, late: 0.2, hungUp: 0.05, deaf: 0.05, ingressAway: 0.02, ingressDeaf: 0.02, scaledDown: 0.05,
}

// mishaps draws mishaps and counts them, since a run without any proves nothing.
type mishaps struct {
	mu      sync.Mutex
	rnd     *rand.Rand
	chances map[mishap]float64
	count   map[mishap]int
}

func newMishaps(rnd *rand.Rand, chances map[mishap]float64) *mishaps {
	return &mishaps{rnd: rnd, chances: chances, count: map[mishap]int{}}
}

func (m *mishaps) happens(what mishap) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rnd.Float64() >= m.chances[what] || what == scaledDown && m.count[what] >= mostStops {
		return false
	}
	m.count[what]++
	return true
}

// missing returns the mishaps that could have happened and did not.
func (m *mishaps) missing() (list []mishap) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for what, chance := range m.chances {
		if chance > 0 && m.count[what] == 0 {
			list = append(list, what)
		}
	}
	return list
}

func (m *mishaps) upTo(most time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Duration(m.rnd.Int64N(int64(most)))
}
