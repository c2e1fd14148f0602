package steercmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// named is a kind of resource whose names are unique to an owner: schedules or alerts.
type named struct {
	kind  string // in paths
	owner string // empty: that of the key
}

// register adds the flag of the owner to the command that has all others.
func (n *named) register(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&n.owner, "owner", "", "owner of the "+n.kind+"; only for keys of the installation")
}

// at returns the path of a resource with its owner; that of all, without a part.
func (n *named) at(parts ...string) string {
	text := cli.Path(append([]string{n.kind}, parts...)...)
	if n.owner != "" {
		text += "?" + url.Values{"ownerId": {n.owner}}.Encode()
	}
	return text
}

// posts makes a command that posts to a resource, and shows what is answered.
func posts[T any](n *named, verb, short string, show func(io.Writer, T) error) *cobra.Command {
	return cli.Verb(verb+" NAME", short, 1, func(cmd *cobra.Command, args []string) error {
		return cli.Call(cmd, http.MethodPost, n.at(args[0], verb), nil, show)
	})
}

// showJobID shows the job that a command has made.
func showJobID(w io.Writer, made struct{ JobID string }) error {
	_, err := fmt.Fprintln(w, cli.Line(made.JobID))
	return err
}

// deletes makes the command that deletes a resource.
func (n *named) deletes(short string) *cobra.Command {
	return cli.Verb("delete NAME", short, 1, func(cmd *cobra.Command, args []string) error {
		return cli.Call(cmd, http.MethodDelete, n.at(args[0]), nil, func(w io.Writer, _ json.RawMessage) error {
			_, err := fmt.Fprintf(w, "%s is deleted\n", cli.Line(args[0]))
			return err
		})
	})
}
