package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Results has all results of one or more runs of the bench. A part that was not measured is null.
type Results struct {
	Machine    Machine     `json:"machine"`
	Settings   Settings    `json:"settings"`
	Throughput *Throughput `json:"throughput,omitempty"`
	Latency    []Latency   `json:"latency,omitempty"`
	Backlog    []Backlog   `json:"backlog,omitempty"`
	Keys       *Keys       `json:"keys,omitempty"`
	Scale      *Scale      `json:"scale,omitempty"`
	Cost       *Cost       `json:"cost,omitempty"`
	Soak       *Soak       `json:"soak,omitempty"`
	Idle       *Idle       `json:"idle,omitempty"`
	Streams    *Streams    `json:"streams,omitempty"`
	Outbox     *Outbox     `json:"outbox,omitempty"`
	Pull       *Pull       `json:"pull,omitempty"`
	Kits       *Kits       `json:"kits,omitempty"`
	Waits      *Waits      `json:"waits,omitempty"`
	Payload    *Payload    `json:"payload,omitempty"`
	Retention  *Retention  `json:"retention,omitempty"`
	Audit      *Audit      `json:"audit,omitempty"`
	HTTP       *HTTP       `json:"http,omitempty"`
	Neighbours []Neighbour `json:"neighbours,omitempty"`
	Peers      []Peer      `json:"peers,omitempty"`
}

// Neighbour is a latency of one owner, alone and beside another one.
type Neighbour struct {
	Case   string       `json:"case"`
	Beside string       `json:"beside"` // what the other owner does
	Alone  Distribution `json:"alone"`
	With   Distribution `json:"with"`
}

// Machine describes the machine on which the bench ran.
type Machine struct {
	At         time.Time `json:"at"` // of the latest run
	CPU        string    `json:"cpu"`
	Cores      int       `json:"cores"`
	MemoryGiB  float64   `json:"memory_gib"`
	OS         string    `json:"os"`
	Go         string    `json:"go"`
	PostgreSQL string    `json:"postgresql"`
	River      string    `json:"river"`
	Revision   string    `json:"revision"` // the commit of the measured code, if git knows it
}

// Settings are the settings of the bench and of the measured worker.
type Settings struct {
	Jobs       int `json:"jobs"`
	Warm       int `json:"warm"`
	Rounds     int `json:"rounds"`
	Clients    int `json:"clients"`
	Batch      int `json:"batch"`
	Slots      int `json:"slots"`       // of the worker
	SlotQueue  int `json:"slot_queue"`  // attempts that wait in the worker
	RiverSlots int `json:"river_slots"` // River's workers
}

// Throughput is part 1.
type Throughput struct {
	Rounds   []Round           `json:"rounds"`
	JobsPerS map[string]Spread `json:"jobs_per_s"`     // by contestant
	Ratios   map[string]Spread `json:"ratio_to_river"` // by contestant
}

// Latency is part 2: one contestant at one rate. River has no Completed, and its Post is its insert.
type Latency struct {
	Contestant string         `json:"contestant"`
	Rate       int            `json:"rate"`
	Post       Distribution   `json:"post"`
	Start      Distribution   `json:"start"`
	Completed  Distribution   `json:"completed"`
	Refused    int            `json:"refused"`     // 503s and 429s
	Uses       map[string]Use `json:"uses"`        // by process: functions or river, postgres, broker
	Flushes    float64        `json:"wal_flushes"` // a job
	// Databases is PostgreSQL's processor time by database.
	Databases map[string]float64 `json:"database_us_per_job"`
}

// CPU is the processor time of all processes in µs.
func (l Latency) CPU() (micros float64) {
	for _, use := range l.Uses {
		micros += use.CPU
	}
	return micros
}

// Use is how much of the machine a process uses for one job.
type Use struct {
	CPU      float64 `json:"cpu_us"`
	Switches float64 `json:"switches"` // of its threads
}

// Backlog is part 3: the rate of dispatch with a given number of waiting jobs.
type Backlog struct {
	Case      string       `json:"case"`
	Waiting   int          `json:"waiting"`
	Scheduled int          `json:"scheduled"`
	FillPerS  float64      `json:"fill_per_s"`
	Window    float64      `json:"window_s"`
	JobsPerS  float64      `json:"jobs_per_s"`
	Ratio     float64      `json:"ratio"` // to the case with which it is compared
	Post      Distribution `json:"post"`
}

