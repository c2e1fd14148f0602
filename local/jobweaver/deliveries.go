package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

type delivery struct {
	JobID      string     `json:"jobId"`
	Version    int64      `json:"version"`
	JobStatus  string     `json:"jobStatus"`
	URL        string     `json:"url"`
	Status     string     `json:"status"`
	Tries      int        `json:"tries"`
	NextAt     *time.Time `json:"nextAt"`
	LastTryAt  *time.Time `json:"lastTryAt"`
	LastAnswer *int       `json:"lastAnswer"`
	LastError  *string    `json:"lastError"`
}

func newDeliveries() *cobra.Command {
	return group("deliveries", "Show the deliveries of results to callback URLs",
		newDeliveryList(),
		verb("get ID", "Show the deliveries of a job, newest first", 1, func(cmd *cobra.Command, args []string) error {
			type page struct{ Deliveries []delivery }
			return show(cmd, path("jobs", args[0], "deliveries"), func(w io.Writer, p page) error {
				return showDeliveries(w, p.Deliveries)
			})
		}),
		verb("retry ID VERSION", "Deliver a result again", 2, func(cmd *cobra.Command, args []string) error {
			at := path("jobs", args[0], "deliveries", args[1], "retry")
			return call(cmd, http.MethodPost, at, nil, func(w io.Writer, d delivery) error {
				return showDeliveries(w, []delivery{d})
			})
		}))
}

func newDeliveryList() *cobra.Command {
	flags := map[string]*string{}
	list := verb("list", "List deliveries, those of the newest jobs first", 0, func(cmd *cobra.Command, _ []string) error {
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
			Deliveries []delivery
			NextCursor *string
		}
		return show(cmd, path("deliveries")+"?"+values.Encode(), func(w io.Writer, p page) error {
			defer moreOf(cmd, p.NextCursor)
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

func showDeliveries(w io.Writer, deliveries []delivery) error {
	head := "JOB\tVERSION\tENDED AS\tSTATUS\tTRIES\tLAST TRY\tNEXT\tANSWER\tERROR\tURL"
	return table(w, head, "no deliveries", len(deliveries), func(i int) []any {
		d := deliveries[i]
		return []any{
			d.JobID, fmt.Sprint(d.Version), d.JobStatus, d.Status, d.Tries, atOrDash(d.LastTryAt), atOrDash(d.NextAt),
			orDash(d.LastAnswer), orDash(d.LastError), d.URL,
		}
	})
}
