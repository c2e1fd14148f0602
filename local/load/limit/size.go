package limit

import (
	"fmt"
	"io"
)

// PricesOf is when the prices were those of the list: us-east-1 of AWS, on demand, approximately.
const PricesOf = "2025-06"

// Dollars a month, or a GB in a month.
const (
	small, medium        = 12, 25   // t4g.small and medium: 2 vCPUs with bursts, 2 and 4 GiB
	large2, xlarge4      = 60, 119  // m7g.large and xlarge: 2 and 4 vCPUs, 8 and 16 GiB
	memory4, memory16    = 156, 626 // r7g.xlarge and 4xlarge: 4 and 16 vCPUs, 32 and 128 GiB
	diskGB, betweenZones = 0.08, 0.02
)

const (
	month = 730 * 3600.0 // seconds
	day   = 86400.0

	payloadKB, outputKB = 1, 0.1
	keptKB              = 2.6 + 2*payloadKB + 3*outputKB // in the databases
	walKB               = 3.8 + 2*payloadKB              // with the payload in two of them
	singleAuditKB       = 0.3
	batchAuditKB        = 0.134
	auditDays           = 30

	batchUS   = 97 + 81 + 75 // PostgreSQL, functions, Kafka
	retireUS  = 34
	keysUS    = 15
	singleUS  = 7700 // at 100/s, all together
	fasterUS  = 2700 // at 500/s, all together
	withKey   = 1.18 // times that with an API key and the audit log
	replicaOf = 2    // each byte is on two servers
)

// Size is what an installation needs at a rate.
type Size struct {
	Rate      float64
	Single    float64 // µs of CPU of a job that is submitted alone
	KeepDays  float64 // RETAIN_COMPLETED
	Audit     float64 // kB a job
	Machines  string
	MachinesD float64 // dollars a month
}

// Sizes are examples; each has a replica of PostgreSQL in another zone.
var Sizes = []Size{
	{10, singleUS, 7, singleAuditKB, "2 t4g.small, `serve` and its standby; 2 t4g.medium, PostgreSQL", 2*small + 2*medium},
	{
		100, singleUS, 7, singleAuditKB,
		"2 t4g.medium, `serve` and its standby; 2 m7g.large, PostgreSQL", 2*medium + 2*large2,
	},
	{
		1_000, fasterUS, 1, batchAuditKB,
		"2 m7g.large, `serve`; 3 m7g.large, Kafka; 2 r7g.xlarge, PostgreSQL", 5*large2 + 2*memory4,
	},
	{
		10_000, 0, 1, batchAuditKB,
		"3 m7g.xlarge, `serve`; 3 m7g.xlarge, Kafka; 2 r7g.4xlarge, PostgreSQL", 6*xlarge4 + 2*memory16,
	},
}

// batched returns the cores that jobs in batches need, with fairness keys and with what retention deletes later.
func (s Size) batched() float64 { return s.Rate * (batchUS + keysUS + retireUS) / 1e6 }

func (s Size) diskGB() float64 { return s.Rate * day * keptKB * s.KeepDays / 1e6 }

func (s Size) auditGB() float64 { return s.Rate * day * s.Audit * auditDays / 1e6 }

func (s Size) walMB() float64 { return s.Rate * walKB / 1e3 }

func (s Size) dollars() float64 {
	disks := replicaOf * (s.diskGB() + s.auditGB()) * diskGB
	return s.MachinesD + disks + s.walMB()/1e3*month*betweenZones
}

// PrintSizes writes the table of docs/operations.md.
func PrintSizes(w io.Writer) error {
	fmt.Fprintln(w, "| jobs/s | cores: alone, in batches | WAL | disk, `RETAIN_COMPLETED` | audit log, 30 days "+
		"| example | $ a month |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, s := range Sizes {
		alone := "–"
		if s.Single > 0 {
			alone = fmt.Sprintf("%.2g", s.Rate*s.Single*withKey/1e6)
		}
		_, err := fmt.Fprintf(w, "| %.0f | %s, %.2g | %.2g MB/s | %s, %s | %s | %s | %s |\n",
			s.Rate, alone, s.batched(), s.walMB(), amount(s.diskGB()), days(s.KeepDays), amount(s.auditGB()), s.Machines,
			rounded(s.dollars()))
		if err != nil {
			return err
		}
	}
	return nil
}

func amount(gb float64) string {
	if gb >= 1000 {
		return fmt.Sprintf("%.1f TB", gb/1000)
	}
	return fmt.Sprintf("%.0f GB", gb)
}

// rounded returns two digits, for prices that are approximate.
func rounded(dollars float64) string {
	unit := 1.0
	for dollars/unit >= 100 {
		unit *= 10
	}
	return fmt.Sprintf("%.0f", float64(int(dollars/unit+0.5))*unit)
}

func days(n float64) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%g days", n)
}
