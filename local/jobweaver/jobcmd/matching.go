package jobcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/client"
)

// Before a command for many jobs is sent, the jobs are counted, up to this number of jobs and this number of pages:
// pages may have few jobs.
const (
	countMost = 1000
	pagesMost = 25
)

// matching is the number of jobs that a filter matches, and the first of them.
type matching struct {
	Command string         `json:"command"`
	Filter  map[string]any `json:"filter"`
	Count   int            `json:"count"`
	More    bool           `json:"more"` // there may be more
	Jobs    []matchingJob  `json:"jobs"`
}

type matchingJob struct {
	JobID string `json:"jobId"`
}

func (m matching) String() string {
	text := fmt.Sprintf("%d jobs", m.Count)
	if m.Count == 1 {
		text = "1 job"
	}
	if m.More {
		return "at least " + text
	}
	return text
}

// count counts the jobs that match a filter and are in a state that allows the command.
func count(cmd *cobra.Command, command string, filter map[string]any) (matching, error) {
	m := matching{Command: command, Filter: filter, Jobs: []matchingJob{}}
	query := queryOf(filter)
	given := query["status"]
	query.Del("status")
	for _, status := range commandstore.Allows(command) {
		if len(given) == 0 || slices.Contains(given, string(status)) {
			query.Add("status", string(status))
		}
	}
	if !query.Has("status") {
		return m, nil
	}
	query.Set("limit", strconv.Itoa(cli.PageMost))
	for pages := 0; ; pages++ {
		if m.Count >= countMost || pages == pagesMost {
			m.More = true
			return m, nil
		}
		var page client.Page
		_, err := cli.API(cmd).Do(cmd.Context(), http.MethodGet, "/api/jobs?"+query.Encode(), "", nil, &page)
		if err != nil {
			return m, err
		}
		m.Count += len(page.Jobs)
		for _, job := range page.Jobs {
			m.Jobs = append(m.Jobs, matchingJob{job.JobID})
		}
		if page.NextCursor == "" {
			return m, nil
		}
		query.Set("cursor", page.NextCursor)
	}
}

// confirmMany reports whether the command may be sent to all jobs that the filter matches. On a terminal it asks, with
// their number; in a script --yes is needed.
func confirmMany(cmd *cobra.Command, f cli.ConfirmFlags, command string, filter map[string]any) (bool, error) {
	if f.Yes {
		return true, nil
	}
	if !cli.IsTerminal(cmd.InOrStdin()) {
		return false, cli.Usage("%s all jobs that match? Add --yes; --dry-run prints how many there are", command)
	}
	m, err := count(cmd, command, filter)
	if err != nil {
		return false, err
	}
	if m.Count == 0 && !m.More {
		fmt.Fprintln(cmd.ErrOrStderr(), "no job matches")
		return false, nil
	}
	return cli.Ask(cmd, fmt.Sprintf("%s %s?", command, m))
}

// showMatching prints the output of --dry-run.
func showMatching(cmd *cobra.Command, command string, filter map[string]any) error {
	m, err := count(cmd, command, filter)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return cli.Present(cmd, raw, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s of %s; nothing was done\n", command, m)
		return err
	})
}
