package runjob

import "time"

// pass gives the records of attempts that hold back the commit of more than limit others, if they were claimed that
// long ago. Their rows keep them from starting again, so the records need not come again: should this worker be killed
// before it has published what became of them, the watchdog asks, and the rows answer. The others stay, also where they
// share a record: what is not committed tells a scaler how much its workers have to do, and should all of a record come
// again, the rows of its done attempts only have their outcomes published once more.
func (p *pool) pass(age time.Duration, limit int) []record {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var records []record
	for _, a := range p.mine {
		if a.passed || a.from.partition == nil || now.Sub(a.claimedAt) < age ||
			a.from.partition.tracker.Gap() <= limit {
			continue
		}
		a.passed = true
		records = append(records, a.from)
	}
	return records
}
