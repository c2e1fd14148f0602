package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// Group makes a command that only has subcommands.
func Group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return cmd.Help()
	}}
	cmd.AddCommand(below...)
	return cmd
}

// Verb makes a command that takes args arguments.
func Verb(use, short string, args int, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: Exactly(args), RunE: run}
}

// Unavailable makes a command that this build lacks. It only returns the reason as an error.
func Unavailable(name, reason string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, Args: cobra.ArbitraryArgs, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return errors.New(reason) },
	}
}

// Exactly takes n arguments.
func Exactly(n int) cobra.PositionalArgs { return Between(n, n) }

// Between takes from least to most arguments. Its error shows the usage line.
func Between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return Usage("wrong number of arguments (%d): %s", len(args), cmd.UseLine())
		}
		return nil
	}
}
