package main

import (
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"
)

// newWebhookSecrets prints the keys of a purpose alone, so that they can go straight to where they are kept.
func newWebhookSecrets() *cobra.Command {
	var owner string
	cmd := verb("webhook-secrets end | call",
		"Print the keys with which receivers verify deliveries, or requests of EXTERNAL and FUNCTION jobs", 1,
		func(cmd *cobra.Command, args []string) error {
			if args[0] != "end" && args[0] != "call" {
				return usage("the keys are for end or for call, not for %q", args[0])
			}
			at := path("webhook-secrets")
			if owner != "" {
				at += "?ownerId=" + url.QueryEscape(owner)
			}
			return show(cmd, at, func(w io.Writer, keys map[string]any) error {
				texts, _ := keys[args[0]].([]any)
				for _, text := range texts {
					if _, err := fmt.Fprintln(w, line(fmt.Sprint(text))); err != nil {
						return err
					}
				}
				return nil
			})
		})
	cmd.Flags().StringVar(&owner, "owner", "", "the owner of the keys; only for administrators of the installation")
	return cmd
}
