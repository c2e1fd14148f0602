package interplay

import (
	"reflect"
	"slices"
)

// Shorten returns a program that still fails, with fewer steps and jobs. fails is asked about many candidates at once,
// and returns the first one that failed; nil: none did. rapid's own shrinking takes a failure that does not come again
// for a flaky test, and here most failures are races: so a candidate runs several times side by side, and counts if any
// of its runs fails.
func Shorten(p Program, fails func(candidates []Program) *Program) Program {
	for size := max(1, len(p.Steps)/2); ; {
		if shorter := fails(without(p, size)); shorter != nil {
			p = *shorter
			size = min(size, max(1, len(p.Steps)/2))
			continue
		}
		if size == 1 {
			break
		}
		size /= 2
	}
	for {
		simpler := fails(simplerThan(p))
		if simpler == nil {
			return p
		}
		p = *simpler
	}
}

// without returns the program without each block of so many steps.
func without(p Program, size int) (list []Program) {
	for from := len(p.Steps) - size; from > -size && len(p.Steps) > 1; from -= size {
		begin, end := max(0, from), max(0, from)+size
		c := p
		c.Steps = slices.Delete(slices.Clone(p.Steps), begin, min(end, len(p.Steps)))
		if len(c.Steps) > 0 && len(c.Steps) < len(p.Steps) {
			list = append(list, c)
		}
	}
	return list
}

// simplerThan returns the program with one job less in a step, or with one option less for all jobs of a step.
func simplerThan(p Program) (list []Program) {
	for i, s := range p.Steps {
		if len(s.Jobs) > 1 {
			for k := range s.Jobs {
				c := s
				c.Jobs = slices.Delete(slices.Clone(s.Jobs), k, k+1)
				list = append(list, with(p, i, c))
			}
		}
		for _, plain := range plainer {
			c := s
			c.Jobs = slices.Clone(s.Jobs)
			changed := false
			for k := range c.Jobs {
				changed = plain(&c.Jobs[k]) || changed
			}
			if changed {
				list = append(list, with(p, i, c))
			}
		}
		if s.Race {
			c := s
			c.Race = false
			list = append(list, with(p, i, c))
		}
	}
	return list
}

func with(p Program, i int, s Step) Program {
	p.Steps = slices.Clone(p.Steps)
	p.Steps[i] = s
	return p
}

// plainer take an option away, and report whether the job had it.
var plainer = []func(*Job) bool{
	func(j *Job) bool { had := j.Priority != 0; j.Priority = 0; return had },
	func(j *Job) bool { had := j.Fairness != ""; j.Fairness = ""; return had },
	func(j *Job) bool { had := j.Tags != nil; j.Tags = nil; return had },
	func(j *Job) bool { had := j.Callback != ""; j.Callback = ""; return had },
	func(j *Job) bool { had := j.KeepBuild; j.KeepBuild = false; return had },
	func(j *Job) bool {
		had := j.Ordering != "" && j.Debounce == ""
		if had {
			j.Ordering = ""
		}
		return had
	},
	func(j *Job) bool { had := j.Singleton != ""; j.Singleton, j.Drop = "", false; return had },
	func(j *Job) bool { had := j.Unique != ""; j.Unique = ""; return had },
	func(j *Job) bool { had := j.Throttle != ""; j.Throttle = ""; return had },
	func(j *Job) bool { had := j.DelayMs != 0; j.DelayMs = 0; return had },
	func(j *Job) bool { had := j.ExpiresMs != 0; j.ExpiresMs = 0; return had },
	func(j *Job) bool { had := j.Idem != "" || j.OwnID; j.Idem, j.OwnID = "", false; return had },
	func(j *Job) bool { had := j.Queue != ""; j.Queue = ""; return had },
	func(j *Job) bool { had := j.Batch != ""; j.Batch = ""; return had },
	func(j *Job) bool {
		had := len(j.After) > 0 && j.Uses == "" && j.ForEach == ""
		if had {
			j.After, j.AnyEnd = nil, false
		}
		return had
	},
	func(j *Job) bool {
		had := len(j.Acts) > 1
		if had {
			j.Acts = j.Acts[:1]
		}
		return had
	},
	func(j *Job) bool {
		had := len(j.Acts) != 1 || !reflect.DeepEqual(j.Acts[0], Act{Do: actOK}) && j.Type != "EXTERNAL"
		if had {
			j.Acts = []Act{{Do: actOK}}
		}
		return had && j.Type != "EXTERNAL"
	},
}