// Keys compares the rates of dispatch with jobs of one fairness key waiting, and of many.
type Keys struct {
	Waiting int    `json:"waiting"`
	Keys    int    `json:"keys"`
	One     Spread `json:"one_jobs_per_s"`
	Many    Spread `json:"many_jobs_per_s"`
	Ratio   Spread `json:"ratio"` // of many to one in the same round
}

// Scale is part 4.
type Scale struct {
	Slots   int          `json:"slots"` // of each worker
	SleepMs int          `json:"sleep_ms"`
	Steps   []ScaleStep  `json:"steps"`
	Pauses  []ScalePause `json:"pauses"`
}

// ScaleStep is a number of workers, their throughput, and its fraction of the ideal.
type ScaleStep struct {
	Workers  int     `json:"workers"`
	JobsPerS float64 `json:"jobs_per_s"`
	Fraction float64 `json:"fraction"`
}

// ScalePause is the longest time without a completion.
type ScalePause struct {
	Case string  `json:"case"` // steady, join, leave
	Ms   float64 `json:"ms"`
}

// Cost is part 5.
type Cost struct {
	CPU           map[string]map[string]float64 `json:"cpu_us_per_job"` // by contestant, by process
	Memory        []Memory                      `json:"memory"`
	Jobs          int                           `json:"jobs"`
	Tables        []Table                       `json:"tables"`
	RowWrites     float64                       `json:"row_writes_per_job"`
	WALBytes      float64                       `json:"wal_bytes_per_job"`
	Statements    float64                       `json:"statements_per_job"` // round trips
	Transactions  float64                       `json:"transactions_per_job"`
	DatabaseBytes float64                       `json:"database_bytes_per_job"`
	TopStatements []Statement                   `json:"top_statements"`
}

// Memory of a contestant's process in MiB.
type Memory struct {
	Contestant string  `json:"contestant"`
	Process    string  `json:"process"`
	Rest       float64 `json:"rest_mib"`
	Peak       float64 `json:"peak_mib"`
}

// Table has what one job writes to a table.
type Table struct {
	Database   string  `json:"database"`
	Table      string  `json:"table"`
	Inserts    float64 `json:"inserts_per_job"`
	Updates    float64 `json:"updates_per_job"`
	HotUpdates float64 `json:"hot_updates_per_job"`
	Deletes    float64 `json:"deletes_per_job"`
	Bytes      float64 `json:"bytes_per_job"` // of the table and its indexes
}

// Statement is one of the statements that take most of PostgreSQL's time.
type Statement struct {
	Database string  `json:"database"`
	Text     string  `json:"text"`
	Calls    int64   `json:"calls"`
	Micros   float64 `json:"us_per_job"`
	Rows     float64 `json:"rows_per_job"`
}

// Soak is part 6.
type Soak struct {
	Rate    float64  `json:"rate"`  // the requested rate, in jobs a second
	Batch   int      `json:"batch"` // jobs in a POST
	Minutes []Minute `json:"minutes"`
}

// Minute is one step of a soak; a short soak has shorter steps.
type Minute struct {
	Ended        float64      `json:"ended_s"` // seconds since the soak began
	JobsPerS     float64      `json:"jobs_per_s"`
	Post         Distribution `json:"post"`
	Start        Distribution `json:"start"`
	FunctionsMiB float64      `json:"functions_mib"`
	PostgresMiB  float64      `json:"postgres_mib"`
	DeadRows     int64        `json:"dead_rows"`
	BytesPerJob  float64      `json:"bytes_per_job"` // of tables and indexes, divided by all jobs so far
	TableBytes   int64        `json:"table_bytes"`
	IndexBytes   int64        `json:"index_bytes"`
	FunctionsCPU float64      `json:"functions_cpu"` // of a core
	PostgresCPU  float64      `json:"postgres_cpu"`
	BacklogAtEnd int          `json:"backlog_at_end"` // submitted and not completed
}

// Idle is an installation without jobs.
type Idle struct {
	Seconds      float64 `json:"seconds"`
	FunctionsCPU float64 `json:"functions_cpu_percent"`
	PostgresCPU  float64 `json:"postgres_cpu_percent"`
	FunctionsMiB float64 `json:"functions_mib"`
	// Context switches a second: how often a thread was woken.
	FunctionsWakeUps float64 `json:"functions_wake_ups"`
	PostgresWakeUps  float64 `json:"postgres_wake_ups"`
}

// Streams compares an installation with open event streams and the same one without.
type Streams struct {
	Open         int    `json:"open"`
	Rate         int    `json:"rate"`          // jobs a second of the steady load
	Speed        Spread `json:"speed"`         // throughput with streams / without
	FunctionsCPU Spread `json:"functions_cpu"` // of the functions, for one job of a burst: with streams / without
	Core         Spread `json:"core"`          // how much more of a core the functions use at the steady rate
}

