package jobcmd

import (
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// NewDead makes the command dead, which lists, counts and redrives dead jobs.
func NewDead() *cobra.Command {
	var filter filterFlags
	var page cli.PageFlags
	short := "List jobs that failed for good, newest first"
	list := cli.Verb("dead", short, 0, func(cmd *cobra.Command, _ []string) error {
		return showPage(cmd, "/api/jobs/dead?"+page.AddTo(queryOf(filter.values(cmd))).Encode())
	})
	filter.registerTexts(list)
	page.Register(list)
	redrive := (&jobCommand{name: "retry", short: "Run a dead job again", dead: true}).cobra()
	redrive.Use = "redrive [ID…]"
	list.AddCommand(redrive, newGroups())
	return list
}
