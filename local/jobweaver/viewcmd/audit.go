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

// NewAudit makes the command audit.
func NewAudit() *cobra.Command {
	flags := map[string]*string{}
	list := cli.Verb("audit", "List the audit log, for administrators", 0, func(cmd *cobra.Command, _ []string) error {
		values := url.Values{}
		for name, value := range flags {
			if *value == "" {
				continue
			}
			switch name {
			case "job":
				name = "jobId"
			case "owner":
				name = "ownerId"
			}
			values.Set(name, *value)
		}
		type page struct {
			Entries    []client.AuditEntry
			NextCursor *string
		}
		return cli.Show(cmd, cli.Path("audit")+"?"+values.Encode(), func(w io.Writer, p page) error {
			defer cli.MoreOf(cmd, p.NextCursor)
			return showAudit(w, p.Entries)
		})
	})
	for name, usage := range map[string]string{
		"job": "only actions on this job", "owner": "only actions on data of this owner",
		"actor":  "only actions of this actor: key:<id>, oidc:<subject> or bootstrap",
		"action": "only this action, such as job.cancel",
		"since":  "not before this instant: RFC 3339, or an age such as 90m or 3d", "until": "before this instant",
		"limit": "length of the page, up to 200", "cursor": "the next page: the cursor that the previous page printed",
	} {
		flags[name] = cli.QueryFlag(list, name, usage)
	}
	return list
}

func showAudit(w io.Writer, entries []client.AuditEntry) error {
	return cli.Table(w, "AT\tOWNER\tACTOR\tACTION\tWHAT\tFROM", "no entries", len(entries), func(i int) []any {
		e := entries[i]
		what := cmp.Or(e.Resource, "-")
		switch n := len(e.JobIDs); {
		case n == 1:
			what = e.JobIDs[0]
		case n > 1:
			what = fmt.Sprintf("%d jobs", n)
		}
		return []any{cli.AtOrDash(&e.At), cmp.Or(e.OwnerID, "-"), e.Actor, e.Action, what, e.RemoteAddr}
	})
}
