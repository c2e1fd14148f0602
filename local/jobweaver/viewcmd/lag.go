package viewcmd

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

var errNoLag = errors.New("the gateway knows no topics: the brokers do not answer, " +
	"or events go through a sink (K_SINK), which has consumer groups of its own")

// NewLag makes the command lag.
func NewLag() *cobra.Command {
	type topic struct {
		Function, Topic  string
		Records, Members int64
	}
	about := "List how many records of each topic its function has not handled, for administrators"
	return cli.Verb("lag", about, 0, func(cmd *cobra.Command, _ []string) error {
		return cli.Show(cmd, cli.Path("lag"), func(w io.Writer, page struct{ Topics *[]topic }) error {
			if page.Topics == nil {
				return errNoLag
			}
			topics := *page.Topics
			return cli.Table(w, "FUNCTION\tTOPIC\tRECORDS\tPROCESSES", "no topics", len(topics), func(i int) []any {
				x := topics[i]
				return []any{x.Function, x.Topic, x.Records, x.Members}
			})
		})
	})
}
