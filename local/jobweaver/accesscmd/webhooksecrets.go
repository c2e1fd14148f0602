package accesscmd

import (
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// NewWebhookSecrets makes the command webhook-secrets. It prints only the keys for one purpose, so that they can be
// piped to a secret store.
func NewWebhookSecrets() *cobra.Command {
	var owner string
	cmd := cli.Verb("webhook-secrets end | call",
		"Print the keys with which receivers verify deliveries, or requests of EXTERNAL and FUNCTION jobs", 1,
		func(cmd *cobra.Command, args []string) error {
			if args[0] != "end" && args[0] != "call" {
				return cli.Usage("the keys are for end or for call, not for %q", args[0])
			}
			at := cli.Path("webhook-secrets")
			if owner != "" {
				at += "?ownerId=" + url.QueryEscape(owner)
			}
			return cli.Show(cmd, at, func(w io.Writer, keys map[string]any) error {
				texts, _ := keys[args[0]].([]any)
				for _, text := range texts {
					if _, err := fmt.Fprintln(w, cli.Line(fmt.Sprint(text))); err != nil {
						return err
					}
				}
				return nil
			})
		})
	cmd.Flags().StringVar(&owner, "owner", "", "the owner of the keys; only for administrators of the installation")
	return cmd
}
