package viewcmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

type jobType struct {
	Name               string
	Builtin            bool
	Title, Description *string
	Schema             json.RawMessage
	Workers            int
	Queues             []string
}

// NewTypes makes the command types.
func NewTypes() *cobra.Command {
	return &cobra.Command{
		Use: "types [TYPE]", Args: cli.Between(0, 1),
		Short: "List the job types, or show one with the schema of its payload",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return cli.Show(cmd, cli.Path("job-types", args[0]), showType)
			}
			type page struct {
				JobTypes   []jobType
				AcceptsAny bool
			}
			return cli.Show(cmd, cli.Path("job-types"), func(w io.Writer, p page) error {
				if err := showTypes(w, p.JobTypes); err != nil || !p.AcceptsAny {
					return err
				}
				_, err := fmt.Fprintln(w, "any other type is accepted, too")
				return err
			})
		},
	}
}

func showTypes(w io.Writer, types []jobType) error {
	head := "TYPE\tBUILT IN\tWORKERS\tQUEUES\tSCHEMA\tTITLE"
	return cli.Table(w, head, "no job types", len(types), func(i int) []any {
		t := types[i]
		schema, title := "yes", "-"
		if len(t.Schema) == 0 || string(t.Schema) == "null" {
			schema = "-"
		}
		if t.Title != nil {
			title = *t.Title
		}
		queues := strings.Join(t.Queues, ",")
		if queues == "" {
			queues = "-"
		}
		return []any{t.Name, t.Builtin, t.Workers, queues, schema, title}
	})
}

func showType(w io.Writer, t jobType) error {
	if err := showTypes(w, []jobType{t}); err != nil {
		return err
	}
	if t.Description != nil {
		fmt.Fprintf(w, "\n%s\n", cli.Line(*t.Description))
	}
	if len(t.Schema) == 0 || string(t.Schema) == "null" {
		_, err := fmt.Fprintln(w, "\nits payload may be anything")
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, t.Schema, "", "  "); err != nil {
		return fmt.Errorf("read schema of %s: %w", t.Name, err)
	}
	fmt.Fprintln(w)
	for text := range strings.Lines(pretty.String()) { // a schema is text from a worker
		if _, err := fmt.Fprintln(w, cli.Line(strings.TrimSuffix(text, "\n"))); err != nil {
			return err
		}
	}
	return nil
}
