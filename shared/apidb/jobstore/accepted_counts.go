package jobstore

import (
	"context"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// accepts counts the jobs accepted since the counts were last stored for the statistics. So no job costs a write for
// the statistics, and a killed process loses a few seconds of the count.
type accepts struct {
	mu sync.Mutex
	of map[acceptedKey]int32
}

type acceptedKey struct {
	owner, queue, jobType string
	minute                int64 // of the acceptance, since 1970
}

func acceptedKeyOf(job *NewJob, accepted *Accepted) acceptedKey {
	return acceptedKey{job.Request.OwnerID, job.Request.Queue, job.Request.JobType, accepted.CreatedAt.Unix() / 60}
}

func (a *accepts) add(key acceptedKey, n int32) {
	if a.of == nil {
		a.of = map[acceptedKey]int32{}
	}
	a.of[key] += n
}

func (a *accepts) count(jobs []NewJob, accepted []Accepted) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for from, to := 0, 0; from < len(accepted); from = to {
		key := acceptedKeyOf(&jobs[from], &accepted[from])
		var n int32
		for ; to < len(accepted) && acceptedKeyOf(&jobs[to], &accepted[to]) == key; to++ {
			if accepted[to].New() {
				n++
			}
		}
		if n > 0 {
			a.add(key, n)
			telemetry.JobsAccepted(key.queue, key.jobType, int(n))
		}
	}
}

func (a *accepts) take() map[acceptedKey]int32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.of
	a.of = nil
	return taken
}

func (a *accepts) giveBack(taken map[acceptedKey]int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, n := range taken {
		a.add(key, n)
	}
}

// CountAccepted counts jobs that a transaction has accepted.
func (s *Store) CountAccepted(jobs []NewJob, accepted []Accepted) { s.accepts.count(jobs, accepted) }

// EnterAccepted stores for the statistics how many jobs this process has accepted. A process that inserts jobs calls
// it every few seconds.
func (s *Store) EnterAccepted(ctx context.Context) error {
	taken := s.accepts.take()
	if len(taken) == 0 {
		return nil
	}
	var p gen.TallyEnterAcceptedParams
	for key, n := range taken {
		p.OwnerIDs, p.Queues = append(p.OwnerIDs, key.owner), append(p.Queues, key.queue)
		p.JobTypes, p.Ns = append(p.JobTypes, key.jobType), append(p.Ns, n)
		p.Ats = append(p.Ats, time.Unix(60*key.minute, 0))
	}
	err := s.q.TallyEnterAccepted(ctx, p)
	if err != nil {
		s.accepts.giveBack(taken)
	}
	return apidb.Classify("enter accepted jobs", err)
}