// Retention compares an installation that deletes old jobs with the same one that keeps them.
type Retention struct {
	OldJobs     int            `json:"old_jobs"`
	Rate        int            `json:"rate"`        // of single jobs, a second
	Keeps       []Distribution `json:"keeps_start"` // before and after
	Deletes     Distribution   `json:"deletes_start"`
	DeletedPerS float64        `json:"deleted_per_s"`
	DeletedCPU  float64        `json:"cpu_us_per_deleted"` // more than functions and PostgreSQL use without it
}

// Audit compares single POSTs without authentication and with it, where each has an entry in the audit log.
type Audit struct {
	Rate          int        `json:"rate"` // a second
	Off           []PostCost `json:"off"`  // by round
	On            []PostCost `json:"on"`
	ForgottenPerS []float64  `json:"forgotten_per_s"` // entries deleted a second
}

// PostCost is what a single POST costs, with the run of its job.
type PostCost struct {
	Entries    float64            `json:"entries"`     // of the audit log
	Bytes      float64            `json:"bytes"`       // of these entries and their indexes
	BatchBytes float64            `json:"batch_bytes"` // the same for a job of a batch
	WALBytes   float64            `json:"wal_bytes"`
	CPU        map[string]float64 `json:"cpu_us"` // by process
	Post       Distribution       `json:"post"`
}

func (c PostCost) String() string {
	return fmt.Sprintf(
		"%.2f entries, %.0f bytes (%.0f in a batch); WAL %.0f bytes; CPU µs: functions %.0f, PostgreSQL %.0f; POST %s",
		c.Entries, c.Bytes, c.BatchBytes, c.WALBytes, c.CPU["functions"], c.CPU["postgres"], c.Post)
}

// Outbox compares jobs from an outbox in a user's database with the same jobs by POST.
type Outbox struct {
	Rate      int          `json:"rate"`       // of the two latencies, jobs a second
	Post      Distribution `json:"post_start"` // from when the job was due to be submitted to its start
	Commit    Distribution `json:"commit_start"`
	Jobs      int          `json:"jobs"`        // of one commit
	TakenPerS float64      `json:"taken_per_s"` // until the outbox was empty
	EndedPerS float64      `json:"ended_per_s"` // until all had ended
	RelayCPU  float64      `json:"relay_cpu_us_per_job"`
	IdleCPU   float64      `json:"relay_idle_cpu_percent"` // of a core
	IdleMiB   float64      `json:"relay_mib"`
}

// Kits compares the worker kits of three languages.
type Kits struct {
	Jobs    int                  `json:"jobs"`
	Slots   int                  `json:"slots"`
	Seconds map[string][]float64 `json:"seconds"` // of each round, by language
}

// Waits is what an event costs that is there when a handler asks for it, and what jobs cost that wait for one.
type Waits struct {
	Asked          Distribution `json:"asked"`                   // in the handler
	Jobs           int          `json:"jobs"`                    // that wait at once
	Slots          int          `json:"slots"`                   // of the worker
	Taken          int          `json:"taken"`                   // of these, by the jobs that wait
	WorkerBytes    float64      `json:"worker_bytes_per_job"`    // of its heap
	FunctionsBytes float64      `json:"functions_bytes_per_job"` // of the memory of their process
	Woken          int          `json:"woken"`
	Seconds        float64      `json:"seconds"` // from the first event to the end of all jobs
}

// Pull compares jobs that pull workers run with the same jobs run by the function runjob.
type Pull struct {
	Rate     int                `json:"rate"`         // of the two latencies, jobs a second
	Worker   Distribution       `json:"worker_start"` // from when the job was due to be submitted to its start
	Puller   Distribution       `json:"puller_start"`
	Jobs     int                `json:"jobs"`
	Pullers  int                `json:"pullers"`
	Slots    int                `json:"slots"` // of each
	JobsPerS float64            `json:"jobs_per_s"`
	CPU      map[string]float64 `json:"cpu_us_per_job"`
	Idle     int                `json:"idle_pullers"`
	IdleCPU  float64            `json:"idle_cpu_percent"` // how much more of a core the functions use for them
	IdleMiB  float64            `json:"idle_mib"`         // likewise
}

// Read returns the results in a file; none if the file does not exist.
func Read(file string) (Results, error) {
	var r Results
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", file, err)
	}
	return r, nil
}

// Keep writes the results to a file.
func (r Results) Keep(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
