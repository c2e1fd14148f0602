package viewcmd

import (
	"cmp"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewShares makes the command shares.
func NewShares() *cobra.Command {
	type page struct {
		Complete   bool
		Shares     []client.Share
		NextCursor *string
	}
	var search string
	var flags cli.PageFlags
	short := "Show what waits and runs for each fairness key of a queue"
	cmd := &cobra.Command{
		Use: "shares [QUEUE]", Short: short, Args: cli.Between(0, 1), RunE: func(cmd *cobra.Command, args []string) error {
			query := flags.AddTo(url.Values{})
			if search != "" {
				query.Set("q", search)
			}
			path := cli.Path("queues", append(args, "default")[0], "shares") + "?" + query.Encode()
			return cli.Show(cmd, path, func(w io.Writer, p page) error {
				defer cli.MoreOf(cmd, p.NextCursor)
				if !p.Complete {
					fmt.Fprintln(cmd.ErrOrStderr(), "more jobs wait than were counted")
				}
				return showShares(w, p.Shares)
			})
		},
	}
	cmd.Flags().StringVar(&search, "search", "", "only keys that contain this text")
	flags.Register(cmd)
	return cmd
}

func showShares(w io.Writer, shares []client.Share) error {
	head := "FAIRNESS KEY\tWEIGHT\tWAITING\tRUNNING\tSHARE DUE\tSHARE RUNNING\tPAUSED"
	return cli.Table(w, head, "no job waits or runs", len(shares), func(i int) []any {
		s := shares[i]
		key := cmp.Or(s.FairnessKey, "-")
		return []any{key, s.Weight, s.Waiting, s.Running, percent(s.DueShare), percent(s.RunningShare), s.Paused}
	})
}

func percent(part *float64) string {
	if part == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100**part)
}
