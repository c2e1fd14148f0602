package figures

// Yardstick is the contestant with which the others are compared.
const Yardstick = "river"

// Round is one timed run of one contestant.
type Round struct {
	Contestant string  `json:"contestant"`
	Jobs       int     `json:"jobs"`
	Seconds    float64 `json:"seconds"` // from the first insert until the last job is completed
	Accepted   float64 `json:"accepted_s"`
	JobsPerS   float64 `json:"jobs_per_s"`
	// CPU microseconds a job, by process: functions, broker, postgres, load, river.
	CPU map[string]float64 `json:"cpu_us_per_job"`
	// Databases is PostgreSQL's processor time by database.
	Databases map[string]float64 `json:"database_us_per_job"`
	// Others is how many cores were busy with other programs. If they were many, the round is worth little.
	Others float64 `json:"others_cores"`
}

// Plan is the order of the rounds: the yardstick before and after each other round, so that both contestants
// are affected alike if the machine becomes slower or faster.
func Plan(rounds int, contestants []string) []string {
	plan := []string{Yardstick}
	for range rounds {
		for _, name := range contestants {
			plan = append(plan, name, Yardstick)
		}
	}
	return plan
}

// Ratios compares each round of a contestant with the mean of the yardstick's nearest rounds before and after it. A
// round without such rounds has no ratio.
func Ratios(rounds []Round, contestant string) []float64 {
	var ratios []float64
	for i, round := range rounds {
		if round.Contestant != contestant {
			continue
		}
		var sum, n float64
		for _, beside := range []int{nearest(rounds, i, -1), nearest(rounds, i, +1)} {
			if beside >= 0 {
				sum, n = sum+rounds[beside].JobsPerS, n+1
			}
		}
		if sum > 0 {
			ratios = append(ratios, round.JobsPerS/(sum/n))
		}
	}
	return ratios
}

// nearest returns the yardstick's round that is nearest to round i in a direction; -1 if there is none.
func nearest(rounds []Round, i, step int) int {
	for at := i + step; at >= 0 && at < len(rounds); at += step {
		if rounds[at].Contestant == Yardstick {
			return at
		}
	}
	return -1
}

// Rates returns the jobs a second of one contestant's rounds.
func Rates(rounds []Round, contestant string) []float64 {
	var rates []float64
	for _, round := range rounds {
		if round.Contestant == contestant {
			rates = append(rates, round.JobsPerS)
		}
	}
	return rates
}

// MeanCPU returns a contestant's processor time a job by process, over all its rounds.
func MeanCPU(rounds []Round, contestant string) map[string]float64 {
	return mean(rounds, contestant, func(r Round) map[string]float64 { return r.CPU })
}

// MeanDatabases returns PostgreSQL's processor time a job by database, over all rounds of a contestant.
func MeanDatabases(rounds []Round, contestant string) map[string]float64 {
	return mean(rounds, contestant, func(r Round) map[string]float64 { return r.Databases })
}

func mean(rounds []Round, contestant string, of func(Round) map[string]float64) map[string]float64 {
	sums, n := map[string]float64{}, 0
	for _, round := range rounds {
		if round.Contestant != contestant {
			continue
		}
		n++
		for process, us := range of(round) {
			sums[process] += us
		}
	}
	for process := range sums {
		sums[process] /= float64(n)
	}
	return sums
}
