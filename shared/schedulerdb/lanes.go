package schedulerdb

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

const (
	// lookMost bounds what one step looks at of a queue: what goes out, and what a control that was set
	// meanwhile has wait in another lane.
	lookMost = 1000
	// lanesMost bounds how many lanes one statement looks into.
	lanesMost = 100
)

// picking is one step's choice among a queue's waiting jobs when controls hold some of them back: the
// best rank first, of those in no lane and of all lanes that are open. A control that was set later finds
// jobs in lanes of before; those that have to wait are moved when their turn comes, and not looked at
// again as long as their lane is closed.
type picking struct {
	l       *ledger
	queue   string
	most    int // attempts that may go out
	looks   int // jobs that may still be looked at
	sources []*source
	chosen  gen.JobsSendOutParams
	moved   gen.JobsChangeLaneParams
	ranks   []time.Time // of the moved
}

// source is one lane, or what stands in none.
type source struct {
	lane    string
	under   []subject
	shown   []gen.LanesBestRow // looked at and not decided
	rank    time.Time          // what was not looked at stands behind this place
	id      uuid.UUID
	more    bool // something may stand there
	rounds  int
	asked   int
	touched bool
}

// head is where the best of it may stand.
func (s *source) head() time.Time {
	if len(s.shown) > 0 {
		return s.shown[0].Rank
	}
	return s.rank
}

func newPicking(l *ledger, queue string, most int) *picking {
	p := &picking{l: l, queue: queue, most: most, looks: lookMost}
	if floor, some := l.floors[queue]; some {
		p.sources = append(p.sources, &source{rank: floor, more: true})
	}
	for lane, floor := range l.lanes[queue] {
		p.sources = append(p.sources, &source{lane: lane, under: subjectsOf(lane), rank: floor, more: true})
	}
	return p
}

// sendOutControlled is sendOutOf where controls hold jobs back, or did.
func (s *Store) sendOutControlled(
	ctx context.Context, q *gen.Queries, by string, l *ledger, queue string, places []place,
) ([]gen.JobsDispatchRow, error) {
	p := newPicking(l, queue, len(places))
	if err := p.choose(ctx, q); err != nil {
		return nil, err
	}
	p.chosen.Partitions = partitionsOf(places[:len(p.chosen.JobIDs)])
	p.chosen.Lease, p.chosen.ByFunction = s.cfg.Lease, by
	rows, err := p.write(ctx, q)
	if err != nil {
		return nil, err
	}
	l.wentOut(queue, rows)
	return rows, nil
}

// choose decides about the best until the room is filled, nothing is left, or it has looked enough.
func (p *picking) choose(ctx context.Context, q *gen.Queries) error {
	for len(p.chosen.JobIDs) < p.most {
		open := p.open()
		if len(open) == 0 {
			return nil
		}
		best := slices.MinFunc(open, func(a, b *source) int {
			return cmp.Or(a.head().Compare(b.head()), cmp.Compare(len(a.shown), len(b.shown)))
		})
		if len(best.shown) > 0 {
			p.decide(best)
			continue
		}
		if p.looks <= 0 {
			p.l.cutShort = true
			return nil
		}
		if err := p.look(ctx, q, open); err != nil {
			return fmt.Errorf("look at what waits in queue %s: %w", p.queue, err)
		}
	}
	return nil
}

// open gives the sources that may let something out.
func (p *picking) open() []*source {
	var open []*source
	for _, s := range p.sources {
		if (s.more || len(s.shown) > 0) && p.l.roomUnder(s.under) > 0 {
			open = append(open, s)
		}
	}
	return open
}

// decide lets the best of a source out, or has it wait in the lane that is its own by now.
func (p *picking) decide(s *source) {
	job := s.shown[0]
	s.shown = s.shown[1:]
	lane := p.l.controls.laneOf(job.JobType, job.OwnerID)
	if p.l.lets(job.JobType, job.OwnerID) {
		p.l.starts(job.JobType, job.OwnerID)
		p.chosen.JobIDs = append(p.chosen.JobIDs, job.JobID)
		p.chosen.Lanes = append(p.chosen.Lanes, lane)
		return
	}
	p.moved.JobIDs = append(p.moved.JobIDs, job.JobID)
	p.moved.Lanes = append(p.moved.Lanes, lane)
	p.ranks = append(p.ranks, job.Rank)
}

