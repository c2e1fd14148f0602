package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/jobweaver/jobweaver/local/client"
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
	field("status", "%s", job.Status)
	field("attempt", "%d, %d retries counted", job.Attempt, job.RetryCount)
	field("created", "%s", at(&job.CreatedAt))
	if job.NextRunAt != nil {
		field("next run", "%s", at(job.NextRunAt))
	}
	if job.CallbackDeadlineAt != nil {
		field("callback until", "%s", at(job.CallbackDeadlineAt))
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
		field("end is told", "%s", job.CallbackURL)
	}
	for _, move := range job.History {
		field(at(&move.At), "%s (attempt %d) by %s %s", move.To, move.Attempt, move.By, move.Reason)
	}
	return t.Flush()
}

func showJobs(w io.Writer, jobs []client.Job) error {
	if len(jobs) == 0 {
		_, err := fmt.Fprintln(w, "no jobs")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "JOB\tTYPE\tQUEUE\tSTATUS\tATTEMPT\tCREATED\tTAGS")
	for _, j := range jobs {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", line(j.JobID), line(j.JobType), line(j.Queue), line(j.Status),
			j.Attempt, at(&j.CreatedAt), line(strings.Join(j.Tags, ",")))
	}
	return t.Flush()
}

func at(instant *time.Time) string { return instant.Local().Format("2006-01-02 15:04:05.000") }
