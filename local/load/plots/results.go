package main

// results has the part of the bench's results (local/load/figures) that is drawn.
type results struct {
	Throughput *struct {
		Rounds []struct {
			Contestant string             `json:"contestant"`
			JobsPerS   float64            `json:"jobs_per_s"`
			CPU        map[string]float64 `json:"cpu_us_per_job"`
		} `json:"rounds"`
		JobsPerS map[string]spread `json:"jobs_per_s"`
		Ratios   map[string]spread `json:"ratio_to_river"`
	} `json:"throughput"`
	Latency []struct {
		Contestant string       `json:"contestant"`
		Rate       int          `json:"rate"`
		Start      distribution `json:"start"`
	} `json:"latency"`
	Backlog []struct {
		Case     string  `json:"case"`
		JobsPerS float64 `json:"jobs_per_s"`
		Ratio    float64 `json:"ratio"`
	} `json:"backlog"`
	Scale *struct {
		Slots   int `json:"slots"`
		SleepMs int `json:"sleep_ms"`
		Steps   []struct {
			Workers  int     `json:"workers"`
			JobsPerS float64 `json:"jobs_per_s"`
			Fraction float64 `json:"fraction"`
		} `json:"steps"`
	} `json:"scale"`
	Cost *struct {
		CPU map[string]map[string]float64 `json:"cpu_us_per_job"`
	} `json:"cost"`
	Soak *struct {
		Rate    float64  `json:"rate"`
		Minutes []minute `json:"minutes"`
	} `json:"soak"`
}

type spread struct {
	Median float64 `json:"median"`
}

type distribution struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
}

type minute struct {
	Ended        float64      `json:"ended_s"`
	Start        distribution `json:"start"`
	FunctionsMiB float64      `json:"functions_mib"`
	PostgresMiB  float64      `json:"postgres_mib"`
	BytesPerJob  float64      `json:"bytes_per_job"`
}

// meanCPU returns the yardstick's processor time a job, which the cost part does not measure again.
func (r results) meanCPU(contestant string) map[string]float64 {
	sums, n := map[string]float64{}, 0.0
	if r.Throughput == nil {
		return sums
	}
	for _, round := range r.Throughput.Rounds {
		if round.Contestant == contestant {
			n++
			for process, us := range round.CPU {
				sums[process] += us
			}
		}
	}
	for process := range sums {
		sums[process] /= n
	}
	return sums
}

// names are the names of the contestants in pictures, in the order in which they appear.
var names = []struct{ key, text string }{
	{"river", "River"}, {"embedded", "JobWeaver, embedded broker"}, {"apache", "JobWeaver, Apache Kafka"},
}
