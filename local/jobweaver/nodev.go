//go:build nodev

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// newDev: the image has no house in it, which would make it twice as large.
func newDev() *cobra.Command {
	return &cobra.Command{
		Use: "dev", Hidden: true, Args: cobra.ArbitraryArgs, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("this jobweaver was built without dev: make run, or docker compose up")
		},
	}
}
