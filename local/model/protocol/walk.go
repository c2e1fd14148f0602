package protocol

import "slices"

// Finding is a broken promise and a shortest path to it.
type Finding struct {
	Promise string
	Trace   []string
}

// Result is the result of a walk.
type Result struct {
	States, Steps int
	Shown         [lastShown + 1]int // the number of states in which the API shows the job so
	Finding       *Finding           // nil: every promise is kept in every state
}

// taken is a step as part of a path.
type taken struct {
	from      uint32 // the state's index in the walk
	by        step
	exchanged bool // the workers were exchanged after it
}

// Walk visits every state that a job can reach, the nearest first, until a promise is broken.
func Walk(limits Limits, defect Defect) Result {
	w := &walker{seen: map[state]struct{}{}, ender: newEnder(limits, defect)}
	m := &model{limits: limits, defect: defect}
	m.out = func(by step, to state) {
		broken, published := m.broken, m.published
		m.broken, m.published = kept, nil
		w.circles.note(&w.states[w.at], by, &to, published)
		w.take(by, to, broken, defect == AnyVersion)
	}
	w.add(state{left: limits.Budget}, taken{})
	for w.at < len(w.states) && w.result.Finding == nil {
		w.result.Shown[w.states[w.at].api.shown]++
		m.steps(w.states[w.at])
		w.end()
		w.turn()
		w.at++
	}
	w.result.States = len(w.states)
	return w.result
}

type walker struct {
	at     int // the index of the state whose steps are being taken
	states []state
	ways   []taken // how each state was first reached
	seen   map[state]struct{}
	ender  *ender
	result Result

	circles circles
}

func (w *walker) add(s state, way taken) {
	w.seen[s] = struct{}{}
	w.states, w.ways = append(w.states, s), append(w.ways, way)
}

// take goes from the current state to another.
func (w *walker) take(by step, to state, broken promise, keepOld bool) {
	from := &w.states[w.at]
	if w.result.Finding != nil || to == *from && broken == kept {
		return
	}
	w.result.Steps++
	if broken == kept {
		broken = breaks(from, by, &to)
	}
	way := taken{from: uint32(w.at), by: by}
	if broken != kept {
		w.result.Finding = &Finding{string(broken), describe(append(w.wayTo(w.at), way))}
		return
	}
	way.exchanged = to.canonical(keepOld)
	if _, known := w.seen[to]; !known {
		w.add(to, way)
	}
}

// end checks that the job ends from the current state on.
func (w *walker) end() {
	s := w.states[w.at]
	if w.result.Finding != nil || !s.api.accepted {
		return
	}
	if stuck := w.ender.stuck(s); stuck != nil {
		w.result.Finding = &Finding{string(jobsEnd), describe(append(w.wayTo(w.at), stuck...))}
	}
}

// turn checks that no records of the current state answer each other for ever.
func (w *walker) turn() {
	if round := w.circles.find(); round != nil && w.result.Finding == nil {
		w.result.Finding = &Finding{string(circlesEnd), describe(append(w.wayTo(w.at), round...))}
	}
	w.circles = circles{answers: w.circles.answers[:0]}
}

func (w *walker) wayTo(i int) []taken {
	var way []taken
	for ; i > 0; i = int(w.ways[i].from) {
		way = append(way, w.ways[i])
	}
	slices.Reverse(way)
	return way
}
