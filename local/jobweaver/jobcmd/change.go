package jobcmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// NewRunAgain makes the command run-again.
func NewRunAgain() *cobra.Command {
	var patch patchFlags
	var follow followFlags
	cmd := &cobra.Command{
		Use:   "run-again ID [FILE|-]",
		Short: "Submit a job once more, with changes: a JSON Merge Patch from a file or standard input, or by flags",
		Args:  cli.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := patch.body(cmd, args[1:])
			if err == nil {
				err = follow.check()
			}
			if err != nil {
				return err
			}
			return follow.submit(cmd, cli.Path("jobs", args[0], "run-again"), body)
		},
	}
	patch.register(cmd)
	follow.register(cmd)
	return cmd
}

// NewChange makes the command change.
func NewChange() *cobra.Command {
	var patch patchFlags
	cmd := &cobra.Command{
		Use:   "change ID [FILE|-]",
		Short: "Change a job that has not started: a JSON Merge Patch from a file or standard input, or by flags",
		Args:  cli.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := patch.body(cmd, args[1:])
			if err != nil {
				return err
			}
			if string(body) == "{}" {
				return cli.Usage("what to change? Name a file, - for standard input, or give flags such as --priority 5")
			}
			var kept struct{ Command int }
			raw, err := cli.API(cmd).Do(
				cmd.Context(), http.MethodPatch, cli.Path("jobs", args[0]), "application/merge-patch+json", body, &kept)
			if err != nil {
				return err
			}
			return cli.Present(cmd, raw, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "change of %s is command %d\n", cli.Line(args[0]), kept.Command)
				return err
			})
		},
	}
	patch.registerSome(cmd, "payload", "queue", "priority", "retries", "retry-policy", "delay", "timeout", "tag",
		"run-at", "expires-at")
	return cmd
}

// patchFlags are the flags from which a patch of a JobRequest is made.
type patchFlags struct{ set []string }

func (f *patchFlags) register(cmd *cobra.Command) {
	registerRequest(cmd.Flags())
	// A flag that is not given changes nothing, so help shows no defaults.
	cmd.Flags().Lookup("payload").DefValue, cmd.Flags().Lookup("retries").DefValue = "", "0"
	cmd.Flags().StringArrayVar(&f.set, "set", nil,
		"change one member: NAME=VALUE, such as payload.to=a@b.example or tags=null; VALUE is JSON, or else a text")
}

// registerSome registers only some of the flags: those of members that can be changed.
func (f *patchFlags) registerSome(cmd *cobra.Command, names ...string) {
	all := &cobra.Command{}
	f.register(all)
	for _, name := range append(names, "set") {
		cmd.Flags().AddFlag(all.Flags().Lookup(name))
	}
}

// body returns the patch; {} if nothing is to change.
func (f *patchFlags) body(cmd *cobra.Command, file []string) ([]byte, error) {
	patch, err := givenMembers(cmd)
	if err != nil {
		return nil, err
	}
	for _, text := range f.set {
		if err := setMember(patch, text); err != nil {
			return nil, err
		}
	}
	if len(file) == 0 {
		return json.Marshal(patch)
	}
	if len(patch) > 0 {
		return nil, cli.Usage("either a file or flags that change the job, not both")
	}
	body, err := cli.ReadFile(cmd, file[0])
	if err == nil && !json.Valid(body) {
		err = cli.Usage("%s is not JSON", file[0])
	}
	return bytes.TrimSpace(body), err
}

// setMember adds NAME=VALUE to a patch. A dot in the name leads into an object.
func setMember(patch map[string]any, text string) error {
	name, value, found := strings.Cut(text, "=")
	parts := strings.Split(name, ".")
	if !found || slices.Contains(parts, "") {
		return cli.Usage("--set %s: want NAME=VALUE", text)
	}
	for i, part := range parts[:len(parts)-1] {
		if patch[part] == nil {
			patch[part] = map[string]any{}
		}
		within, ok := patch[part].(map[string]any)
		if !ok {
			return cli.Usage("--set %s: %s is given as a whole already", text, strings.Join(parts[:i+1], "."))
		}
		patch = within
	}
	last := parts[len(parts)-1]
	if _, given := patch[last]; given {
		return cli.Usage("--set %s: %s is given already", text, name)
	}
	if patch[last] = value; json.Valid([]byte(value)) {
		patch[last] = json.RawMessage(value)
	}
	return nil
}
