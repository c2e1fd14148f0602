package jobcmd

import (
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// newGroups makes the command dead groups.
func newGroups() *cobra.Command {
	type group struct {
		JobType, ErrorCode string
		Jobs               int64
		New                bool
		Hours              []int64
		DayBefore          int64
		FirstFailedAt      time.Time
		LastFailedAt       time.Time
		Example            *struct{ Message string }
	}
	type page struct{ Groups []group }
	texts := map[string]*string{}
	short := "Count the jobs that failed for good by type and error code"
	cmd := cli.Verb("groups", short, 0, func(cmd *cobra.Command, _ []string) error {
		query := url.Values{"limit": {"200"}}
		for name, text := range texts {
			if *text != "" {
				query.Set(name, *text)
			}
		}
		return cli.Show(cmd, "/api/jobs/dead/groups?"+query.Encode(), func(w io.Writer, p page) error {
			head := "TYPE\tERROR CODE\tJOBS\t24 H\t24 H BEFORE\tNEW\tLAST\tLAST MESSAGE"
			return cli.Table(w, head, "no jobs", len(p.Groups), func(i int) []any {
				g := p.Groups[i]
				var today int64
				for _, n := range g.Hours {
					today += n
				}
				message := ""
				if g.Example != nil {
					message = g.Example.Message
				}
				return []any{g.JobType, dashed(g.ErrorCode), g.Jobs, today, g.DayBefore, g.New, cli.At(&g.LastFailedAt), message}
			})
		})
	})
	for flag, of := range map[string]struct{ name, usage string }{
		"type": {"type", "failures of this job type"}, "error-code": {"errorCode", "failures with this error code"},
		"owner": {"ownerId", "jobs of this owner"},
		"since": {"since", "groups that failed at this instant or later: RFC 3339, or an age such as 90m or 3d"},
	} {
		texts[of.name] = cli.QueryFlag(cmd, flag, of.usage)
	}
	return cmd
}

func dashed(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
