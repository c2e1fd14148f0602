package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"
)

type hook struct {
	Name, Signature              string
	OwnerID, JobType             *string
	Accepted, Replayed, Rejected int64
	LastRejection                *struct {
		At      time.Time
		Message string
	}
}

func newHooks() *cobra.Command {
	return verb("hooks", "List the hooks that turn requests of other systems into jobs, and their counts", 0,
		func(cmd *cobra.Command, _ []string) error {
			return show(cmd, path("hooks"), func(w io.Writer, page struct{ Hooks []hook }) error {
				head := "HOOK\tOWNER\tSIGNATURE\tTYPE\tACCEPTED\tREPLAYED\tREJECTED\tLAST REJECTION"
				none := "no hooks: HOOKS_FILE of the gateway names a file of them"
				return table(w, head, none, len(page.Hooks), func(i int) []any {
					h, last := page.Hooks[i], "-"
					if h.LastRejection != nil {
						last = at(&h.LastRejection.At) + " " + h.LastRejection.Message
					}
					return []any{h.Name, orDash(h.OwnerID), h.Signature, orDash(h.JobType), h.Accepted, h.Replayed, h.Rejected, last}
				})
			})
		})
}
