package viewcmd

import (
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/local/jobweaver/mcptools"
)

// NewMCP makes the command mcp.
func NewMCP() *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Args: cli.Between(0, 0),
		Short: "Serve the API as tools for AI agents: the Model Context Protocol over standard input and output",
		Long: "Serve the API as tools for AI agents: the Model Context Protocol over standard input and output.\n\n" +
			"Each operation of the gateway's OpenAPI contract is a tool. Without --write only those that read are offered; " +
			"what a tool may do is up to the role of the API key. Keys and the audit log are never offered.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			write, err := cmd.Flags().GetBool("write")
			if err != nil {
				return err
			}
			server, err := mcptools.NewServer(cmd.Context(), cli.API(cmd), write)
			if err != nil {
				return err
			}
			in := io.NopCloser(cmd.InOrStdin())
			err = server.Run(cmd.Context(), &mcp.IOTransport{Reader: in, Writer: nopCloser{cmd.OutOrStdout()}})
			if errors.Is(err, io.EOF) || cmd.Context().Err() != nil { // the agent has disconnected, or Ctrl-C
				return nil
			}
			return err
		},
	}
	cmd.Flags().Bool("write", false, "also offer tools that submit, change, cancel and delete")
	return cmd
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
