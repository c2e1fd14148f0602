package viewcmd

import (
	"cmp"
	"io"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewHooks makes the command hooks.
func NewHooks() *cobra.Command {
	return cli.Verb("hooks", "List the hooks that turn requests of other systems into jobs or events, and their counts", 0,
		func(cmd *cobra.Command, _ []string) error {
			return cli.Show(cmd, cli.Path("hooks"), func(w io.Writer, page struct{ Hooks []client.Hook }) error {
				head := "HOOK\tOWNER\tSIGNATURE\tTYPE\tACCEPTED\tREPLAYED\tREJECTED\tLAST REJECTION"
				none := "no hooks: HOOKS_FILE of the gateway names a file of them"
				return cli.Table(w, head, none, len(page.Hooks), func(i int) []any {
					h, last := page.Hooks[i], "-"
					if h.LastRejection != nil {
						last = cli.At(&h.LastRejection.At) + " " + h.LastRejection.Message
					}
					becomes := cmp.Or(h.JobType, "-")
					if h.EventType != "" {
						becomes = "event " + h.EventType
					}
					return []any{
						h.Name, cmp.Or(h.OwnerID, "-"), h.Signature, becomes, h.Accepted, h.Replayed, h.Rejected, last,
					}
				})
			})
		})
}
