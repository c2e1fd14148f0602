package figures

// PeerRound is one timed run of a job system that takes work over the network.
type PeerRound struct {
	Name     string
	JobsPerS float64
	CPU      float64 // µs a job, of all its processes
	Start    Distribution
}

// Peer has the results of one system over all rounds.
type Peer struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	JobsPerS Spread `json:"jobs_per_s"`
	CPU      Spread `json:"cpu_us_per_job"`
	StartP50 Spread `json:"start_p50_ms"` // of single jobs at a steady rate, from the instant at which each was due
	StartP99 Spread `json:"start_p99_ms"`
}

// SumUpPeer sums up the rounds of one system.
func SumUpPeer(name, version string, rounds []PeerRound) Peer {
	var rates, cpu, p50, p99 []float64
	for _, round := range rounds {
		if round.Name == name {
			rates, cpu = append(rates, round.JobsPerS), append(cpu, round.CPU)
			p50, p99 = append(p50, round.Start.P50), append(p99, round.Start.P99)
		}
	}
	return Peer{
		Name: name, Version: version, JobsPerS: SpreadOf(rates), CPU: SpreadOf(cpu),
		StartP50: SpreadOf(p50), StartP99: SpreadOf(p99),
	}
}

// Way has the results for one transport of events between functions: those of one round, or medians.
type Way struct {
	JobsPerS float64            `json:"jobs_per_s"`
	CPU      map[string]float64 `json:"cpu_us_per_job"` // by process
	Start    Distribution       `json:"start"`          // of single jobs at a steady rate
}

// HTTPRound has the results of both transports, measured one after the other.
type HTTPRound struct {
	Kafka Way `json:"kafka"`
	HTTP  Way `json:"http"`
}

// HTTP compares functions over HTTP with the same functions on Kafka.
type HTTP struct {
	Rounds []HTTPRound `json:"rounds"`
	Ratio  Spread      `json:"ratio_to_kafka"`
}

// SumUpHTTP sums up the rounds.
func SumUpHTTP(rounds []HTTPRound) *HTTP {
	var ratios []float64
	for _, round := range rounds {
		ratios = append(ratios, round.HTTP.JobsPerS/round.Kafka.JobsPerS)
	}
	return &HTTP{Rounds: rounds, Ratio: SpreadOf(ratios)}
}

// Payload has the throughput and latency with a larger payload.
type Payload struct {
	Bytes      int         `json:"bytes"`
	Throughput *Throughput `json:"throughput"`
	Latency    []Latency   `json:"latency"`
}

// Busiest returns the time that PostgreSQL spent for its busiest database.
func Busiest(databases map[string]float64) float64 {
	most := 0.
	for _, micros := range databases {
		most = max(most, micros)
	}
	return most
}
