package cli

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Ask asks a question on a terminal. Any answer but yes ends the command with the exit code of an interrupted one.
func Ask(cmd *cobra.Command, question string) (bool, error) {
	fmt.Fprint(cmd.ErrOrStderr(), question+" [y/N] ")
	answer, err := readLine(cmd)
	if err != nil {
		return false, err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was done")
		return false, ExitCode(ExitInterrupted)
	}
	return true, nil
}

// readLine reads a line of input, until the context ends.
func readLine(cmd *cobra.Command) (string, error) {
	typed := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // the end of the input is not a yes
		typed <- text
	}()
	select {
	case text := <-typed:
		return text, nil
	case <-cmd.Context().Done():
		return "", cmd.Context().Err()
	}
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
