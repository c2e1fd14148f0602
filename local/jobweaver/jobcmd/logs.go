package jobcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// logPage is a page of a log, or all of it. Each page has older lines than the page before.
type logPage struct {
	JobID      string            `json:"jobId"`
	Logs       []json.RawMessage `json:"logs"`
	NextCursor *string           `json:"nextCursor"`
	Sealed     json.RawMessage   `json:"sealed,omitempty"`
}

// NewLogs makes the command logs.
func NewLogs() *cobra.Command {
	attempt := 0
	cmd := cli.Verb("logs ID", "Show what a job's handlers logged", 1, func(cmd *cobra.Command, args []string) error {
		query := url.Values{}
		if attempt > 0 {
			query.Set("attempt", strconv.Itoa(attempt))
		}
		log, err := wholeLog(cmd, cli.Path("jobs", args[0], "logs"), query)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(log)
		if err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		return cli.Present(cmd, raw, func(w io.Writer) error { return showLog(w, log.Logs) })
	})
	cmd.Flags().IntVar(&attempt, "attempt", 0, "only of this attempt")
	return cmd
}

// wholeLog requests all pages, and sorts them by time.
func wholeLog(cmd *cobra.Command, at string, query url.Values) (log logPage, err error) {
	gateway := cli.API(cmd)
	var pages [][]json.RawMessage
	for {
		log = logPage{}
		if _, err := gateway.Do(cmd.Context(), http.MethodGet, at+"?"+query.Encode(), "", nil, &log); err != nil {
			return log, err
		}
		pages = append(pages, log.Logs)
		if log.NextCursor == nil {
			break
		}
		query.Set("cursor", *log.NextCursor)
	}
	slices.Reverse(pages)
	log.Logs = append([]json.RawMessage{}, slices.Concat(pages...)...) // not null in JSON
	return log, nil
}

func showLog(w io.Writer, lines []json.RawMessage) error {
	for _, raw := range lines {
		var l struct {
			Attempt     int
			At          time.Time
			Level, Text string
		}
		if err := json.Unmarshal(raw, &l); err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		_, err := fmt.Fprintf(w, "%s  %d  %-5s  %s\n", cli.At(&l.At), l.Attempt, cli.Line(l.Level), cli.Line(l.Text))
		if err != nil {
			return err
		}
	}
	return nil
}
