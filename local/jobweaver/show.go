package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/jobweaver/jobweaver/shared/client"
)

// printable takes control characters out of a text that others wrote, or it could draw on our terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

func line(text string) string { return strings.ReplaceAll(printable(text), "\n", " ") }

func showJob(w io.Writer, job *client.Job) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	field := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, line(fmt.Sprintf(format, args...)))
	}
	field("job", "%s", job.JobID)
	field("type", "%s on queue %s", job.JobType, job.Queue)
	fmt.Fprintf(t, "status\t%s\n", coloured(w, job.Status))
	field("attempt", "%s", attemptOf(job))
	field("created", "%s", at(&job.CreatedAt))
	if waits := waitsFor(job); waits != "" {
		field("waits for", "%s", waits)
	}
	if job.FinishedAt != nil {
		field("finished", "%s", at(job.FinishedAt))
	}
	if job.Progress != nil {
		field("progress", "%d %% %s", job.Progress.Percent, job.Progress.Message)
	}
	if job.LastError != nil {
		field("last error", "%s: %s", job.LastError.ErrorCode, job.LastError.Message)
	}
	if output := job.OutputText(); output != "" {
		field("output", "%s", output)
	}
	if job.CallbackURL != "" {
		field("callback URL", "%s", job.CallbackURL)
	}
	for _, move := range job.History {
		text := fmt.Sprintf("%s (attempt %d) by %s %s", move.To, move.Attempt, move.By, move.Reason)
		field(at(&move.At), "%s", strings.TrimSpace(text))
	}
	return t.Flush()
}

// attemptOf is the number of the attempt. Not every attempt counts as a retry: one whose worker died does not.
func attemptOf(job *client.Job) string {
	switch job.RetryCount {
	case 0:
		return strconv.Itoa(job.Attempt)
	case 1:
		return fmt.Sprintf("%d, 1 retry counted", job.Attempt)
	}
	return fmt.Sprintf("%d, %d retries counted", job.Attempt, job.RetryCount)
}

func showJobs(w io.Writer, jobs []client.Job) error {
	head := "JOB\tTYPE\tQUEUE\tSTATUS\tATTEMPT\tCREATED\tTAGS\tWAITS FOR"
	return table(w, head, "no jobs", len(jobs), func(i int) []any {
		j := &jobs[i]
		return []any{
			j.JobID, j.JobType, j.Queue, j.Status, j.Attempt, at(&j.CreatedAt), dashIfEmpty(strings.Join(j.Tags, ",")),
			dashIfEmpty(waitsFor(j)),
		}
	})
}

// waitsFor is what a job waits for, and until when; empty: for nothing, or for a worker.
func waitsFor(job *client.Job) string {
	var all []string
	if waits := job.WaitsFor(); waits != "" {
		all = append(all, waits)
	}
	switch {
	case job.CallbackDeadlineAt != nil:
		all = append(all, "its callback, until "+at(job.CallbackDeadlineAt))
	case job.NextRunAt != nil && (job.Status == "SCHEDULED" || job.Status == "RETRYING"):
		all = append(all, "its time, next at "+at(job.NextRunAt))
	}
	return strings.Join(all, "; ")
}

func dashIfEmpty(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// at is an instant in the zone of this machine, which it names.
func at(instant *time.Time) string { return instant.Local().Format("2006-01-02 15:04:05.000 -07:00") }
