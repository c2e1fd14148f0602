package steercmd

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewDeliveries makes the command deliveries.
func NewDeliveries() *cobra.Command {
	return cli.Group("deliveries", "Show the deliveries of results to callback URLs",
		newDeliveryList(),
		cli.Verb("get ID", "Show the deliveries of a job, newest first", 1, func(cmd *cobra.Command, args []string) error {
			type page struct{ Deliveries []client.Delivery }
			return cli.Show(cmd, cli.Path("jobs", args[0], "deliveries"), func(w io.Writer, p page) error {
				return showDeliveries(w, p.Deliveries)
			})
		}),
		cli.Verb("retry ID VERSION", "Deliver a result again", 2, func(cmd *cobra.Command, args []string) error {
			at := cli.Path("jobs", args[0], "deliveries", args[1], "retry")
			return cli.Call(cmd, http.MethodPost, at, nil, func(w io.Writer, d client.Delivery) error {
				return showDeliveries(w, []client.Delivery{d})
			})
		}))
}

func newDeliveryList() *cobra.Command {
	flags := map[string]*string{}
	short := "List deliveries, those of the newest jobs first"
	list := cli.Verb("list", short, 0, func(cmd *cobra.Command, _ []string) error {
		values := url.Values{}
		for name, value := range flags {
			if name == "status" {
				*value = strings.ToUpper(*value)
			}
			if *value != "" {
				values.Set(name, *value)
			}
		}
		type page struct {
			Deliveries []client.Delivery
			NextCursor *string
		}
		return cli.Show(cmd, cli.Path("deliveries")+"?"+values.Encode(), func(w io.Writer, p page) error {
			defer cli.MoreOf(cmd, p.NextCursor)
			return showDeliveries(w, p.Deliveries)
		})
	})
	for name, usage := range map[string]string{
		"status": "only those that are PENDING, DELIVERED or FAILED", "limit": "length of the page, up to 200",
		"cursor": "the next page: the cursor that the previous page printed",
	} {
		flags[name] = list.Flags().String(name, "", usage)
	}
	return list
}

func showDeliveries(w io.Writer, deliveries []client.Delivery) error {
	head := "JOB\tVERSION\tENDED AS\tSTATUS\tTRIES\tLAST TRY\tNEXT\tANSWER\tERROR\tURL"
	return cli.Table(w, head, "no deliveries", len(deliveries), func(i int) []any {
		d, answer := deliveries[i], any("-")
		if deliveries[i].LastAnswer != 0 {
			answer = deliveries[i].LastAnswer
		}
		return []any{
			d.JobID, fmt.Sprint(d.Version), d.JobStatus, d.Status, d.Tries, cli.AtOrDash(d.LastTryAt), cli.AtOrDash(d.NextAt),
			answer, cmp.Or(d.LastError, "-"), d.URL,
		}
	})
}
