package cli

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
)

// PageMost is the most entries that the API puts on a page.
const PageMost = 200

// PageFlags select a page of a list.
type PageFlags struct{ limit, cursor string }

// Register adds the flags to a command.
func (p *PageFlags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.limit, "limit", "", "length of the page, up to 200")
	cmd.Flags().StringVar(&p.cursor, "cursor", "", "the next page: the cursor that the previous page printed")
}

// AddTo adds the given flags to a query.
func (p *PageFlags) AddTo(query url.Values) url.Values {
	if p.limit != "" {
		query.Set("limit", p.limit)
	}
	if p.cursor != "" {
		query.Set("cursor", p.cursor)
	}
	return query
}

// MoreOf prints how to get the next page, if there is one.
func MoreOf(cmd *cobra.Command, next *string) {
	if next != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "more: --cursor "+Printable(*next))
	}
}