// look has the best shown of those open sources of which nothing is.
func (p *picking) look(ctx context.Context, q *gen.Queries, open []*source) error {
	blind := slices.DeleteFunc(open, func(s *source) bool { return len(s.shown) > 0 })
	slices.SortFunc(blind, func(a, b *source) int { return a.rank.Compare(b.rank) })
	lanes, asked := gen.LanesBestParams{QueueName: p.queue}, map[string]*source{}
	for _, s := range blind[:min(len(blind), lanesMost)] {
		if s.asked = p.askOf(s); s.asked == 0 {
			break
		}
		asked[s.lane] = s
		if s.lane == "" {
			rows, err := q.PlainBest(ctx, gen.PlainBestParams{
				QueueName: p.queue, AfterRank: s.rank, AfterID: s.id, Most: int32Of(s.asked),
			})
			if err != nil {
				return err
			}
			for _, row := range rows {
				s.shown = append(s.shown, gen.LanesBestRow(row))
			}
			continue
		}
		lanes.Lanes = append(lanes.Lanes, s.lane)
		lanes.AfterRanks = append(lanes.AfterRanks, s.rank)
		lanes.AfterIDs = append(lanes.AfterIDs, s.id)
		lanes.Mosts = append(lanes.Mosts, int32Of(s.asked))
	}
	if len(lanes.Lanes) > 0 {
		rows, err := q.LanesBest(ctx, lanes)
		if err != nil {
			return err
		}
		for _, row := range rows {
			asked[row.Lane].shown = append(asked[row.Lane].shown, row)
		}
	}
	for _, s := range asked {
		p.looks += s.asked - len(s.shown)
		s.wasAsked()
	}
	return nil
}

// askOf is how many of a source to look at: at first no more than can go out, then more and more, for
// what was shown before has been moved.
func (p *picking) askOf(s *source) int {
	most := p.most - len(p.chosen.JobIDs)
	if s.rounds == 0 {
		most = min(most, p.l.roomUnder(s.under))
	}
	most = min(most<<min(2*s.rounds, 12), p.looks)
	s.rounds++
	p.looks -= most
	return most
}

// wasAsked takes in what is shown.
func (s *source) wasAsked() {
	s.touched, s.more = true, len(s.shown) == s.asked
	// A join has no order of its own, and who changed a rank while it was being locked comes where the old one stood.
	slices.SortFunc(s.shown, func(a, b gen.LanesBestRow) int {
		return cmp.Or(a.Rank.Compare(b.Rank), bytes.Compare(a.JobID[:], b.JobID[:]))
	})
	if n := len(s.shown); n > 0 {
		s.rank, s.id = s.shown[n-1].Rank, s.shown[n-1].JobID
	}
}

// write sends out what was chosen, to as many places, and moves what has to wait elsewhere.
func (p *picking) write(ctx context.Context, q *gen.Queries) ([]gen.JobsDispatchRow, error) {
	p.raiseFloors()
	if len(p.moved.JobIDs) > 0 {
		if err := q.JobsChangeLane(ctx, p.moved); err != nil {
			return nil, fmt.Errorf("change lanes in queue %s: %w", p.queue, err)
		}
	}
	for i, lane := range p.moved.Lanes {
		p.l.waits(p.queue, lane, p.ranks[i])
	}
	if len(p.chosen.JobIDs) == 0 {
		return nil, nil
	}
	rows, err := q.JobsSendOut(ctx, p.chosen)
	if err != nil {
		return nil, fmt.Errorf("send out of queue %s: %w", p.queue, err)
	}
	sent := make([]gen.JobsDispatchRow, len(rows))
	for i, row := range rows {
		sent[i] = gen.JobsDispatchRow(row)
	}
	return sent, nil
}

// raiseFloors enters from where on something may still wait in each source that was looked at.
func (p *picking) raiseFloors() {
	for _, s := range p.sources {
		if !s.touched {
			continue
		}
		floors, key := p.l.floors, p.queue
		if s.lane != "" {
			floors, key = p.l.lanes[p.queue], s.lane
		}
		if s.more || len(s.shown) > 0 {
			floors[key] = s.head()
		} else {
			delete(floors, key)
		}
		p.l.changed = true
	}
}
