package jobcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

func showJob(w io.Writer, job *client.Job) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	field := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, cli.Line(fmt.Sprintf(format, args...)))
	}
	field("job", "%s", job.JobID)
	field("type", "%s on queue %s", job.JobType, job.Queue)
	fmt.Fprintf(t, "status\t%s\n", cli.Coloured(w, job.Status))
	field("attempt", "%s", attemptOf(job))
	field("created", "%s", cli.At(&job.CreatedAt))
	if waits := waitsFor(job); waits != "" {
		field("waits for", "%s", waits)
	}
	if job.FinishedAt != nil {
		field("finished", "%s", cli.At(job.FinishedAt))
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
		field(cli.At(&move.At), "%s", strings.TrimSpace(text))
	}
	for i := range job.Attempts {
		if a := &job.Attempts[i]; a.Outcome != "" {
			field(fmt.Sprintf("attempt %d", a.Attempt), "%s", outcomeOf(a))
		}
	}
	for i := range job.Steps {
		field("step", "%s", stepOf(&job.Steps[i]))
	}
	return t.Flush()
}

// mostResult is the longest result of a step that is shown in its line.
const mostResult = 200

// stepOf describes a step of the job's handler, or a sleep.
func stepOf(s *client.Step) string {
	text := fmt.Sprintf("%s: attempt %d", s.Name, s.Attempt)
	if !s.Until.IsZero() {
		return text + " sleeps until " + cli.At(&s.Until)
	}
	if s.TookMs > 0 {
		text += fmt.Sprintf(", after %s", time.Duration(s.TookMs)*time.Millisecond)
	}
	switch result := string(s.Result); {
	case result == "null" && s.Bytes == len(result):
	case result == "null" || len(result) > mostResult:
		text += fmt.Sprintf(", returned %d bytes", s.Bytes)
	default:
		text += ", returned " + result
	}
	return text
}

// outcomeOf describes how an attempt has ended.
func outcomeOf(a *client.Attempt) string {
	text := a.Outcome
	if a.StartedAt != nil && a.FinishedAt != nil {
		text += fmt.Sprintf(" after %s", a.FinishedAt.Sub(*a.StartedAt).Round(time.Millisecond))
	}
	if a.ErrorCode != "" {
		text += fmt.Sprintf(": %s: %s", a.ErrorCode, a.Message)
	}
	return text
}

// attemptOf returns the number of the attempt. Not every attempt is a retry: an attempt after a lost one is not.
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
	return cli.Table(w, head, "no jobs", len(jobs), func(i int) []any {
		j := &jobs[i]
		return []any{
			j.JobID, j.JobType, j.Queue, j.Status, j.Attempt, cli.At(&j.CreatedAt), cli.DashIfEmpty(strings.Join(j.Tags, ",")),
			cli.DashIfEmpty(waitsFor(j)),
		}
	})
}

// waitsFor returns what a job waits for, and until when; empty: nothing, or a worker.
func waitsFor(job *client.Job) string {
	var all []string
	if waits := job.WaitsFor(); waits != "" {
		all = append(all, waits)
	}
	for i := range job.Waits {
		if job.Waits[i].Status == client.WaitOpen && job.Status == "SCHEDULED" {
			all = append(all, waitOf(&job.Waits[i]))
		}
	}
	switch {
	case len(job.Waits) > 0 && len(all) > 0: // its time is when the next wait is over
	case job.CallbackDeadlineAt != nil:
		all = append(all, "its callback, until "+cli.At(job.CallbackDeadlineAt))
	case job.NextRunAt != nil && (job.Status == "SCHEDULED" || job.Status == "RETRYING"):
		all = append(all, "its time, next at "+cli.At(job.NextRunAt))
	}
	return strings.Join(all, "; ")
}

// waitOf describes a wait of the job's handler.
func waitOf(w *client.Wait) string {
	var text string
	switch {
	case w.Event != nil:
		text = "an event " + w.Event.Type
		if len(w.Event.Match) > 0 {
			if match, err := json.Marshal(w.Event.Match); err == nil {
				text += " with " + string(match)
			}
		}
	case w.Job != nil:
		text = fmt.Sprintf("%s job %s, which is %s", w.Job.JobType, w.Job.JobID, w.Job.Status)
	default:
		text = "a job that it calls"
	}
	if !w.Until.IsZero() {
		text += ", until " + cli.At(&w.Until)
	}
	return text
}
