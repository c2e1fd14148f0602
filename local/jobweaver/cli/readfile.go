package cli

import (
	"io"
	"os"

	"github.com/spf13/cobra"
)

// ReadFile reads a file, or standard input if the name is -.
func ReadFile(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(cmd.InOrStdin())
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, usageError{err}
	}
	return text, nil
}
