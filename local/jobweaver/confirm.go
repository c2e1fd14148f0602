package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/client"
)

// A question about many jobs counts them. It looks at so many, in pages as large as the API has them.
const (
	countMost = 1000
	pageMost  = 200
	pagesMost = 25 // some of which may have few
)

// matching is how many jobs a filter matches, and the first of them.
type matching struct {
	Command string         `json:"command"`
	Filter  map[string]any `json:"filter"`
	Count   int            `json:"count"`
	More    bool           `json:"more"` // at least so many
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

// count asks for the jobs that a filter matches and that can be given the command.
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
	query.Set("limit", strconv.Itoa(pageMost))
	for pages := 0; ; pages++ {
		if m.Count >= countMost || pages == pagesMost {
			m.More = true
			return m, nil
		}
		var page client.Page
		_, err := api(cmd).Do(cmd.Context(), http.MethodGet, "/api/jobs?"+query.Encode(), "", nil, &page)
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

// confirmFlags are of commands that may be given to more jobs than somebody thought of.
type confirmFlags struct{ yes, dryRun bool }

func (f *confirmFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.yes, "yes", false, "with a filter: do not ask")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "with a filter: print how many jobs match, and do nothing")
}

// confirm tells whether the command may go to all jobs that the filter matches. On a terminal it asks, with their
// number; a script has to give --yes.
func (f *confirmFlags) confirm(cmd *cobra.Command, command string, filter map[string]any) (bool, error) {
	if f.yes {
		return true, nil
	}
	if !isTerminal(cmd.InOrStdin()) {
		return false, usage("%s all jobs that match? Add --yes; --dry-run prints how many there are", command)
	}
	m, err := count(cmd, command, filter)
	if err != nil {
		return false, err
	}
	if m.Count == 0 && !m.More {
		fmt.Fprintln(cmd.ErrOrStderr(), "no job matches")
		return false, nil
	}
	return ask(cmd, fmt.Sprintf("%s %s?", command, m))
}

// ask asks on a terminal. Any answer but yes ends the command with the exit code of one that was interrupted.
func ask(cmd *cobra.Command, question string) (bool, error) {
	fmt.Fprint(cmd.ErrOrStderr(), question+" [y/N] ")
	answer, err := readLine(cmd)
	if err != nil {
		return false, err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was done")
		return false, exitCode(exitInterrupted)
	}
	return true, nil
}

// showMatching is --dry-run.
func showMatching(cmd *cobra.Command, command string, filter map[string]any) error {
	m, err := count(cmd, command, filter)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return present(cmd, raw, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s of %s; nothing was done\n", command, m)
		return err
	})
}

// readLine reads what somebody types, until the context ends.
func readLine(cmd *cobra.Command) (string, error) {
	typed := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // an end of the input is no yes
		typed <- text
	}()
	select {
	case text := <-typed:
		return text, nil
	case <-cmd.Context().Done():
		return "", cmd.Context().Err()
	}
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
