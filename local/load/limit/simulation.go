package limit

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	lasts  = 6.0 // simulated seconds
	counts = 2.0 // from then on the simulation counts
)

// simulation is a clock and what happens later. All times are in seconds.
type simulation struct {
	rate   float64
	batch  int
	now    float64
	later  events
	number int
	random *rand.Rand

	first   *station
	parts   map[string]func() float64 // how long each part worked while the simulation counted
	started []float64
	posted  int
	done    int
	counted bool
}

type event struct {
	at     float64
	number int // of two events of one moment the earlier goes first
	do     func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (s *simulation) after(wait float64, do func()) {
	s.number++
	heap.Push(&s.later, event{s.now + wait, s.number, do})
}

// resource is a lock, or the cores of a machine: so many users at once, the others wait in their order.
type resource struct {
	s       *simulation
	size    int
	free    int
	waiting []func()
	worked  float64
}

func (s *simulation) resource(size int) *resource { return &resource{s: s, size: size, free: size} }

// hold calls do once there is room; do calls release when it is over.
func (r *resource) hold(do func(release func())) {
	if r.free == 0 {
		r.waiting = append(r.waiting, func() { r.hold(do) })
		return
	}
	r.free--
	began := r.s.now
	do(func() {
		r.worked += max(0, r.s.now-max(began, counts))
		r.free++
		if len(r.waiting) > 0 {
			next := r.waiting[0]
			r.waiting = r.waiting[1:]
			next()
		}
	})
}

// use holds the resource for a time.
func (r *resource) use(seconds float64, then func()) {
	r.hold(func(release func()) {
		r.s.after(seconds, func() { release(); then() })
	})
}

func (r *resource) share() float64 { return r.worked / (lasts - counts) / float64(r.size) }

// station is a function: each of its partitions takes what waits there, at most a batch, and handles it in one
// transaction.
type station struct {
	s                 *simulation
	cores             *resource // of its database
	functions         *resource // that run it; nil: there are always enough
	lock              *resource // nil: it takes none
	perJob, underLock float64   // seconds of a core
	inFunction        float64
	statement, commit float64
	hop               float64
	record            int // jobs in one event, which stay together
	partitions        []*partition
	next              func(jobs []float64) // by the times at which they were submitted
}

type partition struct {
	waiting []float64
	busy    *resource
}

// take distributes jobs among the partitions, after the way to them.
func (t *station) take(jobs []float64) {
	t.s.after(t.hop, func() {
		for record := range slices.Chunk(jobs, t.record) {
			p := t.partitions[t.s.random.IntN(len(t.partitions))]
			p.waiting = append(p.waiting, record...)
		}
		for _, p := range t.partitions {
			t.work(p)
		}
	})
}

func (t *station) work(p *partition) {
	if p.busy.free == 0 || len(p.waiting) == 0 {
		return
	}
	p.busy.hold(func(release func()) {
		n := min(most, len(p.waiting))
		jobs := slices.Clone(p.waiting[:n])
		p.waiting = p.waiting[n:]
		t.transaction(float64(n), func() {
			release()
			t.next(jobs)
			t.work(p)
		})
	})
}

func (t *station) transaction(n float64, then func()) {
	commit := func(release func()) {
		t.s.after(t.commit, func() { release(); then() })
	}
	statements := func() {
		t.cores.use(t.statement+n*t.perJob, func() {
			if t.lock == nil {
				commit(func() {})
				return
			}
			t.lock.hold(func(release func()) {
				t.cores.use(n*t.underLock, func() { commit(release) })
			})
		})
	}
	if t.functions == nil {
		statements()
		return
	}
	t.functions.use(n*t.inFunction, statements)
}

func (t *station) share() float64 {
	worked := 0.0
	for _, p := range t.partitions {
		worked += p.busy.share()
	}
	return worked / float64(len(t.partitions))
}

// build makes the way of a job: gateway, ingest with dispatch, worker, outcome, projection.
func (m Model) build(rate float64) *simulation {
	s := &simulation{rate: rate, batch: m.Batch, random: rand.New(rand.NewPCG(1, 2)), parts: map[string]func() float64{}}
	api, scheduler, worker, lock := s.resource(m.Cores), s.resource(m.Cores), s.resource(m.Cores), s.resource(1)
	var functions *resource
	if m.Together {
		scheduler, worker, functions = api, api, api
	}
	dispatch := m.Costs.Dispatch
	if m.Keys {
		dispatch += m.Costs.KeysMore
	}
	const stations = 5
	at := func(cores *resource, cost float64, partitions int, next func([]float64)) *station {
		t := &station{
			s: s, cores: cores, functions: functions, perJob: cost / 1e6, statement: m.Costs.Statement / 1e6,
			inFunction: m.Costs.Functions / stations / 1e6, commit: m.Commit.Seconds(), hop: m.Hop.Seconds(),
			record: most, next: next,
		}
		for range partitions {
			t.partitions = append(t.partitions, &partition{busy: s.resource(1)})
		}
		return t
	}
	projection := at(api, m.Costs.Project, m.Split, s.end)
	outcome := at(scheduler, m.Costs.Finish, m.Split, projection.take)
	outcome.lock = lock
	work := at(worker, m.Costs.Work, runPartitions, func(jobs []float64) {
		s.start(jobs)
		outcome.take(jobs)
	})
	work.record = attempts
	ingest := at(scheduler, m.Costs.Ingest, m.Split, work.take)
	ingest.lock, ingest.underLock = lock, dispatch/1e6
	s.first = at(api, m.Costs.Insert, runPartitions, ingest.take)
	for name, share := range map[string]func() float64{
		"lock": lock.share, "api": api.share, "scheduler": scheduler.share, "worker": worker.share,
		"ingest": ingest.share, "outcome": outcome.share, "projection": projection.share,
	} {
		s.parts[name] = share
	}
	return s
}

func (s *simulation) start(jobs []float64) {
	for _, submitted := range jobs {
		if submitted >= counts {
			s.started = append(s.started, s.now-submitted)
		}
	}
}

func (s *simulation) end(jobs []float64) {
	s.done += len(jobs)
}

// submit posts a batch, and the next one after a time that varies by half.
func (s *simulation) submit() {
	if s.now >= counts && !s.counted {
		s.counted, s.posted, s.done = true, 0, 0
	}
	s.posted += s.batch
	jobs := make([]float64, s.batch)
	for i := range jobs {
		jobs[i] = s.now
	}
	s.first.take(jobs)
	s.after((0.5+s.random.Float64())*float64(s.batch)/s.rate, s.submit)
}

func (s *simulation) run() Point {
	s.submit()
	for {
		next := heap.Pop(&s.later).(event)
		if next.at > lasts {
			break
		}
		s.now = next.at
		next.do()
	}
	p := Point{
		Offered: s.rate, Done: float64(s.done) / (lasts - counts), Busy: map[string]float64{},
		Grows: float64(s.posted-s.done) / (lasts - counts), allowed: 0.01*s.rate + float64(2*s.batch)/(lasts-counts),
	}
	for name, share := range s.parts {
		p.Busy[name] = min(1, share())
	}
	slices.Sort(s.started)
	if n := len(s.started); n > 0 {
		second := float64(time.Second)
		p.P50, p.P99 = time.Duration(s.started[n/2]*second), time.Duration(s.started[n*99/100]*second)
	}
	return p
}
