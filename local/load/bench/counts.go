package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jobweaver/jobweaver/local/load/apiload"
	"github.com/jobweaver/jobweaver/local/load/figures"
	"github.com/jobweaver/jobweaver/local/load/rig"
)

const (
	topStatements  = 12 // number of the most expensive statements in the results
	statementBytes = 110
)

func (b *bench) countedJobs(ctx context.Context, url string) error {
	api := apiload.New(url)
	defer api.Close()
	_, err := api.Throughput(ctx, b.noop, b.Settings.Jobs, b.Settings.Clients, b.Settings.Batch)
	return err
}

// fillCost divides the counters by the number of jobs.
func fillCost(c *figures.Cost, counts rig.Counts, tables []rig.Table) {
	jobs := float64(c.Jobs)
	c.WALBytes, c.Transactions = float64(counts.WALBytes)/jobs, float64(counts.Transactions)/jobs
	for _, t := range tables {
		bytes := float64(t.Bytes+t.IndexBytes) / jobs
		c.DatabaseBytes += bytes
		c.RowWrites += float64(t.Inserts+t.Updates+t.Deletes) / jobs
		c.Tables = append(c.Tables, figures.Table{
			Database: t.Database, Table: t.Name, Bytes: bytes, Inserts: float64(t.Inserts) / jobs,
			Updates: float64(t.Updates) / jobs, HotUpdates: float64(t.HotUpdates) / jobs, Deletes: float64(t.Deletes) / jobs,
		})
	}
	var all []figures.Statement
	for key, called := range counts.Statements {
		c.Statements += float64(called.Calls) / jobs
		all = append(all, figures.Statement{
			Database: key.Database, Text: recognizable(key.Text), Calls: called.Calls,
			Micros: called.Millis * 1000 / jobs, Rows: float64(called.Rows) / jobs,
		})
	}
	slices.SortFunc(all, func(a, b figures.Statement) int { return cmp.Compare(b.Micros, a.Micros) })
	c.TopStatements = all[:min(len(all), topStatements)]
}

var writes = regexp.MustCompile(`(?i)\b(insert into|update|delete from) \w+`)

// recognizable returns a short form of a statement: the table that it writes, and its first words.
func recognizable(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, at := range writes.FindAllStringIndex(text, -1) {
		before := text[:at[0]]
		if strings.HasSuffix(before, "for ") || strings.HasSuffix(before, "key ") { // a lock
			continue
		}
		if before != "" {
			text = text[at[0]:at[1]] + ": " + text
		}
		break
	}
	return text[:min(len(text), statementBytes)]
}

func processes(cpu map[string]float64) string {
	var sum float64
	for process, micros := range cpu {
		if process != "load" {
			sum += micros
		}
	}
	return fmt.Sprintf("%s; without load %.0f µs of CPU a job", each(cpu), sum)
}

// each lists values by name.
func each(values map[string]float64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, fmt.Sprintf("%s %.0f", name, values[name]))
	}
	return strings.Join(parts, ", ")
}

func counts(c *figures.Cost) string {
	return fmt.Sprintf("%.2f row writes, %.0f bytes of WAL, %.3f statements, %.3f transactions, %.0f bytes kept a job",
		c.RowWrites, c.WALBytes, c.Statements, c.Transactions, c.DatabaseBytes)
}
