package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// call asks the API, and prints its answer as --output wants it.
func call[T any](cmd *cobra.Command, method, path string, body any, show func(io.Writer, T) error) (err error) {
	var sent []byte
	contentType := ""
	if body != nil {
		if sent, err = json.Marshal(body); err != nil {
			return fmt.Errorf("write request: %w", err)
		}
		contentType = "application/json"
	}
	var answer T
	raw, err := api(cmd).Do(cmd.Context(), method, path, contentType, sent, &answer)
	if err != nil {
		return err
	}
	return present(cmd, raw, func(w io.Writer) error { return show(w, answer) })
}

// show asks for something and prints it.
func show[T any](cmd *cobra.Command, path string, show func(io.Writer, T) error) error {
	return call(cmd, http.MethodGet, path, nil, show)
}

// path joins names that others chose.
func path(parts ...string) string {
	text := "/api"
	for _, part := range parts {
		text += "/" + url.PathEscape(part)
	}
	return text
}

// table prints rows under their head, or says that there are none.
func table(w io.Writer, head, none string, rows int, row func(i int) []any) error {
	if rows == 0 {
		_, err := fmt.Fprintln(w, none)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, head)
	for i := range rows {
		for n, cell := range row(i) {
			if n > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, line(fmt.Sprint(cell)))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// moreOf says how to see what follows a page.
func moreOf(cmd *cobra.Command, next *string) {
	if next != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "more: --cursor "+printable(*next))
	}
}

// orDash is a value that may not be there.
func orDash[T any](value *T) any {
	if value == nil {
		return "-"
	}
	return *value
}

func atOrDash(instant *time.Time) string {
	if instant == nil {
		return "-"
	}
	return at(instant)
}

// group is a command that only has others below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return cmd.Help()
	}}
	cmd.AddCommand(below...)
	return cmd
}

// verb is a command of its own with so many arguments.
func verb(use, short string, args int, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: exactly(args), RunE: run}
}

func exactly(n int) cobra.PositionalArgs { return between(n, n) }

// between so many arguments, or an error with those that the command takes.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usage("wrong number of arguments (%d): %s", len(args), cmd.UseLine())
		}
		return nil
	}
}
